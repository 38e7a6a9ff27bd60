"""The policies of the 6.6 client and of the one before it: long-term debts.

`LongTermDebt` has one per project and kind of processor. Source: "Work fetch and GPUs" (the 6.6 document), with
emulator document, section 15, where it is silent. Sections followed:

* "Per-resource-type backoff": the client keeps the back-offs, and they are heeded. A kind may be asked for although the
  project is backed off for it, if the project is asked for another kind;
* "Long-term debt", with the eligibility rule and its parameter: each eligible project is owed its part of the time that
  was available and pays what it got. The mean change is subtracted from the eligible ones, so that their net change is
  zero; then the largest debt from all, so that the maximum is zero;
* "Summary of the new policy": major shortfall, minor shortfall and starved project, GPUs first;
* "Scheduler request and reply message": seconds and instances per kind, and no more: the server learns nothing of
  jobs that may miss their deadlines.

The document leaves out job choice: it is BOINC's four steps, with overall debt for priority.

`SingleDebt` has one debt by CPU time and asks with one number: the same document, "Problems with the old work fetch
policy". It shows the problems listed there: without a CPU shortfall nothing is fetched though a GPU idles, and a
project that uses GPUs only is owed more and more. For a GPU it asks for no more than the GPU's own shortfall, because
the emulated server has none of the limits per computer that held back servers of that time. There are no back-offs per
kind: a project that sends nothing is not asked again for a while.

The rules are in emulator.engine.kernel.ltd.
"""

from __future__ import annotations

from typing import Final

from emulator.engine.kernel.queues import LTD, LTD_SINGLE
from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import CPU, Scenario
from emulator.engine.state import ProjectState
from emulator.engine.table import Table

MIN_SHARE_FRACTION: Final = 1e-9  # of all shares: a project of share 0 waits for all others in the simulation


class LongTermDebt(ArrayPolicy):
    """The policy of the 6.6 client. With `eligibility_rule` off, a project that is backed off collects debt like any
    other, which the document's first example needs and its third forbids.
    """

    name = PolicyName.LTD

    def __init__(self, scenario: Scenario, *, eligibility_rule: bool = True) -> None:
        self._start_debts = {project.name: dict(project.standing.ltd_secs) for project in scenario.projects}
        self._eligibility_rule = eligibility_rule

    def _kinds(self) -> range:
        """The kinds that have debts."""
        return range(len(self._client.kinds))

    def open_accounts(self) -> None:
        client = self._client
        self._booked_to = 0.0
        self._debts = [
            {project.index: self._start_debts[project.name].get(client.kinds[kind], 0.0) for project in client.projects}
            for kind in self._kinds()
        ]

    def projects_changed(self, now: float) -> None:
        """Starts a new project without debt, forgets one that left, and makes the largest debt 0 again."""
        projects = self._client.projects
        total = sum(project.share for project in projects) or 1.0
        self._share_fractions = {project.index: max(MIN_SHARE_FRACTION, project.share / total) for project in projects}
        for kind, debts in enumerate(self._debts):
            present = {project.index: debts.get(project.index, 0.0) for project in projects}
            largest = max(present.values(), default=0.0)
            self._debts[kind] = {index: debt - largest for index, debt in present.items()}

    def standing(self, project: ProjectState, now: float) -> float:
        """Overall debt in seconds of one CPU."""
        flop = 0.0
        for debts, speed in zip(self._debts, self._client.instance_flops, strict=True):
            flop += debts[project.index] * speed
        return flop / self._client.instance_flops[0]

    def load(self, t: Table) -> None:
        run = t.run[0]
        run["policy"], run["eligibility_rule"] = LTD, self._eligibility_rule
        run["accrued_secs"] = self._booked_to
        t.projects["share_fraction"] = 1.0  # of those that are not attached: irrelevant
        for index, fraction in self._share_fractions.items():
            t.projects[index]["share_fraction"] = fraction
            for kind, debts in enumerate(self._debts):
                t.pairs[index, kind]["debt"] = debts[index]

    def store(self, t: Table) -> None:
        self._booked_to = float(t.run[0]["accrued_secs"])
        for kind, debts in enumerate(self._debts):
            for index in debts:
                debts[index] = float(t.pairs[index, kind]["debt"])

    def priorities(self, t: Table, order: list[int]) -> list[float]:
        """The debts as in `standing`."""
        return [self.standing(self._client.all_projects[p], 0.0) for p in order]


class SingleDebt(LongTermDebt):
    """The policy before that. Debts are in CPU-seconds."""

    name = PolicyName.LTD_SINGLE
    uses_backoffs = False

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._start_debts = {
            project.name: {kind: debt for kind, debt in project.standing.ltd_secs if kind == CPU}
            for project in scenario.projects
        }

    def _kinds(self) -> range:
        return range(1)

    def standing(self, project: ProjectState, now: float) -> float:
        return self._debts[0][project.index]

    def load(self, t: Table) -> None:
        super().load(t)
        t.run[0]["policy"] = LTD_SINGLE
