"""Shares and figures are weighted by the time for which they held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Attach,
    Availability,
    ChangeShare,
    Detach,
    Event,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Suspend,
    Version,
)
from emulator.engine.timeline.results import Result

HOUR = Normal(3600e9)
APP = App("x", (Version(1e9),), HOUR, HOUR, 10 * DAY_SECS)
A, B = Project("A", 75, (APP,)), Project("B", 25, (APP,))
LATER = replace(B, attached=False)
HOST = Host((Processor(CPU, 1, 1e9),))


def happen(*events: Event, projects: tuple[Project, ...] = (A, B), host: Host = HOST, days: float = 10.0) -> Result:
    return run(Scenario(host, projects, Preferences(0.05, 0.05), events=events), Rec(), days, timeline=False)


@pytest.mark.parametrize(
    ("events", "projects", "aims"),
    [
        ((), (A, B), (0.75, 0.25)),
        # The last of ten days at 25 %.
        ((Attach(9 * DAY_SECS, "B"),), (A, LATER), (0.975, 0.025)),
        # The first four of ten days.
        ((Detach(4 * DAY_SECS, "B"),), (A, B), (0.9, 0.1)),
        # Never.
        ((), (A, LATER), (1.0, 0.0)),
        # 25 % for five days, then 75 of 150.
        ((ChangeShare(5 * DAY_SECS, "B", 75),), (A, B), (0.625, 0.375)),
        # Suspended for two days: 0.8 * 0.25.
        ((Suspend(2 * DAY_SECS, "B", True), Suspend(4 * DAY_SECS, "B", False)), (A, B), (0.8, 0.2)),
        # All are suspended for half the time: the other half counts alone.
        ((Suspend(5 * DAY_SECS, "A", True), Suspend(5 * DAY_SECS, "B", True)), (A, B), (0.75, 0.25)),
    ],
)
def test_a_share_counts_for_as_long_as_it_held(
    events: tuple[Event, ...], projects: tuple[Project, ...], aims: tuple[float, float]
) -> None:
    assert [row.share for row in happen(*events, projects=projects).projects] == pytest.approx(aims)


def test_a_share_counts_by_what_the_computer_could_compute_meanwhile() -> None:
    host = replace(HOST, active=Availability(0.5, 3 * DAY_SECS))
    half = happen(Attach(5 * DAY_SECS, "B"), projects=(A, LATER), host=host)
    whole = happen(Attach(5 * DAY_SECS, "B"), projects=(A, LATER))
    assert whole.projects[1].share == pytest.approx(0.125)
    assert 0 <= half.projects[1].share <= 0.25 and half.projects[1].share != pytest.approx(0.125, abs=0.01)


def test_a_project_that_comes_at_the_end_or_never_distorts_nothing() -> None:
    alone = happen(projects=(A,), days=100.0).figures
    never = happen(projects=(A, LATER), days=100.0).figures
    late = happen(Attach(99 * DAY_SECS, "B"), projects=(A, LATER), days=100.0).figures
    assert never == alone
    assert (never.share_violation, never.share_violation_normalised) == (0, 0)
    # B takes the last day nearly whole, as its recent credit is 0: 1/100 - 0.25/100, twice.
    assert 0 < late.share_violation < 0.02
    # A stands still for nearly all of the last day: sqrt(1/3/100) days = 4988 s, over 1.01 squared periods of 3600 s:
    # x = 1.36, x / (1 + x) = 0.58. Had B's 99 days counted, it would be 0.99.
    assert 0.5 < late.monotony < 0.58


def test_what_a_project_does_not_run_before_it_is_attached_or_while_suspended_is_no_gap() -> None:
    both = happen(days=20.0).figures.monotony
    suspended = happen(Suspend(10 * DAY_SECS, "B", True), days=20.0).figures
    left = happen(Detach(10 * DAY_SECS, "B"), days=20.0).figures
    assert suspended.monotony < both + 0.1
    assert left.monotony < both + 0.1


def test_the_normalised_violation_is_1_if_all_work_goes_to_the_smallest_share() -> None:
    only_b = happen(projects=(replace(A, apps=()), B))
    # A wanted 0.75 and got nothing: 0.75 + 0.75, the most that is possible with these shares.
    assert only_b.figures.share_violation == pytest.approx(1.5)
    assert only_b.figures.share_violation_normalised == pytest.approx(1.0)
