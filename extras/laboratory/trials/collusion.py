"""Groups that collude on workunits: their gain where chance decides who gets the copies. Pure.

Computers ask for jobs from a queue day after day. Colluders ask one right after the other, keep their jobs until they
know who has the other copies, and send the same invented output for each workunit that two of them have. ``is_lazy``:
they compute nothing and give the rest back; otherwise they compute the rest, to attract less attention. Nobody sees
their ties: this is the worst case, established accounts in different networks.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, count
from typing import Final

from credit.engine.pairs import Meeting, Pair, suspicions, waits_for_another
from extras.laboratory.trials.goals import Goal
from portal.languages.messages import Message

JOBS_PER_DAY: Final = 20
HOST_DAYS: Final = 20_000
MIN_DAYS: Final = 5
"""Few computers are simulated for longer: a pair among a hundred has one workunit in common in five days."""
LOOKED_BACK_DAYS: Final = 7
MIN_WINDOW: Final = 256
PAIR_CHANCE: Final = 1e-6
GROUPS: Final = (2, 5, 20)
POPULATIONS: Final = (100, 1_000, 10_000)
TIMING: Final = 1.1
"""The gain from asking one right after the other: copies that are both due soon are slightly more often both in
reach."""
CHANCE_ALLOWED: Final = 0.01
HONEST_PAIRS: Final = {20: 0.5, 100: 0.01}
"""How many honest pairs may lose trust per day, by the number of computers."""
HONEST_DAYS: Final = 60


@dataclass(frozen=True, slots=True)
class Group:
    """``ncolluders`` of ``nhosts`` computers; all get the same number of jobs a day. ``is_shuffled`` False: a queue
    that hands out jobs in the order in which they were made, for comparison.
    """

    ncolluders: int
    nhosts: int
    is_lazy: bool = False
    is_shuffled: bool = True
    has_pairs: bool = True


@dataclass(slots=True)
class _Workunit:
    """``holders``: who has a copy. ``invented``: both have sent the same invented output, and wait for a third."""

    holders: list[int] = field(default_factory=list)
    invented: bool = False


class _Queue:
    """Copies of workunits, by position; the rule is that of `scheduler.submission.sql.CREATE_RESULTS`."""

    def __init__(self, draw: random.Random, length: int, *, is_shuffled: bool) -> None:
        self._draw, self._length, self._is_shuffled = draw, length, is_shuffled
        self._heap: list[tuple[int, int, _Workunit]] = []
        self._ids = count(1)
        self._newest = 0
        self.fill()

    def fill(self) -> None:
        """Add workunits, two copies of each, until the queue has its former length."""
        nnew = max(0, self._length - len(self._heap)) // 2 * 2
        head = min(self._heap[0][0], self._newest) if self._heap else self._newest
        length = self._newest - head
        for _ in range(nnew // 2):
            workunit = _Workunit()
            for _ in range(2):
                self._put(workunit, head, length + max(length, MIN_WINDOW) + nnew)

    def _put(self, workunit: _Workunit, head: int, window: int) -> None:
        self._newest = next(self._ids)
        place = head + self._draw.randrange(window) if self._is_shuffled else self._newest
        heapq.heappush(self._heap, (place, self._newest, workunit))

    def put_third(self, workunit: _Workunit) -> None:
        """Queue one more copy of a workunit that needs one, near the front."""
        self._newest = next(self._ids)
        heapq.heappush(self._heap, (self._heap[0][0] if self._heap else 0, self._newest, workunit))

    def take(self, host: int, njobs: int) -> list[_Workunit]:
        """Take the first copies of workunits of which this computer has none."""
        taken: list[_Workunit] = []
        left = []
        while self._heap and len(taken) < njobs:
            entry = heapq.heappop(self._heap)
            if host in entry[2].holders:
                left.append(entry)
                continue
            entry[2].holders.append(host)
            taken.append(entry[2])
        for entry in left:
            heapq.heappush(self._heap, entry)
        return taken


@dataclass(slots=True)
class GroupGain:
    """A group's jobs: granted, and computed; and its pairs that lost trust."""

    granted: float = 0.0
    computed: int = 0
    njobs: int = 0
    npairs: int = 0

    @property
    def per_flop(self) -> float:
        """Granted jobs per computed job; honest computers get one."""
        return self.granted / self.computed - 1 if self.computed else 0.0

    @property
    def for_nothing(self) -> float:
        """The fraction of an honest computer's credit."""
        return self.granted / self.njobs


def collude(group: Group, seed: int) -> GroupGain:
    """Simulate days of a population, on each of which the group asks for jobs at a time of its choice."""
    draw = random.Random(seed)
    queue = _Queue(draw, group.nhosts * JOBS_PER_DAY, is_shuffled=group.is_shuffled)
    colluders = range(1, group.ncolluders + 1)
    honest = list(range(group.ncolluders + 1, group.nhosts + 1))
    open_workunits: list[_Workunit] = []
    results: dict[int, list[Sequence[int]]] = defaultdict(list)
    pairs: set[Pair] = set()
    gain = GroupGain()
    for day in range(max(MIN_DAYS, HOST_DAYS // group.nhosts)):
        draw.shuffle(honest)
        at = draw.randrange(len(honest))
        for host in (*honest[:at], *colluders, *honest[at:]):
            taken = queue.take(host, JOBS_PER_DAY)
            if host in colluders:
                gain.njobs += len(taken)
                open_workunits += taken
        queue.fill()
        open_workunits = _report(group, queue, open_workunits, colluders, pairs, results[day], gain)
        if group.has_pairs:
            days = range(max(0, day - LOOKED_BACK_DAYS + 1), day + 1)
            recent = [holders for day in days for holders in results[day]]
            pairs = _pairs(recent, colluders, group.nhosts, min(day + 1, LOOKED_BACK_DAYS))
            gain.npairs = max(gain.npairs, len(pairs))
    return gain


def _report(
    group: Group,
    queue: _Queue,
    workunits: list[_Workunit],
    colluders: range,
    pairs: set[Pair],
    results: list[Sequence[int]],
    gain: GroupGain,
) -> list[_Workunit]:
    """Report the group's workunits, except those whose other copies nobody has yet."""
    still_open = {}
    for workunit in workunits:
        if workunit.invented:
            if len(workunit.holders) < 3:
                still_open[id(workunit)] = workunit
            continue
        if len(workunit.holders) < 2:
            still_open[id(workunit)] = workunit
            continue
        own = [holder for holder in workunit.holders if holder in colluders]
        if len(own) < 2:
            if not group.is_lazy and workunit.holders:
                gain.granted += 1
                gain.computed += 1
                results.append(tuple(workunit.holders))
            workunit.invented = True
            workunit.holders.append(0)
        elif waits_for_another(own, pairs):
            # Anyone who gets the third copy computes it, and it differs: the invented outputs are worth nothing.
            workunit.invented = True
            queue.put_third(workunit)
            still_open[id(workunit)] = workunit
        else:
            gain.granted += 2
            results.append(tuple(own))
            workunit.invented = True
            workunit.holders.append(0)
    return list(still_open.values())


def _pairs(results: Sequence[Sequence[int]], colluders: range, nhosts: int, ndays: int) -> set[Pair]:
    """Return the group's pairs that lost trust; all other computers have only valid results."""
    together: Counter[Pair] = Counter()
    nresults: Counter[int] = Counter()
    for holders in results:
        nresults.update(holders)
        together.update((min(pair), max(pair)) for pair in combinations(holders, 2) if set(pair) <= set(colluders))
    meetings = (
        Meeting(pair, n, (nresults[pair[0]], nresults[pair[1]]), (nresults[pair[0]], nresults[pair[1]]))
        for pair, n in together.items()
    )
    total = (nhosts - len(colluders)) * JOBS_PER_DAY * ndays + sum(nresults[host] for host in colluders)
    return {
        suspicion.meeting.pair for suspicion in suspicions(meetings, total, nhosts) if suspicion.chance < PAIR_CHANCE
    }


@dataclass(frozen=True, slots=True)
class HonestPairs:
    """The honest pairs in ``nlists`` lists: how many there were, and how many lost trust."""

    nlists: int
    nlisted: int
    nbelow: int


def honest_pairs(nhosts: int, ndays: int, seed: int) -> HonestPairs:
    """Simulate honest computers with very different numbers of jobs a day that ask at the same time each day: the worst
    case.
    """
    draw = random.Random(seed)
    rates = [max(1, round(draw.lognormvariate(2.5, 1.0))) for _ in range(nhosts)]
    times = [draw.random() for _ in range(nhosts)]
    queue = _Queue(draw, sum(rates), is_shuffled=True)
    days: list[list[_Workunit]] = []
    chances: list[float] = []
    for _ in range(ndays):
        taken: list[_Workunit] = []
        for host in sorted(range(nhosts), key=lambda host: times[host] + draw.gauss(0, 0.05)):
            taken += queue.take(host, rates[host])
            queue.fill()
        days = [*days[1 - LOOKED_BACK_DAYS :], taken]
        recent = {id(meeting): meeting.holders for day in days for meeting in day if len(meeting.holders) == 2}
        together = Counter((min(holders), max(holders)) for holders in recent.values())
        nresults = Counter(holder for holders in recent.values() for holder in holders)
        meetings = [
            Meeting(pair, n, (nresults[pair[0]], nresults[pair[1]]), (nresults[pair[0]], nresults[pair[1]]))
            for pair, n in together.items()
        ]
        chances += [suspicion.chance for suspicion in suspicions(meetings, sum(nresults.values()), nhosts)]
    return HonestPairs(ndays, len(chances), sum(chance < PAIR_CHANCE for chance in chances))


def bound(group: Group) -> float:
    """Bound the gain: of each member's jobs the rest of the group holds the copies as often as anybody else, which
    gives that fraction over the rest. Plus a tenth for timed requests, and one hundredth for chance.
    """
    return TIMING * (group.ncolluders - 1) / (group.nhosts - group.ncolluders) + CHANCE_ALLOWED


def collusion_goals(seeds: Sequence[int]) -> list[Goal]:
    """Measure the gain of groups of three sizes in populations of three sizes, with the stated bound."""
    goals = []
    for nhosts in POPULATIONS:
        for ncolluders in GROUPS:
            group = Group(ncolluders, nhosts)
            gains = [collude(group, seed).per_flop for seed in seeds]
            name = Message("goal_group", group=ncolluders, hosts=nhosts)
            goals.append(Goal(name, sum(gains) / len(gains), max(gains), bound(group)))
            idle = Group(ncolluders, nhosts, is_lazy=True)
            gains = [collude(idle, seed).for_nothing for seed in seeds]
            name = Message("goal_group_idle", group=ncolluders, hosts=nhosts)
            goals.append(Goal(name, sum(gains) / len(gains), max(gains), bound(idle)))
    for nhosts, most in HONEST_PAIRS.items():
        lists = [honest_pairs(nhosts, HONEST_DAYS, seed) for seed in seeds]
        rates = [lists_of.nbelow / lists_of.nlists for lists_of in lists]
        name = Message("goal_honest_pairs", hosts=nhosts)
        goals.append(Goal(name, sum(rates) / len(rates), max(rates), most))
    return goals
