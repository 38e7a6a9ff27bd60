"""The processor time of groups of processes, as the kernel counts it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# The text in a process's command line that puts it into a group, by the group's name.
GROUPS = {"web": "granian", "database": "postgres", "nginx": "nginx"}
_SECS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")


def used_secs() -> dict[str, float]:
    """Return the processor time of all such processes on this machine since they started; ``load``: of this process."""
    used = dict.fromkeys(GROUPS, 0.0)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text(errors="replace")
            times = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        for name, word in GROUPS.items():
            if word in command:
                used[name] += (int(times[11]) + int(times[12])) * _SECS_PER_TICK
    return {**used, "load": sum(os.times()[:2])}


def per_request(before: Mapping[str, float], after: Mapping[str, float], nrequests: float) -> dict[str, int]:
    """Return the microseconds of each group for one request, of those that used any."""
    figures = {f"{name}_us": round((after[name] - before[name]) * 1e6 / nrequests) for name in after}
    return {name: us for name, us in figures.items() if us}


def whole_secs_of(pid: int) -> float:
    """Return the processor time of a process with all of its threads."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) * _SECS_PER_TICK


def secs_of(pid: int) -> float:
    """Return the processor time of a process with one thread, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
