"""Long-term debts, and the common part of the two policies that rank projects by them.

Source: "Work fetch and GPUs" (the 6.6 document), section "Long-term debt": `settle` and `DebtAccounts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies.rr_simulation import RoundRobinSimulation
from emulator.engine.policies.run_list import RunList
from emulator.engine.policy import MAX_UNFINISHED
from emulator.engine.state import Job, ProjectState

MIN_RECHECK_SECS: Final = 60.0
MIN_SHARE_FRACTION: Final = 1e-9  # of all shares: a project of share 0 waits for all others in the simulation

Eligible = Callable[[ProjectState, int, float], bool]
"""Whether a project collects debt for a kind of processor just after that time."""


def settle(
    debts: Mapping[int, float], shares: Mapping[int, float], used_secs: Mapping[int, float], owed_secs: float
) -> dict[int, float]:
    """Return one kind's debts (instance-seconds, by project) after a time in which `owed_secs` were available.

    `shares` has the eligible projects. Each is owed its part of `owed_secs` and got `used_secs`. The mean change is
    subtracted from the eligible ones, so that their net change is zero. Then the largest debt is subtracted from all,
    so that the maximum is zero ("Long-term debt").
    """
    settled = dict(debts)
    total_share = sum(shares.values())
    changes = {
        index: (owed_secs * share / total_share if total_share else 0.0) - used_secs.get(index, 0.0)
        for index, share in shares.items()
    }
    mean = sum(changes.values()) / len(changes) if changes else 0.0
    for index, change in changes.items():
        settled[index] = settled.get(index, 0.0) + change - mean
    largest = max(settled.values(), default=0.0)
    return {index: debt - largest for index, debt in settled.items()}


class DebtAccounts:
    """The debts of all attached projects, for the first `kinds` kinds of processor (all of them, or the CPU alone)."""

    def __init__(self, client: Client, kinds: int, eligible: Eligible, start: Mapping[str, Mapping[str, float]]):
        self._client = client
        self._eligible = eligible
        self._kinds = range(kinds)
        self.booked_to = 0.0
        self.debts: list[dict[int, float]] = [
            {project.index: start[project.name].get(client.kinds[kind], 0.0) for project in client.projects}
            for kind in self._kinds
        ]
        self.share_fractions: dict[int, float] = {}
        self.projects_changed()

    def projects_changed(self) -> None:
        """A new project starts without debt, one that left is forgotten, and the largest debt is 0 again."""
        projects = self._client.projects
        total = sum(project.share for project in projects) or 1.0
        self.share_fractions = {project.index: max(MIN_SHARE_FRACTION, project.share / total) for project in projects}
        attached = [project.index for project in projects]
        self.debts = [
            settle({index: of_kind.get(index, 0.0) for index in attached}, {}, {}, 0.0) for of_kind in self.debts
        ]

    def accrue(self, now: float) -> None:
        """Book the time until now, in parts where a back-off ended within it."""
        start, self.booked_to = self.booked_to, now
        for kind in self._kinds:
            # While a kind may not compute, its debts stay as they are.
            if now > start and self._client.kind_active[kind]:
                untils = {project.backoff_until_secs[kind] for project in self._client.projects}
                begin = start
                for end in (*sorted([until for until in untils if start < until < now]), now):
                    self._book(kind, begin, end - begin)
                    begin = end

    def _book(self, kind: int, begin: float, elapsed_secs: float) -> None:
        projects = self._client.projects
        shares = {project.index: project.share for project in projects if self._eligible(project, kind, begin)}
        instances = self._client.instances[kind]
        # Where jobs claim more than there is, they are charged what there is.
        claimed = sum([project.busy[kind] for project in projects])
        part = instances / claimed if claimed > instances else 1.0
        used = {project.index: elapsed_secs * project.busy[kind] * part for project in projects if project.busy[kind]}
        self.debts[kind] = settle(self.debts[kind], shares, used, elapsed_secs * instances)

    def of(self, project: ProjectState, kind: int) -> float:
        """The project's debt for that kind, in instance-seconds; at most 0."""
        return self.debts[kind][project.index]

    def overall(self, project: ProjectState) -> float:
        """The sum over kinds, each weighted with the speed of one instance: FLOP."""
        index, flop = project.index, 0.0
        for debts, speed in zip(self.debts, self._client.instance_flops, strict=False):
            flop += debts[index] * speed
        return flop


class DebtPolicy(ABC):
    """A policy that ranks projects by long-term debt, and picks jobs by BOINC's four steps (run_list).

    A policy of this family says in `begin` which debts it keeps and how it ranks by them, and in `fetch` whom it asks.
    """

    _client: Client
    accounts: DebtAccounts
    _simulation: RoundRobinSimulation
    _run_list: RunList

    def __init__(self, start_debts: Mapping[str, Mapping[str, float]]) -> None:
        self._start_debts = start_debts

    def _keep_debts(self, client: Client, kinds: int) -> DebtAccounts:
        """The debts for the first `kinds` kinds of processor, from the start of the run."""
        self._client = client
        self.accounts = DebtAccounts(client, kinds, self._is_eligible, self._start_debts)
        return self.accounts

    def _rank_by(
        self, debt: Callable[[ProjectState], float], debt_flops: float, step_cost: Callable[[Job], float]
    ) -> None:
        """Ranks projects by `debt`: the largest is first. In the simulation a project's debt falls by 1 for
        `debt_flops` done for it; `step_cost` is by how much the choice of a job lowers it."""
        client, accounts = self._client, self.accounts
        # Weighted round-robin: the project that got least in proportion to its share is next.
        self._simulation = RoundRobinSimulation(
            client,
            lambda project: (False, -debt(project) / accounts.share_fractions[project.index]),
            lambda project: 1 / (debt_flops * accounts.share_fractions[project.index]),
        )
        self._run_list = RunList(client, self._simulation, lambda project: (False, -debt(project)), step_cost)

    @abstractmethod
    def _is_eligible(self, project: ProjectState, kind: int, now: float) -> bool:
        """See `Eligible`."""

    @abstractmethod
    def fetch(self, now: float) -> Fetch:
        """See Policy."""

    def accrue(self, now: float) -> None:
        self.accounts.accrue(now)

    def projects_changed(self, now: float) -> None:
        self.accounts.projects_changed()

    def job_ended(self, job: Job, now: float) -> None:  # noqa: B027 - Policy asks for it; it is no hook for subclasses
        """Debts follow the work that is done, so the end of a job changes none."""

    def choose(self, now: float) -> Choice:
        return self._run_list.choose(now)

    def simulation(self) -> RoundRobinSimulation:
        """The one that its decisions start from."""
        return self._simulation

    def ranked(self, now: float) -> list[tuple[ProjectState, float]]:
        """The projects that may be asked for work, the largest debt first, with that debt as in `standing`."""
        debts = [(project, self.standing(project, now)) for project in self._askable(now)]
        return sorted(debts, key=lambda row: (-row[1], row[0].index))

    @abstractmethod
    def standing(self, project: ProjectState, now: float) -> float:
        """See Policy."""

    def _askable(self, now: float) -> list[ProjectState]:
        """The projects that may be asked for work now."""
        client = self._client
        return [project for project in client.projects if client.can_ask(project, now) and not has_many_jobs(project)]

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        request = self.fetch(now).request
        return request if request is not None and request.project is project else None


def has_many_jobs(project: ProjectState) -> bool:
    """Whether it has this many jobs that it is asked for no more."""
    return project.unfinished > MAX_UNFINISHED
