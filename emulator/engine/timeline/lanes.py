"""Which instance a running job is drawn on: lanes are numbered over all kinds of processors."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from emulator.engine.timeline.results import NO_LANE

_NOWHERE: Final = (NO_LANE,)


class Lanes:
    """The lanes of one kind of processor, numbered from `first`. The lowest free one is taken."""

    def __init__(self, first: int, count: int) -> None:
        self._free = list(range(first, first + count))
        heapify(self._free)
        self._shared: dict[int, float] = {}  # load of lanes that hold parts of an instance

    def take(self, usage: float) -> tuple[int, ...]:
        """Lanes for a job: one per whole instance and one, shared, for the rest. NO_LANE when they are all taken
        (CPUs may be overcommitted)."""
        free = self._free
        if usage == 1.0:
            return (heappop(free),) if free else _NOWHERE
        whole = int(usage + 1e-9)
        rest = usage - whole
        if len(free) < whole:
            return _NOWHERE
        taken = [heappop(free) for _ in range(whole)]
        if rest > 1e-9:
            lane = self._share(rest)
            if lane == NO_LANE:
                for lane in taken:
                    heappush(free, lane)
                return _NOWHERE
            taken.append(lane)
        return tuple(taken)

    def _share(self, part: float) -> int:
        for lane in sorted(self._shared):
            if self._shared[lane] + part <= 1.0 + 1e-9:
                self._shared[lane] += part
                return lane
        if not self._free:
            return NO_LANE
        lane = heappop(self._free)
        self._shared[lane] = part
        return lane

    def give_back(self, lanes: tuple[int, ...], usage: float) -> None:
        """What `take` gave for the same usage is free again."""
        if lanes is _NOWHERE:
            return
        if usage == 1.0:
            heappush(self._free, lanes[0])
            return
        whole = int(usage + 1e-9)
        for lane in lanes[:whole]:
            heappush(self._free, lane)
        for lane in lanes[whole:]:
            self._shared[lane] -= usage - whole
            if self._shared[lane] < 1e-9:
                del self._shared[lane]
                heappush(self._free, lane)
