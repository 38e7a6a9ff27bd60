"""The examples that the pages offer: those of the documents, and a folder of small computers.

Each has a sentence on what it shows, the policy and the number of days to show it. The documents' examples are made
here as the emulator document gives them in section 15 ("The 6.6 examples as scenarios"). The others are files as a
client writes them, in emulator/data/scenarios. No Django, no clock.
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
    Processor,
    Project,
    Scenario,
    Version,
)
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
    title: str
    shows: str
    policy: str
    days: float
    make: Callable[[], Scenario]

    @property
    def scenario(self) -> Scenario:
        """The scenario, made anew or read from its folder; it carries the preset's key as its name."""
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


_DOCUMENTS: Final = (
    Preset(
        "document-gpu-and-cpu",
        "A has only GPU jobs, B has both (6.6, example 1)",
        "The aim is equal totals: the CPU all for B, the GPU 75 % for A. The modern policy gets there; long-term debt "
        "gets there only without its own rule of who may collect debt.",
        "rec",
        100,
        gpu_and_cpu,
    ),
    Preset(
        "document-year-long-job",
        "A job of a year without slack (6.6, example 2)",
        "After A's year, long-term debt gives B the CPU for a year; the modern policy forgets within weeks.",
        "ltd",
        3 * YEAR_DAYS,
        year_long_job,
    ),
    Preset(
        "document-year-long-job-new-project",
        "A new project after a job of a year (6.6, example 2, variation)",
        "C, attached when A's job ends, starts free of debt and shares the CPU with B at once.",
        "ltd",
        YEAR_DAYS + 60,
        year_long_job_then_new_project,
    ),
    Preset(
        "document-late-gpu-app",
        "A GPU application after a year (6.6, example 3)",
        "When B gets a GPU application after a year, A and B share the GPU at once, because a project that is "
        "backed off collects no debt.",
        "ltd",
        YEAR_DAYS + 30,
        late_gpu_app,
    ),
    Preset(
        "document-two-processors",
        "Two processors, shares 75 and 25 (2005)",
        "One processor runs A all the time, the other goes back and forth between A and B, so A has two begun jobs.",
        "debt",
        20,
        two_processors_75_25,
    ),
    Preset(
        "document-months-long-job",
        "Jobs of months beside jobs of hours (2005)",
        "A project's work counts for its share at most, so B is asked for work although A's job fills the buffer.",
        "debt",
        100,
        months_long_job,
    ),
)

# Folder, title, what it shows, days; all with today's policy.
_FOLDERS: Final = (
    ("s1_two_equal_cpu", "Two equal projects, four CPUs", "The plain case: equal shares, no deadline in danger.", 100),
    ("s2_gpu_example1", "One CPU and one GPU", "A has only GPU jobs, B both; sizes vary a little.", 100),
    ("s3_tight_deadlines", "Tight deadlines, small buffer", "A's jobs have to begin soon after they come.", 100),
    (
        "s3b_tight_deadlines_big_buffer",
        "Tight deadlines, large buffer",
        "The same jobs with a buffer of half a day: what is fetched early may be late, and shares suffer.",
        100,
    ),
    ("s4_shares_60_30_10", "Shares of 60, 30 and 10", "How near each project comes to its share.", 100),
    ("s5_sporadic_project", "A project that is often down", "B's server is up 30 % of the time.", 100),
    ("s6_long_job_no_slack", "A job of 40 days without slack", "What B gets while A's job must run, and after.", 100),
    ("n10_projects", "Ten projects, eight CPUs", "How the projects take turns.", 100),
    ("n50_projects", "Fifty projects, eight CPUs", "Many small shares, and how long the rarest waits.", 100),
    ("q060_min_jobs", "A queue of jobs of an hour", "A buffer of two days with jobs of an hour.", 10),
    ("q010_min_jobs", "A long queue of short jobs", "A buffer of two days with jobs of ten minutes.", 10),
)


@cache
def _folder(name: str) -> Scenario:
    return read_folder(FOLDER / name)


PRESETS: Final[tuple[Preset, ...]] = (
    *_DOCUMENTS,
    *(Preset(name, title, shows, "rec", days, partial(_folder, name)) for name, title, shows, days in _FOLDERS),
)
"""All presets, the documents' first."""


def preset(key: str) -> Preset:
    """The preset of that key; KeyError if there is none."""
    for found in PRESETS:
        if found.key == key:
            return found
    raise KeyError(key)
