"""An owner's settings: computing preferences, `cc_config.xml` and the projects' `app_config.xml`, with positions.

Only what the emulator models is read; docs/explanation/emulator-policies.md has the table of tags. Pure: bytes in,
dataclasses out.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from emulator.engine.scenario import DAY_SECS, MAX_INSTANCES, DayHours, Hours, Preferences
from emulator.engine.scenario.projects import MAX_EXCLUDED_DEVICE
from emulator.files.client_state import gpu_kind
from emulator.files.owner import NOTHING_EXCLUSIVE, Exclusive
from emulator.files.sections import SETTINGS_BYTES_MAX, Schema, Section, SourceFile, read_sections
from emulator.files.unused import Tally
from portal.languages.messages import Message

_PREFERENCES: Final[Schema] = {"venue": {"day_prefs": {}}, "day_prefs": {}}
_CC_CONFIG: Final[Schema] = {"options": {"exclude_gpu": {}}}
_APP_CONFIG: Final[Schema] = {"app": {"gpu_versions": {}}, "app_version": {}}
_IGNORED_DEVICES: Final = {
    "ignore_nvidia_dev": "NVIDIA",
    "ignore_cuda_dev": "NVIDIA",
    "ignore_ati_dev": "ATI",
    "ignore_intel_dev": "intel_gpu",
    "ignore_apple_dev": "apple_gpu",
}


@dataclass(frozen=True, slots=True)
class GpuExclusion:
    """A project (all if "") may not use that kind of GPU (all if "") for that application (all if ""); or only one of
    the GPUs, by its number.
    """

    url: str
    kind: str
    app: str
    device: int | None = None


@dataclass(frozen=True, slots=True)
class CcConfig:
    """Options of cc_config.xml: `ncpus` 0 means all; `unknown` names options that the emulator does not model."""

    ncpus: int = 0
    no_gpus: bool = False
    report_at_once: bool = False
    exclusions: tuple[GpuExclusion, ...] = ()
    left_out: tuple[Message, ...] = ()
    exclusive: Exclusive = NOTHING_EXCLUSIVE


@dataclass(slots=True)
class AppConfig:
    """One project's app_config.xml. Usage: by application (GPUs, CPUs), and by (application, plan class)."""

    source: SourceFile
    project_max_concurrent: int = 0
    max_concurrent: dict[str, int] = field(default_factory=dict)
    gpu_usage: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    version_usage: dict[tuple[str, str], tuple[float | None, float | None]] = field(default_factory=dict)

    @property
    def apps(self) -> set[str]:
        """The names of all applications in it."""
        return {*self.max_concurrent, *self.gpu_usage, *(app for app, _ in self.version_usage)}


def read_preferences(data: bytes, file: str, venue: str, before: Preferences, tally: Tally) -> Preferences:
    """Return the preferences with the file's settings. A `<venue>` of the computer's name replaces the general ones.

    Raises ScenarioFileError.
    """
    chosen: Section | None = None
    general: Section | None = None
    days: list[Section] = []
    sections: list[Section] = []
    for section in read_sections(SourceFile(file, data), "global_preferences", _PREFERENCES, SETTINGS_BYTES_MAX):
        sections.append(section)
        if section.name == "venue":
            if venue and section.attribute("name") == venue:
                chosen = section
        elif section.name == "day_prefs":
            days.append(section)
        else:
            general = section
    assert general is not None  # read_sections ends with the root, or raises
    own_days = days if chosen is None else chosen.named("day_prefs")
    preferences = _with_preferences(chosen or general, own_days, before)
    for section in sections:
        tally.add(section)
    return preferences


def _with_preferences(section: Section, days: list[Section], before: Preferences) -> Preferences:
    # The client wants some buffer in any case; 0 for the percentage means no limit in its dialogue.
    percent = section.number("max_ncpus_pct", before.max_cpus_percent, 0, 100)
    minutes = section.number("cpu_scheduling_period_minutes", before.period_secs / 60, 1, 100 * DAY_SECS / 60)
    return replace(
        before,
        work_buf_min_days=section.number("work_buf_min_days", before.work_buf_min_days, 0, 1000),
        work_buf_additional_days=section.number("work_buf_additional_days", before.work_buf_additional_days, 0, 1000),
        period_secs=minutes * 60,
        max_cpus_percent=percent or 100.0,
        max_ncpus=section.integer("max_cpus", before.max_ncpus, 0, MAX_INSTANCES),
        cpu_usage_percent=section.number("cpu_usage_limit", before.cpu_usage_percent, 0, 100) or 100.0,
        compute_hours=_hours(section, days, ("start_hour", "end_hour"), before.compute_hours),
        network_hours=_hours(section, days, ("net_start_hour", "net_end_hour"), before.network_hours),
        run_if_user_active=_switch(section, "run_if_user_active", before.run_if_user_active),
        run_gpu_if_user_active=_switch(section, "run_gpu_if_user_active", before.run_gpu_if_user_active),
        run_on_batteries=_switch(section, "run_on_batteries", before.run_on_batteries),
        ram_busy_fraction=section.number("ram_max_used_busy_pct", 100 * before.ram_busy_fraction, 0, 100) / 100,
        ram_idle_fraction=section.number("ram_max_used_idle_pct", 100 * before.ram_idle_fraction, 0, 100) / 100,
    )


def _switch(section: Section, tag: str, before: bool) -> bool:
    return section.flag(tag) if tag in section.leaves else before


def _hours(section: Section, days: list[Section], tags: tuple[str, str], before: Hours) -> Hours:
    """Return the usual hours, and those of single days; if a day is named twice, the last one counts."""
    start, end = tags
    own = {day.day: day for day in before.days}
    for override in days:
        day = override.integer("day_of_week", -1, 0, 6)
        if day < 0:
            raise override.error("day_of_week", "weekday_missing")
        if start in override.leaves or end in override.leaves:
            own[day] = DayHours(day, override.number(start, 0, 0, 24), override.number(end, 0, 0, 24))
    return Hours(
        section.number(start, before.start_hour, 0, 24),
        section.number(end, before.end_hour, 0, 24),
        tuple(own[day] for day in sorted(own)),
    )


def read_cc_config(data: bytes, file: str, tally: Tally) -> CcConfig:
    """Return the options of cc_config.xml that the emulator models. Raises ScenarioFileError."""
    config = CcConfig()
    for section in read_sections(SourceFile(file, data), "cc_config", _CC_CONFIG, SETTINGS_BYTES_MAX):
        if section.name == "options":
            config = _options(section)
        tally.add(section)
    return config


def _options(section: Section) -> CcConfig:
    exclusions: list[GpuExclusion] = []
    left_out: list[Message] = []
    for gpu in section.named("exclude_gpu"):
        kind = gpu.text("type")
        device = None
        if gpu.text("device_num") not in ("", "-1"):  # the client's own word for all of them
            device = gpu.integer("device_num", 0, 0, MAX_EXCLUDED_DEVICE)
        exclusions.append(GpuExclusion(gpu.text("url"), gpu_kind(kind) if kind else "", gpu.text("app"), device))
    for tag in _IGNORED_DEVICES:
        if tag in section.leaves:
            left_out.append(Message("ignored_gpu_tag", tag=tag))
    if "rec_half_life_days" in section.leaves:
        left_out.append(Message("ignored_half_life"))
    return CcConfig(
        # -1 is the client's own word for "all there are".
        ncpus=max(0, section.integer("ncpus", 0, -1, MAX_INSTANCES)),
        no_gpus=section.flag("no_gpus"),
        report_at_once=section.flag("report_results_immediately"),
        exclusions=tuple(exclusions),
        left_out=tuple(dict.fromkeys(left_out)),
        exclusive=Exclusive(bool(section.text("exclusive_app")), bool(section.text("exclusive_gpu_app"))),
    )


def read_app_config(data: bytes, file: str, tally: Tally) -> AppConfig:
    """Return the settings of a project's app_config.xml. Raises ScenarioFileError."""
    source = SourceFile(file, data)
    config = AppConfig(source)
    for section in read_sections(source, "app_config", _APP_CONFIG, SETTINGS_BYTES_MAX):
        if section.name == "app_config":
            config.project_max_concurrent = section.integer("project_max_concurrent", 0, 0, MAX_INSTANCES)
        elif section.name == "app":
            _read_app(config, section)
        else:
            app, plan_class = _name(section, "app_name"), section.text("plan_class")
            config.version_usage[app, plan_class] = _usage(section, "ngpus", "avg_ncpus")
        tally.add(section)
    return config


def _read_app(config: AppConfig, section: Section) -> None:
    app = _name(section, "name")
    if "max_concurrent" in section.leaves:
        config.max_concurrent[app] = section.integer("max_concurrent", 0, 0, MAX_INSTANCES)
    for versions in section.named("gpu_versions"):
        config.gpu_usage[app] = _usage(versions, "gpu_usage", "cpu_usage")


def _name(section: Section, tag: str) -> str:
    name = section.text(tag)
    if not name:
        raise section.error(tag, "app_name_missing")
    return name


def _usage(section: Section, gpu_tag: str, cpu_tag: str) -> tuple[float | None, float | None]:
    gpus = section.number(gpu_tag, 0, 0.001, MAX_INSTANCES) if gpu_tag in section.leaves else None
    cpus = section.number(cpu_tag, 0, 0.001, MAX_INSTANCES) if cpu_tag in section.leaves else None
    return gpus, cpus
