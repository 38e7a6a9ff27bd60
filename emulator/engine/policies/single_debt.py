"""The policy that the 6.6 client replaced: one long-term debt by CPU time, one number asked for.

Source: "Work fetch and GPUs" (the 6.6 document), section "Problems with the old work fetch policy". It shows the
problems listed there: without a CPU shortfall nothing is fetched though a GPU idles, and a project that uses GPUs
only is owed more and more.

What it asks for is the CPU's shortfall, as the one number for jobs of all kinds; for a GPU no more than the GPU's
own shortfall, because the emulated server has none of the limits per computer that held back servers of that time.
There are no back-offs per kind: a project that sends nothing is not asked again for a while.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies.long_term_debt import LEAST_LOOK_SECS, DebtAccounts, has_many_jobs
from emulator.engine.policies.rr_simulation import Forecast
from emulator.engine.policies.run_list import Chooser
from emulator.engine.scenario import CPU, Scenario
from emulator.engine.state import Job, ProjectState
from emulator.engine.timeline.reasons import Reason


class SingleDebt:
    """The policy. Debts are in CPU-seconds."""

    name = "ltd-single"
    uses_backoffs = False

    def __init__(self, scenario: Scenario) -> None:
        self._standing = {
            project.name: {kind: debt for kind, debt in project.standing.ltd_secs if kind == CPU}
            for project in scenario.projects
        }
        self._client: Client
        self._accounts: DebtAccounts
        self._forecast: Forecast
        self._chooser: Chooser

    def begin(self, client: Client) -> None:
        self._client = client
        self._accounts = accounts = DebtAccounts(client, 1, _is_eligible, self._standing)
        cpu_flops = client.instance_flops[0]
        self._forecast = Forecast(
            client,
            lambda project: -accounts.of(project, 0) / accounts.share_fractions[project.index],
            lambda project: 1 / (cpu_flops * accounts.share_fractions[project.index]),
        )
        self._chooser = Chooser(
            client,
            self._forecast,
            lambda project: -accounts.of(project, 0),
            lambda job: job.cpus * client.period_secs,
        )

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
        total_secs = client.buffer_total_secs
        sure_secs = self._forecast.surely_saturated_secs(0, now)
        if sure_secs > total_secs:
            return Fetch(None, now + max(LEAST_LOOK_SECS, sure_secs - total_secs))
        outlook = self._forecast.outlook(now, total_secs)
        cpu_secs = outlook.shortfall_secs[0]
        if cpu_secs <= 0:
            return Fetch(None, now + max(LEAST_LOOK_SECS, outlook.saturated_secs[0] - total_secs))
        askable = [
            project for project in client.projects if client.can_ask(project, now) and not has_many_jobs(project)
        ]
        if not askable:
            allowed = [project.rpc_allowed_secs for project in client.projects if project.rpc_allowed_secs > now]
            return Fetch(None, min(allowed, default=now + client.period_secs))
        project = max(askable, key=lambda project: (self._accounts.of(project, 0), -project.index))
        secs = [min(cpu_secs, shortfall) for shortfall in outlook.shortfall_secs]
        return Fetch(WorkRequest(project, secs, [0.0] * len(secs), Reason.FETCH_CPU_SHORTFALL), now)

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        request = self.fetch(now).request
        return request if request is not None and request.project is project else None

    def rpc_done(self, request: WorkRequest, got: Sequence[int], now: float) -> None:
        pass

    def standing(self, project: ProjectState, now: float) -> float:
        return self._accounts.of(project, 0)


def _is_eligible(project: ProjectState, kind: int, now: float) -> bool:
    return not project.suspended and not project.no_new_tasks
