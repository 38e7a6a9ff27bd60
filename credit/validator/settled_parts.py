"""Confirms provisional credit for parts of jobs, or takes it back, once the jobs have ended.

A part is provisional if the computer's record was on probation (`credit.engine.partial`). It is confirmed when the
result is valid, and taken back if the job ends in any other way. The part's row stays, and records this.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Q

from credit.engine.recent_credit import take_back
from credit.models import (
    AppVersion,
    HostCredit,
    Outcome,
    PartState,
    Result,
    ResultPart,
    ServerState,
    UserCredit,
    ValidateState,
    Workunit,
)
from credit.statistics.facts import rules_of

BATCH: Final = 500
_UNDECIDED: Final = Q(result__outcome=Outcome.SUCCESS, result__workunit__error_mask=0) & Q(
    result__validate_state__in=[ValidateState.INIT, ValidateState.INCONCLUSIVE]
)


@dataclass(slots=True)
class SettledParts:
    """``nconfirmed`` and ``ntaken_back`` count results."""

    nconfirmed: int = 0
    ntaken_back: int = 0
    credit_taken_back: float = 0.0


def settle_parts(now: dt.datetime) -> SettledParts:
    """Settle the parts of jobs that have ended, a result per transaction; at most ``BATCH``, oldest first."""
    report = SettledParts()
    ended = ResultPart.objects.filter(state=PartState.PROVISIONAL, result__server_state=ServerState.OVER)
    for result_id in (
        ended.exclude(_UNDECIDED).order_by("result_id").values_list("result_id", flat=True).distinct()[:BATCH]
    ):
        with transaction.atomic():
            _settle(result_id, now, report)
    return report


def _settle(result_id: int, now: dt.datetime, report: SettledParts) -> None:
    """Settle the parts of one result.

    Locks the workunit, under whose lock validators read results, then the result, volunteer, computer, version.
    """
    workunit = Result.objects.values_list("workunit_id", flat=True).get(pk=result_id)
    Workunit.objects.select_for_update(no_key=True).get(pk=workunit)
    result = Result.objects.select_for_update(no_key=True).get(pk=result_id)
    parts = list(result.parts.filter(state=PartState.PROVISIONAL).order_by("id"))
    if not parts:
        return
    state = PartState.CONFIRMED if result.validate_state == ValidateState.VALID else PartState.TAKEN_BACK
    result.parts.filter(pk__in=[part.pk for part in parts]).update(state=state, settled_at=now)
    if state is PartState.CONFIRMED:
        report.nconfirmed += 1
        return
    credit = min(result.partial_credit, sum(part.credit for part in parts))
    result.partial_credit -= credit
    result.partial_elapsed_secs = max(
        0.0, result.partial_elapsed_secs - sum(part.to_secs - part.from_secs for part in parts)
    )
    result.save(update_fields=["partial_credit", "partial_elapsed_secs"])
    _take_back(result, parts, credit, now)
    report.ntaken_back += 1
    report.credit_taken_back += credit


def _take_back(result: Result, parts: list[ResultPart], credit: float, now: dt.datetime) -> None:
    accounts: list[UserCredit | HostCredit | AppVersion] = [
        *UserCredit.objects.select_for_update(no_key=True).filter(user=result.user_id),
        *HostCredit.objects.select_for_update(no_key=True).filter(host=result.host_id),
        *AppVersion.objects.select_for_update(no_key=True).filter(pk__in=[result.app_version_id]),
    ]
    rules = rules_of(result.app)
    for account in accounts:
        for part in parts:
            at = account.expavg_at.timestamp() if account.expavg_at else None
            account.expavg_credit = take_back(
                account.expavg_credit, at, now.timestamp(), part.credit, part.granted_at.timestamp(), rules
            )
            account.expavg_at = max(now, account.expavg_at or now)
        account.total_credit = max(0.0, account.total_credit - credit)
        if account.total_credit < credit * 1e-9:
            # Only rounding is left. A first grant counts more in the average than is taken back.
            account.total_credit = account.expavg_credit = 0.0
        account.save(update_fields=["total_credit", "expavg_credit", "expavg_at"])
