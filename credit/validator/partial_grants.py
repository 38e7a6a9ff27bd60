"""Grants credit for a part of a job that still runs, as a trickle-up message asks (credit document, "Peak FLOP Count").

The grants stay with the result (``partial_elapsed_secs``, ``partial_credit``); the final report brings the rest.
It is one transaction. Locks are taken in the project server's order: result, volunteer and computer, version.
"""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from credit.engine.facts import ResultFacts
from credit.engine.partial import claim_partial
from credit.engine.recent_credit import add_credit
from credit.engine.rules import Rules
from credit.models import AppVersion, HostAppVersion, HostCredit, Result, ServerState, UserCredit, VersionAverage
from credit.statistics.facts import app_facts, record_facts, rules_of, version_facts, workunit_facts
from credit.statistics.host_records import create_missing, use_medians

_Account = UserCredit | HostCredit | AppVersion


def grant_part(result_id: int, elapsed_secs: float, now: dt.datetime) -> float:
    """Grant credit for what is new in a run time of ``elapsed_secs`` so far. Returns the credit, 0 if none is due.

    Nothing is due for a job that is not in progress, for a run time that was credited, where the claim would be the
    default, and in credit systems that count at the end. Safe to repeat.
    """
    with transaction.atomic():
        result = (
            Result.objects.select_for_update(of=("self",), no_key=True)
            .select_related("app", "workunit", "host", "app_version")
            .get(pk=result_id)
        )
        if result.server_state != ServerState.IN_PROGRESS or result.host is None or result.sent_at is None:
            return 0.0
        app, workunit = app_facts(result.app), result.workunit
        part = claim_partial(app, workunit_facts(workunit), _facts(result, now), elapsed_secs, now.timestamp())
        if part is None or not part.grant.credit:
            return 0.0
        result.partial_elapsed_secs = part.credited_elapsed_secs
        result.partial_credit += part.grant.credit
        result.save(update_fields=["partial_elapsed_secs", "partial_credit"])
        _credit(result, part.grant.credit, now, rules_of(result.app))
        return part.grant.credit


def _facts(result: Result, now: dt.datetime) -> ResultFacts:
    assert result.sent_at is not None and result.host is not None  # checked by the caller
    records = HostAppVersion.objects.filter(host=result.host, app=result.app, app_version=result.app_version)
    if result.app_version is None:
        records = records.filter(processor_type=result.processor_type)
    record = records.first()
    version = None if result.app_version is None else version_facts(result.app_version)
    if version is not None and result.app.version_average == VersionAverage.MEDIAN:
        use_medians([version], rules_of(result.app))
    return ResultFacts(
        None if record is None else record_facts(record),
        version,
        0.0,
        result.peak_flops or 0.0,
        result.sent_at.timestamp(),
        now.timestamp(),
        is_anonymous=result.app_version is None,
        partial_elapsed_secs=result.partial_elapsed_secs,
        partial_credit=result.partial_credit,
    )


def _credit(result: Result, credit: float, now: dt.datetime, rules: Rules) -> None:
    """Add it to the granted credit of the volunteer, the computer and the version."""
    users = [result.user_id] if result.user_id is not None else []
    hosts = [result.host_id] if result.host_id is not None else []
    versions = [result.app_version_id] if result.app_version_id is not None else []
    create_missing(result.app_id, [], users, hosts)
    accounts: list[_Account] = [
        *UserCredit.objects.select_for_update(no_key=True).filter(user_id__in=users),
        *HostCredit.objects.select_for_update(no_key=True).filter(host_id__in=hosts),
        *AppVersion.objects.select_for_update(no_key=True).filter(pk__in=versions),
    ]
    assert result.sent_at is not None  # checked by the caller
    for account in accounts:
        at = account.expavg_at.timestamp() if account.expavg_at else None
        average, _ = add_credit(account.expavg_credit, at, now.timestamp(), credit, result.sent_at.timestamp(), rules)
        account.expavg_credit, account.expavg_at = average, max(now, account.expavg_at or now)
        account.total_credit += credit
        account.save(update_fields=["total_credit", "expavg_credit", "expavg_at"])
