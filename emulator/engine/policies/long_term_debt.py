"""The policy of the 6.6 client: a long-term debt per project and kind of processor.

Source: "Work fetch and GPUs" (the 6.6 document), with emulator document, section 15, where it is silent.
Sections followed:

* "Per-resource-type backoff": the client keeps the back-offs (emulator.engine.contact), here they are heeded; a kind
  may be asked for although the project is backed off for it, when it is asked for another kind;
* "Long-term debt": `settle`, `DebtAccounts`, with both offsets, the eligibility rule and its parameter;
* "Summary of the new policy": `fetch`, with major shortfall, minor shortfall and starved project, GPUs first;
* "Scheduler request and reply message": seconds and instances per kind, and no more: the server learns nothing of
  jobs in danger.

Job choice is left out by the document: the four steps of emulator.engine.policies.run_list, with overall debt for
priority.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies.rr_simulation import Forecast, Outlook
from emulator.engine.policies.run_list import Chooser
from emulator.engine.scenario import DAY_SECS, Scenario
from emulator.engine.state import Job, ProjectState
from emulator.engine.timeline.reasons import Reason

BACKOFF_MOST_SECS: Final = DAY_SECS
LEAST_LOOK_SECS: Final = 60.0
LEAST_SHARE_FRACTION: Final = 1e-9  # of all shares: one of 0 waits for all others in the simulation
MOST_RUNNABLE: Final = 1000  # jobs of a project; with more it is asked for none (as by the present client)
ANY_JOB_SECS: Final = 1.0  # asked of a starved project for a kind without a shortfall

Eligible = Callable[[ProjectState, int, float], bool]
"""Whether a project collects debt for a kind of processor just after that time."""


def settle(
    debts: Mapping[int, float], shares: Mapping[int, float], used_secs: Mapping[int, float], owed_secs: float
) -> dict[int, float]:
    """Return one kind's debts (instance-seconds, by project) after a time in which `owed_secs` were there to be had.

    `shares` has the eligible projects. Each is owed its part of `owed_secs` and got `used_secs`; the mean change is
    taken off the eligible ones, so that their net change is zero; then the largest debt is taken off all, so that
    the maximum is zero ("Long-term debt").
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
    """The debts of all attached projects, for the first kinds of processor (all of them, or the CPU alone)."""

    def __init__(self, client: Client, kinds: int, eligible: Eligible, standing: Mapping[str, Mapping[str, float]]):
        self._client = client
        self._eligible = eligible
        self._kinds = range(kinds)
        self._booked_to = 0.0
        self.debts: list[dict[int, float]] = [
            {project.index: standing[project.name].get(client.kinds[kind], 0.0) for project in client.projects}
            for kind in self._kinds
        ]
        self.share_fractions: dict[int, float] = {}
        self.projects_changed()

    def projects_changed(self) -> None:
        """Who has come owes nothing; who has left is forgotten; the largest debt is 0 again."""
        projects = self._client.projects
        total = sum(project.share for project in projects) or 1.0
        self.share_fractions = {project.index: max(LEAST_SHARE_FRACTION, project.share / total) for project in projects}
        attached = [project.index for project in projects]
        self.debts = [
            settle({index: of_kind.get(index, 0.0) for index in attached}, {}, {}, 0.0) for of_kind in self.debts
        ]

    def accrue(self, now: float) -> None:
        """Book the time until now, in parts where a back-off ended within it."""
        start, self._booked_to = self._booked_to, now
        for kind in self._kinds:
            # A client that does not run, or may not use a GPU, neither owes nor gives.
            if now > start and self._client.kind_active[kind]:
                ends = {project.backoff_until_secs[kind] for project in self._client.projects}
                edges = [start, *sorted(end for end in ends if start < end < now), now]
                for begin, end in pairwise(edges):
                    self._book(kind, begin, end - begin)

    def _book(self, kind: int, begin: float, elapsed_secs: float) -> None:
        projects = self._client.projects
        shares = {project.index: project.share for project in projects if self._eligible(project, kind, begin)}
        used = {project.index: elapsed_secs * project.busy[kind] for project in projects if project.busy[kind]}
        self.debts[kind] = settle(self.debts[kind], shares, used, elapsed_secs * self._client.instances[kind])

    def of(self, project: ProjectState, kind: int) -> float:
        """The project's debt for that kind, in instance-seconds; at most 0."""
        return self.debts[kind][project.index]

    def overall(self, project: ProjectState) -> float:
        """The sum over kinds, each weighted with the speed of one instance: FLOP."""
        index, flop = project.index, 0.0
        for debts, speed in zip(self.debts, self._client.instance_flops, strict=False):
            flop += debts[index] * speed
        return flop


class LongTermDebt:
    """The policy. With `eligibility_rule` off, a project that is backed off collects debt like any other, which
    the document's first example needs and its third forbids."""

    name = "ltd"
    uses_backoffs = True

    def __init__(self, scenario: Scenario, *, eligibility_rule: bool = True) -> None:
        self._standing = {project.name: dict(project.standing.ltd_secs) for project in scenario.projects}
        self._eligibility_rule = eligibility_rule
        self._client: Client
        self._accounts: DebtAccounts
        self._forecast: Forecast
        self._chooser: Chooser

    def begin(self, client: Client) -> None:
        self._client = client
        self._accounts = accounts = DebtAccounts(client, len(client.kinds), self._is_eligible, self._standing)
        # Weighted round-robin: who has had least in proportion to its share is next.
        self._forecast = Forecast(
            client,
            lambda project: -accounts.overall(project) / accounts.share_fractions[project.index],
            lambda project: 1 / accounts.share_fractions[project.index],
        )
        self._chooser = Chooser(
            client,
            self._forecast,
            lambda project: -accounts.overall(project),
            lambda job: job.counted_flops * client.period_secs,
        )

    def _is_eligible(self, project: ProjectState, kind: int, now: float) -> bool:
        """ "Debt eligible": not backed off, the back-off not at its maximum, not suspended, new tasks allowed."""
        if project.suspended or project.no_new_tasks:
            return False
        if not self._eligibility_rule:
            return True
        return project.backoff_until_secs[kind] <= now and project.backoff_interval_secs[kind] < BACKOFF_MOST_SECS

    def accrue(self, now: float) -> None:
        self._accounts.accrue(now)

    def projects_changed(self, now: float) -> None:
        self._accounts.projects_changed()

    def job_arrived(self, job: Job, now: float) -> None:
        pass

    def job_ended(self, job: Job, now: float) -> None:
        pass

    def choose(self, now: float) -> Choice:
        return self._chooser.choose(now)

    def fetch(self, now: float) -> Fetch:
        client = self._client
        kinds = [*range(1, len(client.kinds)), 0]  # coprocessors are assumed to be faster, so they come first
        askable = [
            project for project in client.projects if client.can_ask(project, now) and not has_many_jobs(project)
        ]
        askable.sort(key=lambda project: (-self._accounts.overall(project), project.index))
        starved = [project for project in askable if not project.unfinished]
        total_secs = client.buffer_total_secs
        sure_secs = min(self._forecast.surely_saturated_secs(kind, now) for kind in kinds)
        if not starved and sure_secs > total_secs:
            return Fetch(None, now + max(LEAST_LOOK_SECS, sure_secs - total_secs))
        outlook = self._forecast.outlook(now, total_secs)
        request = (
            self._major_shortfall(kinds, askable, outlook, now)
            or self._minor_shortfall(kinds, askable, outlook, now)
            or self._starved_project(kinds, starved, outlook, now)
        )
        return Fetch(request, now if request is not None else self._next_look(outlook, now))

    def _major_shortfall(
        self, kinds: Sequence[int], askable: Sequence[ProjectState], outlook: Outlook, now: float
    ) -> WorkRequest | None:
        """An instance idle before the connect interval ends: even an overworked project is asked, for this alone."""
        for kind in kinds:
            if outlook.saturated_secs[kind] < self._client.buffer_min_secs:
                for project in askable:
                    if not self._client.backed_off(project, kind, now):
                        return self._request(project, outlook, [kind], Reason.FETCH_MAJOR)
        return None

    def _minor_shortfall(
        self, kinds: Sequence[int], askable: Sequence[ProjectState], outlook: Outlook, now: float
    ) -> WorkRequest | None:
        """One idle after that, before the additional work ends."""
        client = self._client
        for kind in kinds:
            if client.buffer_min_secs <= outlook.saturated_secs[kind] < client.buffer_total_secs:
                for project in askable:
                    if not client.backed_off(project, kind, now) and not self._overworked(project, kind):
                        return self._request(project, outlook, kinds, Reason.FETCH_MINOR)
        return None

    def _starved_project(
        self, kinds: Sequence[int], starved: Sequence[ProjectState], outlook: Outlook, now: float
    ) -> WorkRequest | None:
        """A project without any job that is owed some time."""
        for kind in kinds:
            for project in starved:
                if not self._client.backed_off(project, kind, now) and not self._overworked(project, kind):
                    request = self._request(project, outlook, kinds, Reason.FETCH_STARVED)
                    request.secs[kind] = max(request.secs[kind], ANY_JOB_SECS)
                    return request
        return None

    def _overworked(self, project: ProjectState, kind: int) -> bool:
        """It got a period more of that kind than it was owed.

        Without the eligibility rule debts drift apart kind by kind, for who cannot use the CPU is owed it for ever;
        then a project is overworked only if the same holds over all kinds, in relation to the one owed most.
        """
        client, accounts = self._client, self._accounts
        if accounts.of(project, kind) >= -client.period_secs:
            return False
        if self._eligibility_rule:
            return True
        greatest = max(accounts.overall(other) for other in client.projects)
        return accounts.overall(project) < greatest - client.period_secs * client.instance_flops[kind]

    def _request(self, project: ProjectState, outlook: Outlook, kinds: Sequence[int], reason: Reason) -> WorkRequest:
        """Ask for the shortfall and the idle instances of those kinds."""
        asked = [kind in kinds for kind in range(len(self._client.kinds))]
        return WorkRequest(
            project,
            [secs if ask else 0.0 for ask, secs in zip(asked, outlook.shortfall_secs, strict=True)],
            [idle if ask else 0.0 for ask, idle in zip(asked, outlook.idle, strict=True)],
            reason,
        )

    def _next_look(self, outlook: Outlook, now: float) -> float:
        """When a shortfall begins, a back-off ends, or a starved project may no longer be overworked. At least
        each period; the text looks every 60 seconds."""
        client = self._client
        ahead = [client.period_secs]
        for saturated_secs in outlook.saturated_secs:
            for mark_secs in (client.buffer_min_secs, client.buffer_total_secs):
                if saturated_secs > mark_secs:
                    ahead.append(saturated_secs - mark_secs)
        for project in client.projects:
            for at in (project.rpc_allowed_secs, *project.backoff_until_secs):
                if at > now:
                    ahead.append(at - now)
        return now + max(LEAST_LOOK_SECS, min(ahead))

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        request = self.fetch(now).request
        return request if request is not None and request.project is project else None

    def rpc_done(self, request: WorkRequest, got: Sequence[int], now: float) -> None:
        pass

    def standing(self, project: ProjectState, now: float) -> float:
        """Overall debt in seconds of one CPU."""
        return self._accounts.overall(project) / self._client.instance_flops[0]


def has_many_jobs(project: ProjectState) -> bool:
    """Whether it has so many that no more are asked for: they wait for a processor that is never free."""
    return project.unfinished > MOST_RUNNABLE
