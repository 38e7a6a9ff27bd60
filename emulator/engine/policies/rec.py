"""The modern policy: recent estimated credit (client scheduling document; emulator document, sections 7, 8 and 15).

"SP(P) = - REC(P)/resource_share(P) where REC(P) is the amount of processing done recently by P on this host." What is
stored here is the exponentially decaying sum of the counted FLOP done for a project, in closed form between events. REC
is that sum times the decay rate: a mean. As all sums decay alike, they are stored multiplied with a common growth
factor: then only the projects with running jobs change, and a new half-life leaves the order of the projects as it is.

`Rec` ranks projects for work fetch by their future REC; `RecLetter` by the document's letter
(docs/explanation/emulator.md compares them). The rules are in emulator.engine.kernel.rec.
"""

from __future__ import annotations

from typing import Final

from emulator.engine.kernel.queues import REC
from emulator.engine.kernel.rec import HALF_LIFE_DAYS
from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.policies.names import PolicyName
from emulator.engine.random_numbers import LN2
from emulator.engine.scenario import DAY_SECS
from emulator.engine.state import NEVER, ProjectState
from emulator.engine.table import Table

CREDIT_PER_FLOPS_DAY: Final = 200 / 1e9  # a Cobblestone per day is 5 MFLOPS


class Rec(ArrayPolicy):
    """The policy; one object per run. `half_life_days` is that of REC; by default 10 days or, where some project is
    asked more rarely, long enough to remember several requests.
    """

    name = PolicyName.REC
    _follows_letter = False
    _sends_busy_secs = True

    def __init__(self, half_life_days: float | None = None) -> None:
        self._adapts = half_life_days is None
        self._decay = LN2 / ((half_life_days or HALF_LIFE_DAYS) * DAY_SECS)

    def open_accounts(self) -> None:
        client = self._client
        self._by_letter = self._follows_letter or client.quirks.request_not_counted
        self._adapts = self._adapts and not self._by_letter
        self._accrued_secs = 0.0
        self._growth = 1.0
        self._done_flop = [
            state.project.standing.rec / CREDIT_PER_FLOPS_DAY / self._decay for state in client.all_projects
        ]  # times growth

    def projects_changed(self, now: float) -> None:
        self._adapted_at = -1  # arrivals of jobs when the half-life was adapted
        projects = self._client.all_projects
        total = sum(project.share for project in projects if project.attached)
        self._inverse = [total / project.share if project.share else 1.0 for project in projects]

    def standing(self, project: ProjectState, now: float) -> float:
        """REC in credit per day."""
        return self._done_flop[project.index] * self._decay / self._growth * CREDIT_PER_FLOPS_DAY

    def load(self, t: Table) -> None:
        run = t.run[0]
        run["policy"], run["by_letter"], run["adapts"] = REC, self._by_letter, self._adapts
        run["adapted"], run["accrued_secs"] = self._adapted_at, self._accrued_secs
        run["growth"], run["decay"] = self._growth, self._decay
        t.projects["done_flop"], t.projects["inverse"] = self._done_flop, self._inverse
        t.projects["tier"] = self._tiers()
        run["any_without_share"] = bool((t.projects["share"] == 0.0).any())

    def _tiers(self) -> list[int]:
        """Per project, how many priorities come before its own; projects without a share come last."""
        keys = [(project.share == 0.0, -project.project.priority) for project in self._client.all_projects]
        order = sorted(set(keys))
        return [order.index(key) for key in keys]

    def store(self, t: Table) -> None:
        run = t.run[0]
        self._done_flop = t.projects["done_flop"].tolist()
        self._growth, self._decay = float(run["growth"]), float(run["decay"])
        self._accrued_secs, self._adapted_at = float(run["accrued_secs"]), int(run["adapted"])

    def priorities(self, t: Table, order: list[int]) -> list[float]:
        """As in the client scheduling document, with REC as the policy takes it; minus infinity without a share."""
        ranks, is_last = t.projects["rank"].tolist(), (t.projects["share"] == 0.0).tolist()
        total = 1.0
        if not self._by_letter:
            total = sum([ranks[p] / self._inverse[p] for p in order if not is_last[p]]) or 1.0
        return [-NEVER if is_last[p] else -ranks[p] / total for p in order]


class RecLetter(Rec):
    """The client scheduling document's letter: projects are ranked for work fetch by their present REC, less for their
    queues in proportion to the buffer; the half-life is fixed.
    """

    name = PolicyName.REC_LETTER
    _follows_letter = True
