"""The policy of the 6.6 client: a long-term debt per project and kind of processor.

Source: "Work fetch and GPUs" (the 6.6 document), with emulator document, section 15, where it is silent.
Sections followed:

* "Per-resource-type backoff": the client keeps the back-offs (emulator.engine.contact), and they are heeded here. A
  kind may be asked for although the project is backed off for it, if the project is asked for another kind;
* "Long-term debt": emulator.engine.policies.debts, with the eligibility rule and its parameter;
* "Summary of the new policy": `fetch`, with major shortfall, minor shortfall and starved project, GPUs first;
* "Scheduler request and reply message": seconds and instances per kind, and no more: the server learns nothing of
  jobs that may miss their deadlines.

The document leaves out job choice: it is the four steps of emulator.engine.policies.run_list, with overall debt for
priority.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Fetch, WorkRequest
from emulator.engine.policies.debts import MIN_RECHECK_SECS, DebtPolicy
from emulator.engine.policies.forecast import SimulationResult
from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import DAY_SECS, Scenario
from emulator.engine.state import ProjectState
from emulator.engine.timeline.reasons import Reason

MAX_BACKOFF_SECS: Final = DAY_SECS
ANY_JOB_SECS: Final = 1.0  # asked of a starved project for a kind without a shortfall


class LongTermDebt(DebtPolicy):
    """The policy. With `eligibility_rule` off, a project that is backed off collects debt like any other, which
    the document's first example needs and its third forbids."""

    name = PolicyName.LTD
    uses_backoffs = True

    def __init__(self, scenario: Scenario, *, eligibility_rule: bool = True) -> None:
        super().__init__({project.name: dict(project.standing.ltd_secs) for project in scenario.projects})
        self.eligibility_rule = eligibility_rule

    def begin(self, client: Client) -> None:
        accounts = self._keep_debts(client, len(client.kinds))
        self._rank_by(accounts.overall, 1.0, lambda job: job.counted_flops * client.period_secs)

    def _is_eligible(self, project: ProjectState, kind: int, now: float) -> bool:
        """ "Debt eligible": not backed off, the back-off not at its maximum, not suspended, new tasks allowed."""
        if project.suspended or project.no_new_tasks:
            return False
        if not self.eligibility_rule:
            return True
        return project.backoff_until_secs[kind] <= now and project.backoff_interval_secs[kind] < MAX_BACKOFF_SECS

    def fetch(self, now: float) -> Fetch:
        client = self._client
        kinds = [*range(1, len(client.kinds)), 0]  # coprocessors are assumed to be faster, so they come first
        askable = sorted(self._askable(now), key=lambda project: (-self.accounts.overall(project), project.index))
        starved = [project for project in askable if not project.unfinished]
        total_secs = client.buffer_total_secs
        min_saturated_secs = min(self._simulation.min_saturated_secs(kind, now) for kind in kinds)
        if not starved and min_saturated_secs > total_secs:
            return Fetch(None, now + max(MIN_RECHECK_SECS, min_saturated_secs - total_secs))
        simulated = self._simulation.result(now, total_secs)
        request = (
            self._major_shortfall(kinds, askable, simulated, now)
            or self._minor_shortfall(kinds, askable, simulated, now)
            or self._starved_project(kinds, starved, simulated, now)
        )
        return Fetch(request, now if request is not None else self._next_recheck(simulated, now))

    def _major_shortfall(
        self, kinds: Sequence[int], askable: Sequence[ProjectState], simulated: SimulationResult, now: float
    ) -> WorkRequest | None:
        """An instance idle before the connect interval ends: even an overworked project is asked, for this alone."""
        for kind in kinds:
            if simulated.saturated_secs[kind] < self._client.buffer_min_secs:
                for project in askable:
                    if not self._client.backed_off(project, kind, now):
                        return self._request(project, simulated, [kind], Reason.FETCH_MAJOR, kind)
        return None

    def _minor_shortfall(
        self, kinds: Sequence[int], askable: Sequence[ProjectState], simulated: SimulationResult, now: float
    ) -> WorkRequest | None:
        """One idle after that, before the additional work ends."""
        client = self._client
        for kind in kinds:
            if client.buffer_min_secs <= simulated.saturated_secs[kind] < client.buffer_total_secs:
                for project in askable:
                    if not client.backed_off(project, kind, now) and not self._overworked(project, kind):
                        return self._request(project, simulated, kinds, Reason.FETCH_MINOR, kind)
        return None

    def _starved_project(
        self, kinds: Sequence[int], starved: Sequence[ProjectState], simulated: SimulationResult, now: float
    ) -> WorkRequest | None:
        """A project without any job that is owed some time."""
        for kind in kinds:
            for project in starved:
                if not self._client.backed_off(project, kind, now) and not self._overworked(project, kind):
                    request = self._request(project, simulated, kinds, Reason.FETCH_STARVED, kind)
                    request.secs[kind] = max(request.secs[kind], ANY_JOB_SECS)
                    return request
        return None

    def _overworked(self, project: ProjectState, kind: int) -> bool:
        """It got a period more of that kind than it was owed.

        Without the eligibility rule debts diverge kind by kind: a project that cannot use the CPU is owed it for ever;
        then a project is overworked only if the same holds over all kinds, in relation to the one owed most.
        """
        client, accounts = self._client, self.accounts
        if accounts.of(project, kind) >= -client.period_secs:
            return False
        if self.eligibility_rule:
            return True
        greatest = max(accounts.overall(other) for other in client.projects)
        return accounts.overall(project) < greatest - client.period_secs * client.instance_flops[kind]

    def _request(
        self, project: ProjectState, simulated: SimulationResult, kinds: Sequence[int], reason: Reason, kind: int
    ) -> WorkRequest:
        """Ask for the shortfall and the idle instances of those kinds; the reason is about `kind`."""
        asked = [kind in kinds for kind in range(len(self._client.kinds))]
        return WorkRequest(
            project,
            [secs if ask else 0.0 for ask, secs in zip(asked, simulated.shortfall_secs, strict=True)],
            [idle if ask else 0.0 for ask, idle in zip(asked, simulated.idle, strict=True)],
            reason,
            kind=kind,
        )

    def _next_recheck(self, simulated: SimulationResult, now: float) -> float:
        """When a shortfall begins, a back-off ends, or a starved project may no longer be overworked. At least
        each period; the text looks every 60 seconds."""
        client = self._client
        ahead = [client.period_secs]
        for saturated_secs in simulated.saturated_secs:
            for mark_secs in (client.buffer_min_secs, client.buffer_total_secs):
                if saturated_secs > mark_secs:
                    ahead.append(saturated_secs - mark_secs)
        for project in client.projects:
            for at in (project.rpc_allowed_secs, *project.backoff_until_secs):
                if at > now:
                    ahead.append(at - now)
        return now + max(MIN_RECHECK_SECS, min(ahead))

    def standing(self, project: ProjectState, now: float) -> float:
        """Overall debt in seconds of one CPU."""
        return self.accounts.overall(project) / self._client.instance_flops[0]
