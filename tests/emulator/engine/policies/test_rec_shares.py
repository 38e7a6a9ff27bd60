"""Under `rec` each project gets its share, however long its jobs are and however large the buffer."""

from itertools import product

import pytest

from emulator.engine.policies.rec import Rec, RecLetter
from emulator.engine.run import run
from emulator.engine.scenario import CPU, App, Host, Normal, Preferences, Processor, Project, Scenario, Version

Buffer = tuple[float, float]
NONE, USUAL, LARGE = (0.0, 0.0), (0.1, 0.5), (2.0, 3.0)
SHARES = ((80, 20), (1, 1), (60, 30, 10), (40, 30, 15, 10, 5), (1, 1, 1, 1, 1))


def violation(
    cpus: int, hours: tuple[int, ...], shares: tuple[int, ...], buffer: Buffer, days: float, policy: Rec | None = None
) -> float:
    """The largest difference between a project's part and its share; project i has jobs of `hours[i]`, repeated."""
    projects = []
    for number, share in enumerate(shares):
        size = Normal(hours[number % len(hours)] * 3600e9)
        projects.append(Project(f"P{number}", share, (App("a", (Version(1e9),), size, size, 1000 * 86400.0),)))
    scenario = Scenario(Host((Processor(CPU, cpus, 1e9),)), tuple(projects), Preferences(*buffer))
    result = run(scenario, policy or Rec(), days, timeline=False)
    return max(abs(project.got_fraction - project.share) for project in result.projects)


@pytest.mark.parametrize(
    ("cpus", "hours", "shares", "buffer"),
    [
        (4, (24,), (80, 20), USUAL),
        (4, (72,), (80, 20), USUAL),
        (4, (24,), (80, 20), NONE),
        (16, (240,), (80, 20), NONE),
        (4, (240, 1), (80, 20), USUAL),
        (16, (2, 72, 240), (1, 1, 1, 1, 1), NONE),
        (1, (72,), (40, 30, 15, 10, 5), LARGE),
        (4, (240,), (40, 30, 15, 10, 5), NONE),
    ],
)
def test_shares_are_honoured_within_one_percent(
    cpus: int, hours: tuple[int, ...], shares: tuple[int, ...], buffer: Buffer
) -> None:
    assert violation(cpus, hours, shares, buffer, 400.0) < 0.01


def test_shares_are_honoured_with_short_jobs_and_no_buffer() -> None:
    assert violation(4, (2,), (80, 20), NONE, 100.0) < 0.01


def test_by_the_letter_they_are_not() -> None:
    # With an empty buffer the queue outweighs REC, so both get the same.
    assert violation(4, (24,), (80, 20), NONE, 400.0, RecLetter()) == pytest.approx(0.3, abs=0.01)
    assert violation(4, (72,), (80, 20), USUAL, 400.0, RecLetter()) > 0.1


def test_a_half_life_that_is_set_is_kept() -> None:
    # Ten days forget a job of ten days of the project with 20 % before its next one.
    assert violation(1, (240,), (80, 20), NONE, 400.0, Rec(10.0)) > 0.05
    assert violation(1, (240,), (80, 20), NONE, 400.0, Rec()) < 0.01


@pytest.mark.long
@pytest.mark.parametrize(
    ("cpus", "hours", "shares", "buffer"),
    list(product((1, 4, 16), ((1,), (24,), (72,), (240,), (240, 1), (2, 72, 240)), SHARES, (NONE, USUAL, LARGE))),
)
def test_the_whole_grid(cpus: int, hours: tuple[int, ...], shares: tuple[int, ...], buffer: Buffer) -> None:
    assert violation(cpus, hours, shares, buffer, 400.0) < 0.01
