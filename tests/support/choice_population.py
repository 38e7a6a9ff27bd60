"""A thousand simulated computers that follow the choice of projects for some weeks, and what the projects get."""

from __future__ import annotations

import datetime as dt
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from accounting.engine.choice.balance import WEEK_DAYS, Week, rebalance, sum_up
from accounting.engine.choice.facts import CPU, Computer, ProjectFacts, Volunteer
from accounting.engine.choice.rules import choose

START = dt.datetime(2026, 3, 1, 8, tzinfo=dt.UTC)
LINUX, WINDOWS, MAC = "x86_64-pc-linux-gnu", "windows_x86_64", "arm64-apple-darwin"


@dataclass(slots=True)
class Resident:
    """A volunteer's computer: when it is there, and what its processors do a day, in credit."""

    computer: Computer
    volunteer: Volunteer
    first_day: int
    last_day: int
    cpu: float
    gpu: float


@dataclass(slots=True)
class Population:
    """The projects and computers, day by day; ``got``: credit of each day by project, on CPUs and on GPUs."""

    projects: list[ProjectFacts]
    residents: list[Resident]
    got: list[tuple[dict[int, float], dict[int, float]]] = field(default_factory=list)
    _days: deque[tuple[list[Week], list[Week]]] = field(default_factory=lambda: deque(maxlen=WEEK_DAYS))

    def live(self, days: int) -> None:
        for _ in range(days):
            self._live_a_day(len(self.got))

    def _live_a_day(self, day: int) -> None:
        here = [resident for resident in self.residents if resident.first_day <= day < resident.last_day]
        cpu: list[Week] = []
        gpu: list[Week] = []
        for resident in here:
            choice = choose(self.projects, resident.volunteer, resident.computer, START + dt.timedelta(days=day))
            resident.computer = replace(resident.computer, current=frozenset(choice.shares))
            days = min(WEEK_DAYS, day + 1 - resident.first_day)
            cpu += self._work(resident.computer, choice.shares, [CPU], resident.cpu, days)
            gpu += self._work(resident.computer, choice.shares, resident.computer.types[1:], resident.gpu, days)
        self.got.append((_by_project(cpu), _by_project(gpu)))
        self._days.append((cpu, gpu))
        self._rebalance({resident.computer.id for resident in here})

    def _work(
        self, computer: Computer, shares: dict[int, float], types: Sequence[str], credit: float, days: int
    ) -> list[Week]:
        """What the computer does for each project that has programs for it: by shares."""
        able = {
            project.id: shares[project.id]
            for project in self.projects
            if project.id in shares and _serves(project, computer.platform, types)
        }
        return [
            Week(computer.id, id_, credit * share / sum(able.values()), days) for id_, share in able.items() if credit
        ]

    def _rebalance(self, here: set[int]) -> None:
        standings = []
        for number in (0, 1):
            # Days that a computer is here, as of today; those that left do not count.
            last = {week.host_id: week.days for week in self._days[-1][number]}
            weeks = [
                week._replace(days=last.get(week.host_id, week.days))
                for day in self._days
                for week in day[number]
                if week.host_id in here
            ]
            able = {p.id: p.share for p in self.projects if any((type_ == CPU) != number for _, type_ in p.versions)}
            standings.append(rebalance(able, sum_up(weeks), {p.id: p.boosts[number] for p in self.projects}))
        cpu, gpu = ({id_: standing.boost for id_, standing in each.items()} for each in standings)
        self.projects = [replace(p, boosts=(cpu.get(p.id, 1.0), gpu.get(p.id, 1.0))) for p in self.projects]

    def parts(self, number: int, days: int) -> dict[int, float]:
        """Each project's part of the last days' credit, on CPUs (0) or GPUs (1)."""
        sums: dict[int, float] = {}
        for day in self.got[-days:]:
            for id_, credit in day[number].items():
                sums[id_] = sums.get(id_, 0.0) + credit
        return {id_: credit / sum(sums.values()) for id_, credit in sums.items()}

    def targets(self, number: int) -> dict[int, float]:
        able = {p.id: p.share for p in self.projects if any((type_ == CPU) != number for _, type_ in p.versions)}
        return {id_: share / sum(able.values()) for id_, share in able.items()}


def _serves(project: ProjectFacts, platform: str, types: Sequence[str]) -> bool:
    return any((platform, type_) in project.versions for type_ in types)


def _by_project(weeks: Sequence[Week]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for week in weeks:
        sums[week.project_id] = sums.get(week.project_id, 0.0) + week.credit
    return sums


def versions(platforms: Sequence[str], types: Sequence[str]) -> frozenset[tuple[str, str]]:
    return frozenset((platform, type_) for platform in platforms for type_ in types)


def people(number: int, days: int, likes: Sequence[int], seed: int) -> list[Resident]:
    """This many computers: 7 of 10 Windows, 3 of 10 with a GPU, speeds spread log-normally.

    Of ten owners two like a keyword and one forbids one; one computer of five comes, and one leaves, on the way.
    """
    dice = random.Random(seed)
    residents = []
    for id_ in range(1, number + 1):
        platform = dice.choices((WINDOWS, LINUX, MAC), (7, 2, 1))[0]
        types = (CPU, *dice.choices(((), ("NVIDIA",), ("ATI",)), (7, 2, 1))[0])
        mood = dice.random()
        keyword = frozenset({dice.choice(likes)})
        residents.append(
            Resident(
                Computer(id_, types, platform),
                Volunteer(yes=keyword if mood < 0.2 else frozenset(), no=keyword if mood > 0.9 else frozenset()),
                first_day=dice.randrange(1, days) if dice.random() < 0.2 else 0,
                last_day=dice.randrange(days // 2, days) if dice.random() < 0.2 else days,
                cpu=400 * dice.lognormvariate(0, 0.8),
                gpu=20_000 * dice.lognormvariate(0, 0.8) if len(types) > 1 else 0,
            )
        )
    return residents
