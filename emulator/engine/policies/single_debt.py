"""The policy that the 6.6 client replaced: one long-term debt by CPU time, one number asked for.

Source: "Work fetch and GPUs" (the 6.6 document), section "Problems with the old work fetch policy". It shows the
problems listed there: without a CPU shortfall nothing is fetched though a GPU idles, and a project that uses GPUs
only is owed more and more.

It asks for the CPU's shortfall, as the one number for jobs of all kinds; for a GPU no more than the GPU's
own shortfall, because the emulated server has none of the limits per computer that held back servers of that time.
There are no back-offs per kind: a project that sends nothing is not asked again for a while.
"""

from __future__ import annotations

from emulator.engine.client import Client
from emulator.engine.decisions import Fetch, WorkRequest
from emulator.engine.policies.debts import MIN_RECHECK_SECS, DebtPolicy
from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import CPU, Scenario
from emulator.engine.state import ProjectState
from emulator.engine.timeline.reasons import Reason


class SingleDebt(DebtPolicy):
    """The policy. Debts are in CPU-seconds."""

    name = PolicyName.LTD_SINGLE
    uses_backoffs = False

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(
            {
                project.name: {kind: debt for kind, debt in project.standing.ltd_secs if kind == CPU}
                for project in scenario.projects
            }
        )

    def begin(self, client: Client) -> None:
        accounts = self._keep_debts(client, 1)
        self._rank_by(
            lambda project: accounts.of(project, 0), client.instance_flops[0], lambda job: job.cpus * client.period_secs
        )

    def _is_eligible(self, project: ProjectState, kind: int, now: float) -> bool:
        return not project.suspended and not project.no_new_tasks

    def fetch(self, now: float) -> Fetch:
        client = self._client
        total_secs = client.buffer_total_secs
        min_saturated_secs = self._simulation.min_saturated_secs(0, now)
        if min_saturated_secs > total_secs:
            return Fetch(None, now + max(MIN_RECHECK_SECS, min_saturated_secs - total_secs))
        simulated = self._simulation.result(now, total_secs)
        cpu_secs = simulated.shortfall_secs[0]
        if cpu_secs <= 0:
            return Fetch(None, now + max(MIN_RECHECK_SECS, simulated.saturated_secs[0] - total_secs))
        askable = self._askable(now)
        if not askable:
            allowed = [project.rpc_allowed_secs for project in client.projects if project.rpc_allowed_secs > now]
            return Fetch(None, min(allowed, default=now + client.period_secs))
        project = max(askable, key=lambda project: (self.accounts.of(project, 0), -project.index))
        secs = [min(cpu_secs, shortfall) for shortfall in simulated.shortfall_secs]
        return Fetch(WorkRequest(project, secs, [0.0] * len(secs), Reason.FETCH_CPU_SHORTFALL), now)

    def standing(self, project: ProjectState, now: float) -> float:
        return self.accounts.of(project, 0)
