"""Forecasts of batches, compared with when they are done in a project that is simulated job by job."""

from __future__ import annotations

import heapq
import random
import statistics
from collections import deque
from dataclasses import dataclass, field, replace

import pytest

from scheduler.engine.submission.fair_queue import Queue, window
from scheduler.engine.submission.forecast import MIN_GRANTED, Forecast, GrantedResult, OpenWork, RecentResults, forecast

HOUR, DAY = 3600.0, 86_400.0
DEADLINE = 3 * DAY
SPAN = 3 * DAY


@dataclass
class Batch:
    """A batch of results of one copy each."""

    owner: str
    fpops: float
    njobs: int
    left: int
    out: list[float] = field(default_factory=list)  # when each that is out was sent
    done_at: float | None = None
    told: list[tuple[float, Forecast]] = field(default_factory=list)


class Project:
    """Computers of many speeds, some of which are switched off at night, fetch jobs from the head of the queue; some
    jobs are never reported, and are sent again at their deadline.
    """

    def __init__(self, seed: int, ncomputers: int = 60) -> None:
        self.draw = random.Random(seed)
        self.speeds = [1e9 * self.draw.lognormvariate(1.0, 0.5) for _ in range(ncomputers)]
        self.by_night = [self.draw.random() < 0.3 for _ in range(ncomputers)]
        self.queue: list[tuple[int, int, int, Batch]] = []  # rank, place, number
        self.ends: dict[str, float] = {}
        self.events: list[tuple[float, int, str, object]] = []
        self.granted: deque[tuple[float, float, float]] = deque()
        self.lost: deque[float] = deque()
        self.number = 0
        self.now = 0.0
        self.batches: list[Batch] = []
        for computer in range(ncomputers):
            self.at(self.draw.random() * HOUR, "ask", computer)

    def at(self, when: float, what: str, about: object) -> None:
        self.number += 1
        heapq.heappush(self.events, (when, self.number, what, about))

    def submit(self, owner: str, njobs: int, fpops: float) -> Batch:
        waiting = [place for rank, place, _, _ in self.queue if rank == 0]
        queue = Queue(self.number, min(waiting), max(waiting)) if waiting else Queue(self.number)
        made = window(queue, self.ends.get(owner), [fpops] * njobs, 1.0)
        self.ends[owner] = made.end
        batch = Batch(owner, fpops, njobs, njobs)
        for _ in range(njobs):
            self.number += 1
            place = made.start + int(self.draw.random() * made.width)
            heapq.heappush(self.queue, (0, place, self.number, batch))
        self.batches.append(batch)
        return batch

    def run(self, until: float) -> None:
        while self.events and self.events[0][0] <= until:
            self.now, _, what, about = heapq.heappop(self.events)
            if what == "ask":
                assert isinstance(about, int)
                self.ask(about)
            else:
                assert isinstance(about, tuple)
                self.end(what, *about)
        self.now = until

    def ask(self, computer: int) -> None:
        if self.by_night[computer] and self.now % DAY < DAY / 3:
            self.at(self.now + DAY / 3 - self.now % DAY, "ask", computer)
            return
        if not self.queue:
            self.at(self.now + HOUR * (0.5 + self.draw.random()), "ask", computer)
            return
        _, _, _, batch = heapq.heappop(self.queue)
        batch.out.append(self.now)
        secs = batch.fpops / self.speeds[computer] * self.draw.uniform(0.9, 1.3)
        if self.draw.random() < 0.02:
            self.at(self.now + DEADLINE, "lost", (batch, self.now))
        else:
            # Reported with the next request, up to some hours later.
            self.at(self.now + secs + self.draw.expovariate(1 / HOUR), "reported", (batch, self.now))
        self.at(self.now + secs, "ask", computer)

    def end(self, what: str, batch: Batch, sent_at: float) -> None:
        batch.out.remove(sent_at)
        if what == "lost":
            self.lost.append(self.now)
            self.number += 1
            heapq.heappush(self.queue, (-1, 0, self.number, batch))
            return
        self.granted.append((self.now, batch.fpops, self.now - sent_at))
        batch.left -= 1
        if not batch.left:
            batch.done_at = self.now

    def tell(self, batch: Batch) -> None:
        """What is known of the batch, as the site reads it."""
        own = [(rank, place) for rank, place, _, its in self.queue if its is batch]
        ahead = sum(its.fpops for rank, place, _, its in self.queue if own and (rank, place) <= max(own))
        since = self.now - SPAN
        lately = RecentResults(
            [GrantedResult(self.now - at, fpops, secs) for at, fpops, secs in self.granted if at > since],
            SPAN,
            sum(at > since for at in self.lost),
        )
        part = 1 / len({each.owner for each in self.batches})
        out = [self.now - sent_at for sent_at in batch.out]
        left = OpenWork(len(own) * batch.fpops, ahead, part, len(own), out, DEADLINE)
        if told := forecast(lately, left):
            batch.told.append((self.now, told))


def simulated(seed: int) -> list[Batch]:
    """Three weeks of three submitters; what each batch was told when it came, and when half of it was done."""
    project = Project(seed)
    project.submit("warm", 3000, 4e13)
    project.run(4 * DAY)
    batches = []
    for day in range(4, 18):
        project.run(day * DAY + project.draw.random() * DAY / 2)
        batch = project.submit(
            project.draw.choice("abc"), int(project.draw.uniform(20, 500)), project.draw.choice((2e13, 4e13, 8e13))
        )
        project.tell(batch)
        batches.append(batch)
        project.run((day + 1) * DAY)
        for each in batches:
            if each.done_at is None and each.left < each.njobs / 2 and len(each.told) == 1:
                project.tell(each)
    project.run(80 * DAY)
    return batches


def test_batches_are_done_within_the_range_that_was_told() -> None:
    forecasts = [
        (its.earliest_secs, batch.done_at - at, its.latest_secs)
        for seed in range(6)
        for batch in simulated(seed)
        for at, its in batch.told
        if batch.done_at is not None
    ]
    assert len(forecasts) > 6 * 20
    assert sum(earliest <= after <= latest for earliest, after, latest in forecasts) >= 0.9 * len(forecasts)
    # And the ranges say something: half of them are narrower than one and a half times what was left.
    assert statistics.median((latest - earliest) / after for earliest, after, latest in forecasts) < 1.5


STEADY = RecentResults([GrantedResult(n * 60.0, 1e13, 1000.0 + n) for n in range(1000)], 60_000.0, 0)
WAITING = OpenWork(1e14, 1e15, 1.0, 10, (), 2 * DAY)


def test_a_steady_project_has_a_narrow_range() -> None:
    # 1e13 FLOPs a minute: 1e15 are sent in 6,000 s, and the last of ten is out for 1,000 to 2,000 s.
    prediction = forecast(STEADY, WAITING)
    assert prediction is not None
    assert prediction == pytest.approx((7300, 8000), abs=400)


@pytest.mark.parametrize(
    ("left", "is_later"),
    [
        (replace(WAITING, part=0.05), True),  # others may submit: then 1e14 take as long as 2e15
        (replace(WAITING, fpops_ahead=2e15), True),
        (replace(WAITING, nunsent=0, fpops=0.0, fpops_ahead=0.0, out_secs=(500.0,)), False),
    ],
)
def test_the_range_follows_what_is_left(left: OpenWork, is_later: bool) -> None:
    told, before = forecast(STEADY, left), forecast(STEADY, WAITING)
    assert told is not None and before is not None
    assert (told.latest_secs > before.latest_secs) == is_later


def test_what_is_out_for_too_long_comes_after_its_deadline() -> None:
    left = replace(WAITING, nunsent=0, fpops=0.0, fpops_ahead=0.0, out_secs=(DAY,))
    prediction = forecast(replace(STEADY, nlost=5), left)
    # It was sent a day ago, has another day, and is then sent again for some 2,000 s.
    assert prediction is not None and prediction.latest_secs == pytest.approx(DAY + 2000, abs=100)


@pytest.mark.parametrize(
    ("lately", "left"),
    [
        (replace(STEADY, granted=STEADY.granted[: MIN_GRANTED - 1]), WAITING),
        (STEADY, replace(WAITING, nunsent=0)),
    ],
)
def test_without_results_or_without_jobs_there_is_no_forecast(lately: RecentResults, left: OpenWork) -> None:
    assert forecast(lately, left) is None
