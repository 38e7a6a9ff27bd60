"""Where submissions lie in a queue, and what submitters get of a queue that is processed from its head."""

from __future__ import annotations

import random

import pytest

from scheduler.engine.submission.fair_queue import (
    FPOPS_PER_PLACE,
    LAST_PLACE,
    LONGEST_JOB,
    Queue,
    Window,
    places,
    window,
)
from scheduler.engine.submission.submitter_limits import RequestedJob, SubmitterLimits, UnderWay, excess

UNIT = FPOPS_PER_PLACE


class Line:
    """A queue that several submit to and that is worked off from its head, and what each has got, in FLOPs."""

    def __init__(self) -> None:
        self.draw = random.Random(1)
        self.jobs: list[tuple[int, str, float]] = []
        self.ends: dict[str, float] = {}
        self.got: dict[str, float] = {}
        self.newest = 1

    def submit(self, who: str, njobs: int, fpops: float = UNIT, share: float = 1.0) -> Window:
        queue = Queue(self.newest, self.jobs[0][0], self.jobs[-1][0]) if self.jobs else Queue(self.newest)
        made = window(queue, self.ends.get(who), [fpops] * njobs, share)
        self.jobs += [(made.start + int(self.draw.random() * made.width), who, fpops) for _ in range(njobs)]
        self.jobs.sort()
        self.ends[who] = made.end
        self.newest += njobs
        return made

    def send(self, fpops: float) -> dict[str, float]:
        """What each gets of the next jobs that need so much."""
        got = dict.fromkeys(self.ends, 0.0)
        while self.jobs and sum(got.values()) < fpops:
            _, who, its = self.jobs.pop(0)
            got[who] += its
        return got


@pytest.mark.parametrize(
    ("fpops", "njobs", "share"),
    [
        ((UNIT, UNIT), (4000, 4000), (1.0, 1.0)),
        ((UNIT, 10 * UNIT), (4000, 400), (1.0, 1.0)),  # by FLOPs, not by jobs
        ((10 * UNIT, 10 * UNIT), (4000, 4000), (3.0, 1.0)),
        ((UNIT / 2, UNIT / 2), (4000, 4000), (0.5, 1.0)),  # half a place counts as one
    ],
)
def test_submitters_get_their_shares_while_both_have_work(
    fpops: tuple[float, float], njobs: tuple[int, int], share: tuple[float, float]
) -> None:
    line = Line()
    for who in (0, 1):
        line.submit("ab"[who], njobs[who], fpops[who], share[who])
    got = line.send(2000 * min(fpops))
    part = share[0] / sum(share)
    # Of a draw with n jobs the standard deviation of a part is below sqrt(0.25 / n); the fewest jobs are 200 and 20.
    assert got["a"] / sum(got.values()) == pytest.approx(part, abs=0.1)


def test_whoever_comes_later_does_not_wait_for_a_long_queue() -> None:
    line = Line()
    line.submit("greedy", 40_000)
    line.send(1000 * UNIT)
    line.submit("other", 1000)
    got = line.send(4000 * UNIT)
    # 1,000 jobs over 39,000 / 16 = 2,400 places, among 2,400 of the other: they are through with 3,400.
    assert got["other"] == 1000 * UNIT


def test_many_small_submissions_get_no_more_than_one_large() -> None:
    line = Line()
    line.submit("large", 5000)
    for _ in range(500):
        line.submit("small", 10)
    got = line.send(4000 * UNIT)
    assert got["small"] / 4000 / UNIT == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("share", [1.0, 100.0])
def test_single_small_jobs_take_no_more_of_a_queue_than_their_flops(share: float) -> None:
    end: float | None = None
    for _ in range(100):
        end = window(Queue(1, 1, 1000), end, [UNIT], share).end
    assert end == pytest.approx(1 + 100 / share)


def test_places_are_of_64_bits_however_much_was_submitted() -> None:
    made = window(Queue(1, 1, LAST_PLACE), 1e30, [1e25] * 1000, 0.01)
    assert made.start + made.width < 2**63


def test_a_pause_saves_nothing_up() -> None:
    line = Line()
    line.submit("a", 1000)
    line.submit("b", 3000)
    line.send(3000 * UNIT)
    line.submit("a", 1000)
    got = line.send(1000 * UNIT)
    assert got["a"] / 1000 / UNIT == pytest.approx(0.5, abs=0.07)


def test_an_empty_queue_owes_nobody_anything() -> None:
    line = Line()
    line.submit("a", 1000)
    line.send(1000 * UNIT)
    assert line.submit("a", 1).start == line.newest - 1


@pytest.mark.parametrize("njobs", [1, 2, 100])
def test_a_small_submission_is_shuffled_over_a_few_hundred_jobs_and_a_sixteenth_of_the_queue(njobs: int) -> None:
    assert window(Queue(1), None, [5 * UNIT] * njobs, 1.0) == Window(1, 5 * 256 + 1, 1 + 5 * njobs)
    assert window(Queue(1, 1, 160_001), None, [UNIT] * njobs, 1.0).width == 10_001


@pytest.mark.parametrize(
    ("fpops", "expected"), [(0.0, 1.0), (UNIT / 10, 1.0), (2.5 * UNIT, 2.5), (1e30, LONGEST_JOB), (float("inf"), 1e9)]
)
def test_a_job_takes_places_for_its_flops(fpops: float, expected: float) -> None:
    assert places(fpops) == expected


HOUR = 3600
SMALL = RequestedJob(1e12, 2, 0, HOUR)
LIMITS = SubmitterLimits(max_priority=5, max_jobs=10, max_fpops=5e13, app_names=["alpine"])


@pytest.mark.parametrize(
    ("jobs", "before", "field"),
    [
        ([SMALL] * 10, UnderWay(0, 0), None),
        ([SMALL, SMALL._replace(priority=5)], UnderWay(8, 0), None),
        ([SMALL, SMALL._replace(priority=6)], UnderWay(0, 0), "jobs[1].priority"),
        ([SMALL._replace(delay_bound_secs=HOUR - 1)], UnderWay(0, 0), "jobs[0].delay_bound_secs"),
        # 20 GFLOPS need 5,000 s for it.
        ([SMALL._replace(fpops=1e14, ncopies=0, delay_bound_secs=5000)], UnderWay(0, 0), "jobs[0].delay_bound_secs"),
        ([SMALL._replace(fpops=1e14, ncopies=0, delay_bound_secs=5001)], UnderWay(0, 0), None),
        ([SMALL] * 3, UnderWay(8, 0), "jobs"),
        ([SMALL] * 2, UnderWay(0, 4.6e13), None),
        ([SMALL] * 3, UnderWay(0, 4.6e13), "jobs"),
    ],
)
def test_a_submission_is_within_its_submitters_limits(
    jobs: list[RequestedJob], before: UnderWay, field: str | None
) -> None:
    fault = excess(LIMITS, "alpine", jobs, before)
    assert (fault and fault.field) == field


def test_a_submitter_may_be_bound_to_apps() -> None:
    fault = excess(LIMITS, "primes", [SMALL], UnderWay(0, 0))
    assert fault is not None and fault.field == "app"
    assert excess(SubmitterLimits(0), "primes", [SMALL] * 1000, UnderWay(10**9, 1e30)) is None
