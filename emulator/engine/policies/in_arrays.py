"""The common base of this project's policies, whose rules are the kernel's (emulator.engine.kernel).

A run under one of them works on arrays, and the policy only stores its accounts when the run returns to objects. It can
also be called for a client of objects, like any policy: for a decision that is inspected, or by a user's own policy
built on it. Then each call fills the table, lets the kernel decide, and returns the decision as objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.kernel import decide, rec
from emulator.engine.policies.names import PolicyName
from emulator.engine.timeline.reasons import Reason
from emulator.engine.uncompiled import column

if TYPE_CHECKING:
    from emulator.engine.client import Client
    from emulator.engine.kernel.exchange import Exchange
    from emulator.engine.state import Job, ProjectState
    from emulator.engine.table import Table


class ArrayPolicy(ABC):
    """A policy of this project."""

    name: ClassVar[PolicyName]
    uses_backoffs: ClassVar[bool] = True
    _sends_busy_secs: ClassVar[bool] = False

    _client: Client
    _exchange: Exchange | None = None

    # Accounts.

    def begin(self, client: Client) -> None:
        """See Policy."""
        self._client = client
        self.open_accounts()
        self.projects_changed(0.0)

    @abstractmethod
    def open_accounts(self) -> None:
        """Opens the accounts with the scenario's values."""

    @abstractmethod
    def projects_changed(self, now: float) -> None:
        """See Policy."""

    @abstractmethod
    def standing(self, project: ProjectState, now: float) -> float:
        """See Policy."""

    @abstractmethod
    def load(self, t: Table) -> None:
        """Copies the accounts into the table, which has everything else."""

    @abstractmethod
    def store(self, t: Table) -> None:
        """Copies the accounts back from the table."""

    def job_ended(self, job: Job, now: float) -> None:
        """See Policy. Most accounts follow the work that is done, so the end of a job changes none."""
        return

    @abstractmethod
    def priorities(self, t: Table, order: list[int]) -> list[float]:
        """The numbers that rank these projects, which may be asked for work, in their order; the first is asked
        first.
        """

    # Decisions for a client of objects.

    def use(self, exchange: Exchange) -> None:
        """Makes it decide in that table."""
        self._exchange = exchange

    def table(self) -> Table:
        """The table, with the client's present state."""
        from emulator.engine.events.contact import Contact
        from emulator.engine.kernel.exchange import Exchange

        if self._exchange is None:
            self._exchange = Exchange(self._client, Contact(self._client, self), self)
        self._exchange.load()
        self._exchange.make_room()
        return self._exchange.table

    def _stored(self, t: Table) -> None:
        assert self._exchange is not None
        self._exchange.flush()
        self.store(t)
        self._client.safe_until_secs = float(t.run[0]["safe_until_secs"])
        self._client.slice_steps = int(t.run[0]["steps"])

    def accrue(self, now: float) -> None:
        """See Policy."""
        t = self.table()
        decide.accrue(t, float(now))
        self._stored(t)

    def choose(self, now: float) -> Choice:
        """See Policy."""
        t = self.table()
        is_new = decide.select(t, float(now))
        self._stored(t)
        again = float(t.run[0]["choose_at"])
        if not is_new:
            return Choice(self._client.running, [], again)
        chosen = t.lists[: t.run[0]["chosen"]]
        jobs = {job.id: job for job in self._client.jobs()}
        rows = t.jobs[chosen["chosen"]]
        for row in t.jobs[: t.run[0]["jobs"]]:
            if row["id"] in jobs:
                jobs[row["id"]].slice_end_secs = float(row["slice_end_secs"])
        return Choice([jobs[number] for number in rows["id"]], [Reason(why) for why in chosen["reasons"]], again)

    def fetch(self, now: float) -> Fetch:
        """See Policy."""
        t = self.table()
        asked = decide.fetch(t, float(now))
        if t.run[0]["pending"]:
            rec.resolve(t)
        self._stored(t)
        return Fetch(self._request(t, asked), float(t.run[0]["fetch_at"]) if asked[0] < 0 else now)

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        """See Policy."""
        t = self.table()
        asked = decide.piggyback_request(t, project.index, float(now))
        self._stored(t)
        return self._request(t, asked)

    def _request(self, t: Table, asked: tuple[int, int, int]) -> WorkRequest | None:
        index, reason, kind = asked
        if index < 0:
            return None
        secs, instances, delays = (t.kinds[name].tolist() for name in ("asked_secs", "asked_instances", "delay_secs"))
        project = self._client.all_projects[index]
        return WorkRequest(project, secs, instances, Reason(reason), delays if self._sends_busy_secs else None, kind)


def missed_numbers(t: Table) -> list[list[int]]:
    """Per kind of processor, the numbers of the jobs that the last search found to miss their deadlines, in order."""
    numbers = column(t.jobs, "id", t.run[0]["jobs"])
    rows = iter(column(t.lists, "missed", sum(kind["missed"] for kind in t.kinds)).tolist())
    return [numbers[list(islice(rows, int(kind["missed"])))].tolist() for kind in t.kinds]


def rows_of(t: Table, numbers: list[int]) -> Any:
    """The rows of jobs with these numbers."""
    return column(t.jobs, "id", t.run[0]["jobs"]).searchsorted(numbers)
