"""Read a client's `time_stats_log`: when the client was on, computed and had a network, as availability traces.

Each line has a Unix time and an event (BOINC client, time_stats.cpp): `power_on` and `power_off` when the client starts
and ends, `proc_stop` and `proc_start` when it stops computing and continues (or when the computer slept), and
`net_connected`, `net_not_connected` or `net_unknown`. The log has nothing about GPUs. Other events are ignored.

A client that restarts first writes when it was last on. That line may be a second `power_off`, and older than the line
before it. Pure: bytes in, dataclasses out.
"""

import re
from dataclasses import dataclass
from math import inf
from typing import Final

from emulator.engine.scenario import DAY_SECS, MAX_TRACE_INTERVALS
from emulator.files.sections import ScenarioFileError

TIME_LOG_FILE: Final = "time_stats_log"
LOG_BYTES_MAX: Final = 16 << 20
DAYS_MAX: Final = 52 * 7
MIN_TIME: Final = 9e8  # 1998: earlier than any client
MAX_TIME: Final = 1e11

_LINE: Final = re.compile(rb"(\d{1,11}(?:\.\d{1,9})?) ([a-z_]{1,40})(?: [^\n]*)?")
_SWITCHES: Final = {  # event: (which process, its new state)
    b"power_on": ("on", True),
    b"power_off": ("on", False),
    b"proc_start": ("active", True),
    b"proc_stop": ("active", False),
    b"net_connected": ("connected", True),
    b"net_unknown": ("connected", True),  # written by a client that cannot tell
    b"net_not_connected": ("connected", False),
}

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class TimeLog:
    """The last whole days of a log, in whole weeks if there are two or more. Seconds from the first of these days on.

    `days` is 0 if the log covers less than a day. `on`, `active` and `connected` are the intervals of each state.
    `bad_lines` are the numbers of unreadable lines; a computer that loses power may leave some.
    """

    days: int = 0
    on: Intervals = ()
    active: Intervals = ()
    connected: Intervals = ()
    bad_lines: tuple[int, ...] = ()


class _Process:
    """One process of the log: the intervals in which it was up."""

    def __init__(self) -> None:
        self.up_since = inf
        self.intervals: list[tuple[float, float]] = []

    def switch(self, up: bool, at: float) -> None:
        if up:
            self.up_since = min(self.up_since, at)
            return
        since, self.up_since = self.up_since, inf
        if since < at:
            self.intervals.append((since, at))

    def within(self, begin: float, end: float) -> Intervals:
        """Return its intervals in that time, counted from its beginning; adjacent ones are joined."""
        joined: list[tuple[float, float]] = []
        for since, until in self.intervals:
            since, until = max(since, begin) - begin, min(until, end) - begin
            if since >= until:
                continue
            if joined and since <= joined[-1][1]:
                since = joined.pop()[0]
            joined.append((since, until))
        return tuple(joined)


def read_time_log(data: bytes, now: float) -> TimeLog:
    """Return the traces of a log whose client wrote its other files at `now` (Unix time; 0: unknown).

    Raises ScenarioFileError (file, line, reason) for a file of which no line can be read, or that is too large.
    """
    if len(data) > LOG_BYTES_MAX:
        raise ScenarioFileError(TIME_LOG_FILE, "", 0, "file_size_limit", limit_mib=LOG_BYTES_MAX >> 20)
    processes = {name: _Process() for name in ("on", "active", "connected")}
    first = last = 0.0
    bad: list[int] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or not MIN_TIME <= float(match[1]) <= MAX_TIME:
            bad.append(number)
            continue
        switch = _SWITCHES.get(match[2])
        if switch is None:
            continue
        # A line may be older than the one before it: the past is not changed.
        at = max(last, float(match[1]))
        first, last = first or at, at
        processes[switch[0]].switch(switch[1], at)
        if match[2] == b"power_on":  # a client that starts computes, and has a network, until it says otherwise
            processes["active"].switch(True, at)
            processes["connected"].switch(True, at)
    if bad and not last:
        raise ScenarioFileError(TIME_LOG_FILE, "", bad[0], "no_time_log")
    end = max(last, now)
    for process in processes.values():
        process.switch(False, end)
    return _whole_days(processes, first, end, tuple(bad))


def _whole_days(processes: dict[str, _Process], first: float, end: float, bad: tuple[int, ...]) -> TimeLog:
    days = min(DAYS_MAX, int((end - first) / DAY_SECS))
    while days:
        if days >= 14:
            days -= days % 7
        begin = end - days * DAY_SECS
        whole_days = {name: process.within(begin, end) for name, process in processes.items()}
        if all(len(intervals) <= MAX_TRACE_INTERVALS for intervals in whole_days.values()):
            return TimeLog(days, **whole_days, bad_lines=bad)
        days //= 2
    return TimeLog(bad_lines=bad)
