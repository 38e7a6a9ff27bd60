"""Each of BOINC's quirks does something of its own, and only where it applies."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from emulator.engine.policies.rec import Rec, RecLetter
from emulator.engine.quirks import BOINC, Quirks
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    App,
    Availability,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Standing,
    StartJob,
    Version,
)
from emulator.engine.timeline.results import Figures, ProjectResult
from emulator.files.presets import preset

HOUR_FLOP: Final = 3600e9


def app(name: str, version: Version, *, hours: float = 2.0, latency_hours: float = 240.0) -> App:
    size = hours * HOUR_FLOP
    return App(name, (version,), Normal(size, 0.1 * size), Normal(size), latency_hours * 3600)


CPU_APP = app("c", Version(1e9))
GPU_APP = app("g", Version(1e9, cpus=0.1, gpu="NVIDIA", gpus=0.5), latency_hours=9.0)
TIGHT = app("t", Version(1e9), hours=4.0, latency_hours=6.0)


def two(*projects: Project, host: Host | None = None) -> Scenario:
    return Scenario(host or Host((Processor(CPU, 2, 1e9),)), projects, Preferences(0.1, 0.5))


OFTEN_OFF = Host((Processor(CPU, 2, 1e9),), on=Availability(0.5, 7200.0))
WITH_GPUS = Host((Processor(CPU, 2, 1e9), Processor("NVIDIA", 2, 10e9, 0.2)))
PLAIN = two(Project("A", 3, (CPU_APP,)), Project("B", 1, (CPU_APP,)))
TIGHT_ONE = two(Project("A", 1, (TIGHT,)), Project("B", 1, (CPU_APP,)))
# Some jobs have little time, and others of the same project much.
TIGHT_MANY = two(
    Project(
        "A",
        5,
        (
            app("a", Version(1e9), latency_hours=4.0),
            app("b", Version(1e9), hours=5.0, latency_hours=50.0),
            app("c", Version(1e9), hours=1.0, latency_hours=10.0),
        ),
    ),
    Project(
        "B",
        1,
        (app("d", Version(1e9), hours=3.0, latency_hours=30.0), app("e", Version(1e9), latency_hours=3.2)),
    ),
    host=Host((Processor(CPU, 1, 1e9),)),
)
BY_LETTER: Final = ("runnable_shares", "no_edf_simulation")
LONG = app("l", Version(1e9), hours=12.0)
DOWN = preset("s5_sporadic_project").scenario
MIXED = two(Project("A", 1, (GPU_APP,)), Project("B", 2, (GPU_APP, TIGHT, CPU_APP)), host=WITH_GPUS)

WHERE: Final[dict[str, Scenario]] = {
    "estimate_sampled": PLAIN,
    "doubled_elapsed": two(Project("A", 3, (CPU_APP,), uses_dcf=True), Project("B", 1, (CPU_APP,))),
    "gpu_count_squared": MIXED,
    "computes_while_off": two(Project("A", 3, (CPU_APP,)), host=OFTEN_OFF),
    "last_project_first": TIGHT_MANY,
    "one_day_retry": DOWN,
    "buffer_before_deadline": TIGHT_ONE,
    "no_edf_simulation": MIXED,
    "overcounted_misses": TIGHT_MANY,
    "jobs_kept_by_deadline": TIGHT_MANY,
    "runnable_shares": two(
        *(Project(name, share, (LONG,)) for name, share in (("A", 3), ("B", 1))),
        Project("C", 9, (LONG,), standing=Standing(rec=1e4), no_new_tasks=True),
    ),
    "hour_of_day_bump": PLAIN,
    "share_of_instances": Scenario(
        Host((Processor(CPU, 8, 1e9),)),
        tuple(Project(name, share, (LONG,)) for name, share in (("A", 3), ("B", 2), ("C", 1))),
        Preferences(0.1, 0.0),
    ),
    "one_backup_job": two(Project("A", 1, (CPU_APP,), has_work=False), Project("B", 0, (CPU_APP,))),
    "reports_after_an_hour": PLAIN,
    "request_not_counted": two(
        *(Project(name, share, (app("x", Version(1e9), hours=4.0),)) for name, share in (("A", 6), ("B", 3), ("C", 1))),
        host=Host((Processor(CPU, 1, 1e9),)),
    ),
    # A job that is not finished long after its deadline.
    "wasted_when_reported": replace(PLAIN, jobs=(StartJob("A", "c", 500 * HOUR_FLOP, 500 * HOUR_FLOP, 36_000.0),)),
}


def outcome(
    scenario: Scenario, quirks: Quirks, days: float = 15.0, *, by_letter: bool = False
) -> tuple[Figures, tuple[ProjectResult, ...]]:
    # Only the letter compares shares of all REC, and sends the busy time of the jobs that miss their deadlines.
    by_letter = by_letter or quirks.runnable_shares or quirks.no_edf_simulation
    policy = RecLetter() if by_letter else Rec()
    result = run(scenario, policy, days, quirks=quirks, timeline=False)
    return result.figures, result.projects


def test_all_quirks_are_looked_at_and_boinc_has_them_all() -> None:
    assert set(WHERE) == set(Quirks.__slots__)
    assert all(getattr(BOINC, name) for name in Quirks.__slots__)
    assert not any(getattr(Quirks(), name) for name in Quirks.__slots__)


@pytest.mark.parametrize("name", WHERE)
def test_each_changes_what_it_is_about(name: str) -> None:
    scenario = WHERE[name]
    days = 40.0 if scenario is TIGHT_MANY else 5.0 if scenario is MIXED else 15.0
    assert outcome(scenario, replace(Quirks(), **{name: True}), days) != outcome(
        scenario, Quirks(), days, by_letter=name in BY_LETTER
    )


def test_a_computer_that_computes_while_off_is_never_idle() -> None:
    scenario = WHERE["computes_while_off"]
    _, (with_it, *_others) = outcome(scenario, Quirks(computes_while_off=True))
    _, (without, *_others) = outcome(scenario, Quirks())
    assert with_it.jobs > 1.5 * without.jobs
