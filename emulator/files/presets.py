"""The examples that the pages offer: those of the documents, a folder of small computers, and volunteers' cases.

Each has the policy and the number of days that show its point; emulator.pages.texts.preset_texts describes it in words.
The documents' examples are constructed here according to section 15 of the emulator document ("The 6.6 examples as
scenarios"). The small computers are files as a client writes them, in emulator/data/scenarios; the cases are in
emulator/files/reported_cases.py. No Django, no clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    GPU_EFFICIENCY,
    App,
    Attach,
    Host,
    NewApp,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    StartJob,
    Version,
)
from emulator.files.reported_cases import REPORTED, ReportedCase
from emulator.files.scenario import read_folder

FOLDER: Final = Path(__file__).parents[1] / "data" / "scenarios"
YEAR_DAYS: Final = 365.0
_CPU_FLOPS: Final = 1e9
_GPU_FLOPS: Final = 2e9  # effective; the peak is five times as much
_HOUR_SECS: Final = 3600.0
_NVIDIA: Final = "NVIDIA"


@dataclass(frozen=True)
class Preset:
    """One example scenario. `policy` is a name that `manage.py emulate --policy` accepts."""

    key: str
    policy: str
    days: float
    make: Callable[[], Scenario]
    case: ReportedCase | None = None

    @property
    def scenario(self) -> Scenario:
        """Return the scenario, newly made or read from its folder; its name is the preset's key."""
        return replace(self.make(), name=self.key)


def _host(cpus: int, *, gpu: bool = False) -> Host:
    processors = [Processor(CPU, cpus, _CPU_FLOPS)]
    if gpu:
        processors.append(Processor(_NVIDIA, 1, _GPU_FLOPS / GPU_EFFICIENCY, GPU_EFFICIENCY))
    return Host(tuple(processors))


def _cpu_app(name: str, run_secs: float = _HOUR_SECS, latency_secs: float = 10 * DAY_SECS) -> App:
    size = Normal(run_secs * _CPU_FLOPS)
    return App(name, (Version(_CPU_FLOPS),), size, size, latency_secs)


def _gpu_app(name: str) -> App:
    size = Normal(_HOUR_SECS * _GPU_FLOPS)
    return App(name, (Version(_GPU_FLOPS, cpus=0.01, gpu=_NVIDIA, gpus=1.0),), size, size, 10 * DAY_SECS)


def gpu_and_cpu() -> Scenario:
    """6.6 document, example 1: A has only GPU jobs, B both; the GPU is twice as fast as the CPU."""
    a = Project("A", 100, (_gpu_app("a_gpu"),))
    b = Project("B", 100, (_gpu_app("b_gpu"), _cpu_app("b_cpu")))
    return Scenario(_host(1, gpu=True), (a, b))


def year_long_job() -> Scenario:
    """6.6 document, example 2: A's jobs take a year and have no slack; B has jobs of an hour."""
    year_secs = YEAR_DAYS * DAY_SECS
    a = Project("A", 100, (_cpu_app("a", year_secs, year_secs),))
    return Scenario(_host(1), (a, Project("B", 100, (_cpu_app("b"),))))


def year_long_job_then_new_project() -> Scenario:
    """6.6 document, example 2, variation: C is attached when A's job ends."""
    base = year_long_job()
    c = Project("C", 100, (_cpu_app("c"),), attached=False)
    return replace(base, projects=(*base.projects, c), events=(Attach(YEAR_DAYS * DAY_SECS, "C"),))


def late_gpu_app() -> Scenario:
    """6.6 document, example 3: A has GPU jobs, B only CPU jobs; after a year B gets a GPU application."""
    a = Project("A", 100, (_gpu_app("a_gpu"),))
    b = Project("B", 100, (_cpu_app("b_cpu"),))
    return Scenario(_host(1, gpu=True), (a, b), events=(NewApp(YEAR_DAYS * DAY_SECS, "B", _gpu_app("b_gpu")),))


def two_processors_75_25() -> Scenario:
    """2005 text, "We address the goals using result preemption": two processors, shares 75 and 25."""
    return Scenario(_host(2), (Project("A", 75, (_cpu_app("a", 4 * _HOUR_SECS),)), Project("B", 25, (_cpu_app("b"),))))


def months_long_job() -> Scenario:
    """2005 text, "Scheduler RPC policy": A's jobs take months, and must not keep B's from being fetched."""
    a = Project("A", 100, (_cpu_app("a", 90 * DAY_SECS, 360 * DAY_SECS),))
    return Scenario(_host(1), (a, Project("B", 100, (_cpu_app("b", 2 * _HOUR_SECS),))))


def shortfall() -> Scenario:
    """Client scheduling document, "Round-robin simulation", its picture: a shortfall of 13.

    The text gives only the sum. Here the unit is an hour: four CPUs have jobs of 4, 6, 7 and 10 hours, and the buffer
    holds 10, so (10 - 4) + (10 - 6) + (10 - 7) + (10 - 10) = 13 hours are short.
    """
    flops = [hours * _HOUR_SECS * _CPU_FLOPS for hours in (4, 6, 7, 10)]
    return Scenario(
        _host(4),
        (Project("A", 100, (_cpu_app("a"),)),),
        Preferences(work_buf_min_days=5 / 24, work_buf_additional_days=5 / 24),
        jobs=tuple(StartJob("A", "a", flop, flop, 10 * DAY_SECS) for flop in flops),
    )


_DOCUMENTS: Final = (
    Preset("document-gpu-and-cpu", "rec", 100, gpu_and_cpu),
    Preset("document-year-long-job", "ltd", 3 * YEAR_DAYS, year_long_job),
    Preset("document-year-long-job-new-project", "ltd", YEAR_DAYS + 60, year_long_job_then_new_project),
    Preset("document-late-gpu-app", "ltd", YEAR_DAYS + 30, late_gpu_app),
    Preset("document-two-processors", "debt", 20, two_processors_75_25),
    Preset("document-months-long-job", "debt", 100, months_long_job),
    Preset("document-shortfall", "rec", 2, shortfall),
)

# Folder and days; all with today's policy.
_FOLDERS: Final = (
    ("s1_two_equal_cpu", 30),
    ("s2_gpu_example1", 30),
    ("s3_tight_deadlines", 30),
    ("s3b_tight_deadlines_big_buffer", 30),
    ("s4_shares_60_30_10", 30),
    ("s5_sporadic_project", 30),
    ("s6_long_job_no_slack", 100),
    ("n10_projects", 30),
    ("n50_projects", 30),
    ("q060_min_jobs", 10),
    ("q010_min_jobs", 10),
)


@cache
def _folder(name: str) -> Scenario:
    return read_folder(FOLDER / name)


PRESETS: Final[tuple[Preset, ...]] = (
    *_DOCUMENTS,
    *(Preset(name, "rec", days, partial(_folder, name)) for name, days in _FOLDERS),
    *(Preset(f"boinc-{case.issue}", "rec", case.days, case.make, case) for case in REPORTED),
)
"""All presets: the documents', small computers, and reported cases."""


def preset(key: str) -> Preset:
    """Return the preset of that key; KeyError if there is none."""
    for candidate in PRESETS:
        if candidate.key == key:
            return candidate
    raise KeyError(key)
