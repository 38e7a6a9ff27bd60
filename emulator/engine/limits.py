"""Limits on computing, or on the use of the network, besides the computer's availability: hours, and the owner's use.

Each is a process like `UpDown`: a state, and the time at which it next changes. A run jumps to these times, so nothing
is sampled.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

from emulator.engine.availability import UpDown
from emulator.engine.random_numbers import random_stream
from emulator.engine.scenario import (
    WEEK_SECS,
    Availability,
    ChangePreferences,
    Host,
    Hours,
    NewApp,
    Preferences,
    Scenario,
    Use,
)
from emulator.engine.timeline.reasons import Reason


class WeekHours:
    """The hours of the local week as a process; `up` within them."""

    def __init__(self, hours: Hours, week_secs: float, now: float = 0.0) -> None:
        """`week_secs`: the time of the week at the start of the run; the process begins at `now`."""
        spans = hours.spans_secs()
        self._changes_secs = [at for span in spans for at in span]
        if hours.is_always or not spans:
            self.up = bool(spans)
            self.until_secs = math.inf
            return
        # After an even number of changes it is down, after an odd one up.
        place_secs = (week_secs + now) % WEEK_SECS
        self._next = bisect_right(self._changes_secs, place_secs)
        self._week_start_secs = now - place_secs
        self._find_next()

    def _find_next(self) -> None:
        if self._next == len(self._changes_secs):
            self._next = 0
            self._week_start_secs += WEEK_SECS
        self.up = self._next % 2 == 1
        self.until_secs = self._week_start_secs + self._changes_secs[self._next]

    def advance(self, now: float) -> bool:
        """Returns the state at `now`; calls come in order of time."""
        while self.until_secs <= now:
            self._next += 1
            self._find_next()
        return self.up


class InUse:
    """A use of the computer as a process; `up` while it lasts."""

    def __init__(self, use: Use, week_secs: float, seed: int, name: str) -> None:
        self._hours = WeekHours(use.hours, week_secs)
        self._spells = UpDown(Availability(use.fraction, use.mean_secs), random_stream(seed, "host", name))

    @property
    def until_secs(self) -> float:
        """When it may next change."""
        return min(self._hours.until_secs, self._spells.until_secs)

    def advance(self, now: float) -> bool:
        """Returns whether it lasts at `now`; calls come in order of time."""
        in_hours = self._hours.advance(now)
        return self._spells.advance(now) and in_hours


@dataclass(slots=True)
class _Stop:
    """A process that stops computing while its state is `when`."""

    process: WeekHours | InUse
    when: bool
    reason: Reason


class Limits:
    """The limits of one run. Without any, all its lists are empty and it costs nothing."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._host: Final = scenario.host
        self._week_secs: Final = scenario.week_secs
        self._seed: Final = seed
        self._uses: dict[str, InUse] = {}
        self._in_use = self._use("in_use", scenario.host.in_use)
        self._counts_ram = _may_lack_ram(scenario)
        self.reason = Reason.NONE  # why nothing may compute
        self.gpu_reason = Reason.NONE  # why GPUs may not
        self.follow(scenario.preferences, 0.0)

    def follow(self, preferences: Preferences, now: float) -> None:
        """Applies these preferences from now on. The owner's use continues as it would have."""
        self._all: list[_Stop] = []
        self._gpus: list[_Stop] = []
        if not preferences.compute_hours.is_always:
            hours = WeekHours(preferences.compute_hours, self._week_secs, now)
            self._all.append(_Stop(hours, False, Reason.OUTSIDE_HOURS))
        for use, name, stops, reason in _uses(self._host, preferences):
            stop = _Stop(self._use(name, use), True, reason)
            (self._all if stops == "all" else self._gpus).append(stop)
        network = preferences.network_hours
        self._network = None if network.is_always else WeekHours(network, self._week_secs, now)
        fractions = (preferences.ram_idle_fraction, preferences.ram_busy_fraction)
        self._ram_bytes = [self._host.ram_bytes * fraction for fraction in fractions]  # not in use, in use

    def _use(self, name: str, use: Use) -> InUse:
        if name not in self._uses:
            self._uses[name] = InUse(use, self._week_secs, self._seed, name)
        return self._uses[name]

    def next_change(self) -> float:
        """When one of them may next change; infinity for never."""
        times = [stop.process.until_secs for stop in (*self._all, *self._gpus)]
        if self._network is not None:
            times.append(self._network.until_secs)
        if self._counts_ram:
            times.append(self._in_use.until_secs)
        return min(times, default=math.inf)

    def advance(self, now: float) -> None:
        """Follows the processes."""
        self.reason, gpu_reason = _first(self._all, now), _first(self._gpus, now)
        self.gpu_reason = self.reason or gpu_reason

    def lets_connect(self, now: float) -> bool:
        """Whether the network may be used."""
        return self._network is None or self._network.advance(now)

    def ram_bytes(self, now: float) -> float:
        """The RAM that all running jobs together may use; infinity without a limit."""
        return self._ram_bytes[self._in_use.advance(now)] if self._counts_ram else math.inf


def _first(stops: list[_Stop], now: float) -> Reason:
    # All of them have to be followed, or one would be due for ever.
    states = [stop.process.advance(now) == stop.when for stop in stops]
    return next((stop.reason for stop, holds in zip(stops, states, strict=True) if holds), Reason.NONE)


def _may_lack_ram(scenario: Scenario) -> bool:
    """Whether as many of the largest jobs as can run at once might not fit; if not, nothing has to be counted."""
    host = scenario.host
    fractions = [scenario.preferences.ram_busy_fraction, scenario.preferences.ram_idle_fraction]
    for event in scenario.events:
        if isinstance(event, ChangePreferences):
            fractions += [
                fraction for fraction in (event.ram_busy_fraction, event.ram_idle_fraction) if fraction is not None
            ]
    apps = [app for project in scenario.projects for app in project.apps]
    apps += [event.app for event in scenario.events if isinstance(event, NewApp)]
    largest = max((app.working_set_bytes for app in apps), default=0.0)
    if not host.ram_bytes or not largest:
        return False
    parts = [version.gpus or version.cpus for app in apps if app.working_set_bytes for version in app.versions]
    most = sum(scenario.most_instances()) / min([1.0, *parts]) + 1
    return most * largest > host.ram_bytes * min(fractions)


def _uses(host: Host, preferences: Preferences) -> list[tuple[Use, str, str, Reason]]:
    """The owner's uses that stop all computing, or that of GPUs: only those that ever happen."""
    uses: list[tuple[Use, str, str, Reason]] = []
    if not preferences.run_if_user_active:
        uses.append((host.in_use, "in_use", "all", Reason.IN_USE))
    elif not preferences.run_gpu_if_user_active:
        uses.append((host.in_use, "in_use", "gpus", Reason.IN_USE))
    if not preferences.run_on_batteries:
        uses.append((host.on_batteries, "on_batteries", "all", Reason.ON_BATTERIES))
    uses.append((host.exclusive_app, "exclusive_app", "all", Reason.EXCLUSIVE_APP))
    uses.append((host.exclusive_gpu_app, "exclusive_gpu_app", "gpus", Reason.EXCLUSIVE_APP))
    return [use for use in uses if use[0].fraction > 0]


def allowed_fractions(host: Host, preferences: Preferences) -> tuple[float, float]:
    """The long-run fraction of the time in which limits let CPUs and GPUs compute, as a client would measure it.

    Uses are independent of each other and of the hours, so within an hour that all of them may fall in, the remaining
    fractions are multiplied.
    """
    uses = _uses(host, preferences)
    spans = preferences.compute_hours.spans_secs()
    spans_of = [use.hours.spans_secs() for use, *_rest in uses]
    edges = sorted({0.0, WEEK_SECS, *(at for span in [*spans, *chain(*spans_of)] for at in span)})
    cpu = gpu = 0.0
    for start, end in pairwise(edges):
        if not _covers(spans, start):
            continue
        left = left_to_gpus = end - start
        for (use, _name, stops, _reason), of_use in zip(uses, spans_of, strict=True):
            if _covers(of_use, start):
                left_to_gpus *= 1 - use.fraction
                if stops == "all":
                    left *= 1 - use.fraction
        cpu += left
        gpu += left_to_gpus
    return cpu / WEEK_SECS, gpu / WEEK_SECS


def _covers(spans: tuple[tuple[float, float], ...], at: float) -> bool:
    return any(start <= at < end for start, end in spans)
