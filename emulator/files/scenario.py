"""Make a scenario from a folder of a client's files, or from uploaded files.

`client_state.xml` describes the computer and its projects; preferences, cc_config.xml and app_config.xml have what the
owner set. A state file becomes a scenario by the rules of BOINC's own emulator: jobs start again with their whole time
limit, back-offs are cleared, and applications that this computer cannot run are left out. `Scenario.notes` says what
was left out or assumed. No Django, no clock; only `read_folder` reads files.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from emulator.engine.scenario import (
    CPU,
    App,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    StartJob,
    Version,
)
from emulator.files import client_settings
from emulator.files.client_settings import AppConfig, CcConfig
from emulator.files.client_state import (
    DEFAULT_JOB_FLOP,
    DEFAULT_LATENCY_SECS,
    STATE_FILE,
    ClientState,
    StateApp,
    StateJob,
    StateProject,
    StateVersion,
    read_state,
)
from emulator.files.owner import time_of_week, with_use, without_hours
from emulator.files.sections import SETTINGS_BYTES_MAX, STATE_BYTES_MAX, ScenarioFileError

APP_CONFIG_FILE: Final = "app_config.xml"
APP_CONFIGS_MAX: Final = 200
NOTES_MAX: Final = 50
MIN_RUN_SECS: Final = 1e-3  # what Scenario accepts as a run time

_PREFERENCE_FILES: Final = ("global_prefs.xml", "global_prefs_override.xml")
_CC_CONFIG_FILE: Final = "cc_config.xml"


def read_folder(path: Path) -> Scenario:
    """Return the scenario of a folder (or of the client_state.xml in it), as a client's data folder has them.

    Raises ScenarioError: a ScenarioFileError names file, line and tag. OSError if a file cannot be read.
    """
    folder = path if path.is_dir() else path.parent
    state = path / STATE_FILE if path.is_dir() else path
    if not state.is_file():
        raise ScenarioFileError(STATE_FILE, "", 0, f"there is none in {folder}")
    files = {STATE_FILE: _read(state, STATE_BYTES_MAX)}
    for name in (*_PREFERENCE_FILES, _CC_CONFIG_FILE):
        if (folder / name).is_file():
            files[name] = _read(folder / name, SETTINGS_BYTES_MAX)
    for found in sorted((folder / "projects").glob(f"*/{APP_CONFIG_FILE}"))[: APP_CONFIGS_MAX + 1]:
        files[found.relative_to(folder).as_posix()] = _read(found, SETTINGS_BYTES_MAX)
    return replace(read_upload(files), name=folder.resolve().name)


def _read(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        return file.read(bytes_max + 1)  # one more, so that the reader sees that it is too large


def read_upload(files: Mapping[str, bytes]) -> Scenario:
    """Return the scenario of files by name: client_state.xml, and any of those that `read_folder` reads.

    An app_config.xml may stand in a folder of the client's name for its project (`example.org_p/app_config.xml`);
    else it is for the projects that have all its applications. Raises ScenarioError, as `read_folder`.
    """
    if STATE_FILE not in files:
        raise ScenarioFileError(STATE_FILE, "", 0, "it is missing; all the other files are optional")
    known = {STATE_FILE, *_PREFERENCE_FILES, _CC_CONFIG_FILE}
    app_configs = sorted(name for name in files if name not in known and name.endswith(APP_CONFIG_FILE))
    for name in files:
        if name not in known and name not in app_configs:
            raise ScenarioFileError(
                name[:100], "", 0, f"unknown file; allowed: {', '.join(sorted(known))}, app_config.xml"
            )
    if len(app_configs) > APP_CONFIGS_MAX:
        raise ScenarioFileError(APP_CONFIG_FILE, "", 0, f"more than {APP_CONFIGS_MAX} of them")
    state = read_state(files[STATE_FILE])
    preferences = Preferences()
    for name in _PREFERENCE_FILES:
        if name in files:
            preferences = client_settings.read_preferences(files[name], name, state.venue, preferences)
    cc_config = client_settings.read_cc_config(files[_CC_CONFIG_FILE]) if _CC_CONFIG_FILE in files else CcConfig()
    configs = [client_settings.read_app_config(files[name], name) for name in app_configs]
    return _Assembly(state, preferences, cc_config, configs).scenario()


class _Assembly:
    """The steps from the content of the files to a scenario, with the notes that they leave."""

    def __init__(
        self, state: ClientState, preferences: Preferences, cc_config: CcConfig, app_configs: list[AppConfig]
    ) -> None:
        self.state = state
        self.cc_config = cc_config
        self.preferences = replace(preferences, report_at_once=cc_config.report_at_once)
        self.notes: dict[str, None] = {}
        self.processors = self._processors()
        self.configs: dict[int, AppConfig] = {}
        for config in app_configs:
            self._place(config)

    def scenario(self) -> Scenario:
        """All together. Raises ScenarioError."""
        for what in self.cc_config.left_out:
            self._note(f"cc_config.xml: {what}")
        names = self._project_names()
        projects: list[Project] = []
        jobs: list[StartJob] = []
        for index, found in enumerate(self.state.projects):
            apps, kept = self._apps(index, found)
            if not apps:
                self._note(f"{names[index]} is left out: it has no application that this computer can run")
                continue
            projects.append(self._project(index, found, names[index], apps))
            jobs += self._jobs(names[index], found, kept)
        if not projects:
            raise self.state.projects[0].section.error("project", "no project has an application this computer can run")
        if all(project.share == 0 for project in projects):
            raise self.state.projects[0].section.error("resource_share", "at least one project needs a share above 0")
        host = Host(
            processors=tuple(self.processors.values()),
            on=self.state.on,
            connected=self.state.connected,
            active=self.state.active,
            gpu_active=self.state.gpu_active,
            name=self.state.host_name,
            ram_bytes=self.state.ram_bytes,
        )
        host = self._with_owner(host)
        week_secs = self._time_of_week()
        notes = tuple(self.notes)
        try:
            return Scenario(host, tuple(projects), self.preferences, tuple(jobs), notes=notes, week_secs=week_secs)
        except ScenarioError as error:  # a fault that belongs to no single line
            raise ScenarioFileError(STATE_FILE, error.field, 0, error.why) from None

    def _with_owner(self, host: Host) -> Host:
        if self.state.is_active_measured:
            return without_hours(host, self.preferences, self._note)
        return with_use(host, self.preferences, self.cc_config.exclusive, self._note)

    def _time_of_week(self) -> float:
        if self.state.measured_at:
            return time_of_week(self.state.measured_at, self.state.utc_offset_secs)
        if not (self.preferences.compute_hours.is_always and self.preferences.network_hours.is_always):
            self._note("The file does not say when it was written. The scenario begins on Sunday at 0:00.")
        return 0.0

    def _note(self, text: str) -> None:
        if len(self.notes) < NOTES_MAX:
            self.notes[text] = None

    def _processors(self) -> dict[str, Processor]:
        processors = {processor.kind: processor for processor in self.state.processors}
        if self.cc_config.ncpus:
            processors[CPU] = replace(processors[CPU], instances=self.cc_config.ncpus)
        for kind in self.state.unknown_gpus:
            self._note(f"The {kind} is left out: the file does not say how fast it is")
        if self.cc_config.no_gpus and len(processors) > 1:
            processors = {CPU: processors[CPU]}
            self._note("All GPUs are left out because cc_config.xml disables them")
        return processors

    def _project_names(self) -> list[str]:
        """Names, each with its project's address where two projects have the same."""
        plain = [project.name for project in self.state.projects]
        names = [
            project.name if plain.count(project.name) == 1 else f"{project.name[:120]} ({project.url[:120]})"
            for project in self.state.projects
        ]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self.state.projects[index].section.error(
                    "master_url", "a second project of this name and address"
                )
        return names

    def _place(self, config: AppConfig) -> None:
        """Decide which projects an app_config.xml is for."""
        folder = Path(config.source.file).parent.name
        if folder:
            places = [at for at, project in enumerate(self.state.projects) if url_folder(project.url) == folder]
            missing = f"no project has the folder {folder[:100]}"
        else:
            projects = enumerate(self.state.projects)
            places = [at for at, project in projects if config.apps <= project.apps.keys()]
            missing = "no project has all its applications"
            if not config.apps and len(self.state.projects) > 1:
                places, missing = [], "it names no application, so put it in its project's folder"
        if not places:
            self._note(f"{config.source.file[:100]} has no effect: {missing}")
        for at in places:
            self.configs[at] = config

    def _project(self, index: int, found: StateProject, name: str, apps: list[App]) -> Project:
        config = self.configs.get(index)
        if found.finished:
            self._note(f"{name}: finished tasks in the file are left out")
        return Project(
            name=name,
            share=found.share,
            apps=tuple(apps),
            available=found.available,
            standing=found.standing,
            suspended=found.suspended,
            no_new_tasks=found.no_new_tasks,
            uses_dcf=found.uses_dcf,
            max_concurrent=config.project_max_concurrent if config else 0,
        )

    def _apps(self, index: int, found: StateProject) -> tuple[list[App], dict[str, list[StateVersion]]]:
        """The applications this computer can run, and for each which of its versions are left."""
        apps: list[App] = []
        kept: dict[str, list[StateVersion]] = {}
        for app in found.apps.values():
            if app.non_cpu_intensive:
                self._note(f"{found.name}: {app.name} is left out because it hardly uses the CPU")
                continue
            size, estimate, latency = self._job_sizes(found, app)
            usable = [(state, self._version(index, found, app, state)) for state in app.versions]
            pairs = [(state, version) for state, version in usable if version is not None]
            for state, version in pairs:
                if size.mean / version.flops < MIN_RUN_SECS:
                    raise state.section.error("flops", "its tasks would take less than a millisecond")
            if not pairs:
                self._note(f"{found.name}: {app.name} is left out because it has no version for this computer")
                continue
            kept[app.name] = [state for state, _ in pairs]
            config = self.configs.get(index)
            limit = config.max_concurrent.get(app.name, app.max_concurrent) if config else app.max_concurrent
            versions = tuple(version for _, version in pairs)
            apps.append(
                App(
                    app.name,
                    versions,
                    size,
                    Normal(estimate),
                    latency,
                    app.weight,
                    limit,
                    working_set_bytes=app.working_set_bytes,
                )
            )
        return apps, kept

    def _job_sizes(self, found: StateProject, app: StateApp) -> tuple[Normal, float, float]:
        """Size, estimate and time limit of an application's new jobs; of its first job where the file does not say."""
        first = next((job for job in found.jobs if job.app == app.name), None)
        estimate = app.estimate_flop
        if estimate is None:
            workunits = (flop for name, flop in found.workunits.values() if name == app.name)
            estimate = next(workunits, app.size.mean if app.size else DEFAULT_JOB_FLOP)
        latency = app.latency_secs
        if latency is None:
            latency = first.latency_secs if first and first.latency_secs >= 1 else DEFAULT_LATENCY_SECS
        return app.size or Normal(estimate), estimate, latency

    def _version(self, index: int, found: StateProject, app: StateApp, state: StateVersion) -> Version | None:
        """The version with its owner's settings and a speed; None when the computer has no processor for it."""
        version = state.version
        if version.gpu and (version.gpu not in self.processors or self._excluded(found, app, version.gpu)):
            return None
        config = self.configs.get(index)
        if config is not None:
            version = _with_usage(version, config, app.name, state.plan_class)
        if version.flops < 1:
            cpu_flops = version.cpus * self.processors[CPU].counted_flops
            gpu_flops = version.gpus * self.processors[version.gpu].counted_flops if version.gpu else 0
            version = replace(version, flops=cpu_flops + gpu_flops)
        return version

    def _excluded(self, found: StateProject, app: StateApp, kind: str) -> bool:
        return any(
            exclusion.url.rstrip("/") in ("", found.url.rstrip("/"))
            and exclusion.kind in ("", kind)
            and exclusion.app in ("", app.name)
            for exclusion in self.cc_config.exclusions
        )

    def _jobs(self, name: str, found: StateProject, kept: dict[str, list[StateVersion]]) -> list[StartJob]:
        jobs: list[StartJob] = []
        for job in found.jobs:
            version = _version_of(job, kept.get(job.app, []))
            if version is None:
                self._note(f"{name}: tasks whose version this computer cannot run are left out")
                continue
            latency = job.latency_secs if job.latency_secs >= 1 else DEFAULT_LATENCY_SECS
            jobs.append(StartJob(name, job.app, job.estimate_flop, job.estimate_flop, latency, version))
        return jobs


def _with_usage(version: Version, config: AppConfig, app: str, plan_class: str) -> Version:
    usages = [config.version_usage.get((app, plan_class), (None, None))]
    if version.gpu:
        usages.insert(0, config.gpu_usage.get(app, (None, None)))
    for gpus, cpus in usages:
        if gpus is not None and version.gpu:
            version = replace(version, gpus=gpus)
        if cpus is not None:
            version = replace(version, cpus=cpus)
    return version


def _version_of(job: StateJob, versions: list[StateVersion]) -> int | None:
    """Which of the versions the job is for: by number and plan class, and platform if several have these."""
    same = [
        index
        for index, version in enumerate(versions)
        if version.version_num == job.version_num and version.plan_class == job.plan_class
    ]
    exact = [index for index in same if versions[index].platform == job.platform]
    return next(iter(exact or same), None)


def url_folder(url: str) -> str:
    """The name of a project's folder in the client's data folder: its address without the scheme, made readable."""
    without_scheme = url.split("://", 1)[-1].rstrip("/")
    return re.sub(r"[^A-Za-z0-9.\-_]", "_", without_scheme)
