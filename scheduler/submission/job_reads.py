"""Reads the jobs of a batch, for its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Count, F, Q
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from credit.engine.states import Outcome, ServerState, WorkunitError
from credit.models import Batch, Result, Workunit
from credit.models.work import WORKUNIT_ERRORS
from credit.pages.state_texts import MAX_MESSAGE, reason_text

_OPEN: Final = Q(canonical_result_id=None, error_mask=0)
_CANCELLED: Final = int(WorkunitError.CANCELLED)
JOB_STATES: Final = {
    "open": pgettext_lazy("state", "Open"),
    "done": _("Done"),
    "failed": _("Failed"),
    "cancelled": _("Cancelled"),
}
_FILTERS: Final = {
    "": Q(),
    "open": _OPEN,
    "done": Q(canonical_result_id__isnull=False),
    "failed": Q(canonical_result_id=None, error_mask__gt=0, cancelled=0),
    "cancelled": Q(canonical_result_id=None, cancelled__gt=0),
}


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. ``state``: of `JOB_STATES`; ``errors``: some reasons why it failed; the rest counts results by outcome."""

    workunit: Workunit
    name: str
    state: str
    errors: list[str]
    nunsent: int
    nout: int
    nsuccesses: int
    nerrors: int

    @property
    def state_label(self) -> str:
        return str(JOB_STATES[self.state])


def read_jobs(batch: Batch, state: str, after: int, limit: int) -> list[JobRow]:
    """Return jobs of a batch that are not archived, with numbers above ``after``; ``state`` empty: in all states."""
    errors = Q(results__server_state=ServerState.OVER) & ~Q(results__outcome__in=[Outcome.SUCCESS, Outcome.DIDNT_NEED])
    rows = (
        Workunit.objects.filter(batch=batch, pk__gt=after)
        .alias(cancelled=F("error_mask").bitand(_CANCELLED))
        .filter(_FILTERS[state])
        .annotate(
            nunsent=Count("results", filter=Q(results__server_state=ServerState.UNSENT)),
            nout=Count("results", filter=Q(results__server_state=ServerState.IN_PROGRESS)),
            nsuccesses=Count("results", filter=Q(results__outcome=Outcome.SUCCESS)),
            nerrors=Count("results", filter=errors),
        )
        .order_by("pk")[:limit]
    )
    reasons = _reasons([workunit.pk for workunit in rows])
    prefix = f"{batch.app.name}_{batch.pk}_"
    return [
        JobRow(
            workunit,
            workunit.name.removeprefix(prefix),
            _state(workunit),
            [str(text) for flag, text in WORKUNIT_ERRORS.items() if workunit.error_mask & flag]
            + reasons.get(workunit.pk, []),
            workunit.nunsent,
            workunit.nout,
            workunit.nsuccesses,
            workunit.nerrors,
        )
        for workunit in rows
    ]


def _reasons(workunit_ids: list[int]) -> dict[int, list[str]]:
    """Of each that had errors: why the last of these results failed, such as a checksum that an input does not have."""
    failed = Result.objects.filter(workunit__in=workunit_ids, outcome=Outcome.CLIENT_ERROR)
    last = failed.order_by("workunit", "-received_at", "-pk").distinct("workunit")
    rows = last.values_list("workunit", "client_state", "exit_status", Left("stderr_text", MAX_MESSAGE))
    reasons = {
        id_: reason_text(Result(client_state=state, exit_status=status, stderr_text=message))
        for id_, state, status, message in rows
    }
    return {id_: [reason] for id_, reason in reasons.items() if reason}


def _state(workunit: Workunit) -> str:
    if workunit.canonical_result_id is not None:
        return "done"
    if not workunit.error_mask:
        return "open"
    return "cancelled" if workunit.error_mask & _CANCELLED else "failed"
