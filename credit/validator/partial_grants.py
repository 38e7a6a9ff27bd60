"""Grants credit for a part of a running job, as a trickle-up message requests (credit document, "Peak FLOP Count").

The grants are stored with the result (``partial_elapsed_secs``, ``partial_credit``), each with its explanation
(`ResultPart`); the final report grants the rest. One transaction. Locks are taken in the project server's order:
result, volunteer and computer, version.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Min

from credit.engine.facts import ProcessorType, ResultFacts
from credit.engine.flops import cut
from credit.engine.partial import MachineTime, PartialClaim, believed_instances, claim_partial
from credit.engine.recent_credit import add_credit
from credit.engine.rules import Rules
from credit.engine.states import ValidateState
from credit.models import (
    AppVersion,
    HostAppVersion,
    HostCredit,
    PartState,
    Result,
    ResultPart,
    ServerState,
    UserCredit,
    VersionAverage,
)
from credit.models.claims import StoredClaim
from credit.statistics.facts import app_facts, record_facts, rules_of, version_facts, workunit_facts
from credit.statistics.host_records import create_missing, use_medians
from portal.models import Host

# Locks nothing. The last valid results of a program on a computer: all run times of jobs that were sent and reported
# while one of them was out passed within that time. So their sum shows how many processors were in use at once.
_SHOWN: Final = """
WITH done AS (
  SELECT id, sent_at, received_at, extract(epoch FROM received_at - sent_at) AS out_secs,
         least(elapsed_secs, extract(epoch FROM received_at - sent_at)) * coalesce(ninstances, 1) AS secs
    FROM credit_result
   WHERE host_id = %s AND app_id = %s AND app_version_id IS NOT DISTINCT FROM %s AND processor_type = %s
     AND validate_state = %s AND elapsed_secs > 0 AND sent_at < received_at
   ORDER BY id DESC LIMIT 100)
SELECT coalesce(max(shown), 0) FROM (
  SELECT sum(inner_.secs) / outer_.out_secs AS shown FROM done outer_
    JOIN done inner_ ON inner_.sent_at >= outer_.sent_at AND inner_.received_at <= outer_.received_at
   GROUP BY outer_.id, outer_.out_secs) windows"""

_Account = UserCredit | HostCredit | AppVersion
_CLAIM_COLUMNS: Final = [field.name for field in StoredClaim._meta.get_fields()]


def grant_part(result_id: int, elapsed_secs: float, now: dt.datetime) -> float:
    """Grant credit for the new part of ``elapsed_secs``, the run time so far. Returns the credit, 0 if none is due.

    Nothing is due for a job that is not in progress, for run time that was credited already, for more than the
    computer's processors can have done for all its jobs, if the claim would be the default or approximate, and in
    credit systems that count at the end. Safe to repeat.
    """
    with transaction.atomic():
        result = (
            Result.objects.select_for_update(of=("self",), no_key=True)
            .select_related("app", "workunit", "host", "app_version")
            .get(pk=result_id)
        )
        if result.server_state != ServerState.IN_PROGRESS or result.host is None or result.sent_at is None:
            return 0.0
        users, host = _lock_accounts(result, result.host)
        machine = _machine_time(result, result.host, host)
        app, workunit = app_facts(result.app), workunit_facts(result.workunit)
        part = claim_partial(app, workunit, _facts(result, now), machine, elapsed_secs, now.timestamp())
        if part is None or not part.grant.credit:
            return 0.0
        setattr(host, _credited_until(result), dt.datetime.fromtimestamp(part.machine_credited_until, dt.UTC))
        host.save(update_fields=[_credited_until(result)])
        _keep(result, part, now)
        _credit([*users, host], result, part.grant.credit, now, app.rules)
        return part.grant.credit


def _lock_accounts(result: Result, host: Host) -> tuple[list[UserCredit], HostCredit]:
    users = [result.user_id] if result.user_id is not None else []
    create_missing(result.app_id, [], users, [host.pk])
    locked = list(UserCredit.objects.select_for_update(no_key=True).filter(user_id__in=users))
    return locked, HostCredit.objects.select_for_update(no_key=True).get(host=host)


def _credited_until(result: Result) -> str:
    """Return the column of `HostCredit` for the kind of processor that the job runs on."""
    return "cpus_credited_until" if result.processor_type == ProcessorType.CPU else "gpus_credited_until"


def _machine_time(result: Result, host: Host, credit: HostCredit) -> MachineTime:
    if result.processor_type == ProcessorType.CPU:
        ninstances = cut(host.ncpus, settings.AM_MAX_NCPUS)
    else:
        gpus = sum(cut(float(gpu.get("count") or 0), settings.AM_MAX_GPUS) for gpu in host.coprocs)
        ninstances = cut(gpus, settings.AM_MAX_GPUS)
    in_progress = Result.objects.filter(host=host, server_state=ServerState.IN_PROGRESS)
    first_sent_at = in_progress.aggregate(first=Min("sent_at"))["first"]
    until = getattr(credit, _credited_until(result))
    return MachineTime(
        believed_instances(ninstances, _shown_instances(result)),
        _used(result) or 1.0,
        until.timestamp() if until is not None else None,
        first_sent_at.timestamp(),
    )


def _shown_instances(result: Result) -> float:
    """Return how many processors the computer's valid jobs of this program have shown to run at once."""
    job = [result.host_id, result.app_id, result.app_version_id, result.processor_type]
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN, [*job, ValidateState.VALID])
        [(ninstances,)] = cursor.fetchall()
    return float(ninstances)


def _used(result: Result) -> float | None:
    """Return how many instances the job was given; if another server sent it, how many its version uses."""
    if result.ninstances is not None or result.app_version is None:
        return result.ninstances
    is_cpu = result.processor_type == ProcessorType.CPU
    return result.app_version.avg_ncpus if is_cpu else result.app_version.gpu_usage


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


def _keep(result: Result, part: PartialClaim, now: dt.datetime) -> None:
    """Add the part to the result, with the claim that explains it."""
    ResultPart.objects.create(
        result=result,
        granted_at=now,
        from_secs=result.partial_elapsed_secs,
        to_secs=part.credited_elapsed_secs,
        credit=part.grant.credit,
        state=PartState.PROVISIONAL if part.is_provisional else PartState.KEPT,
        **{name: getattr(part.claim, name) for name in _CLAIM_COLUMNS},
    )
    result.partial_elapsed_secs = part.credited_elapsed_secs
    result.partial_credit += part.grant.credit
    result.save(update_fields=["partial_elapsed_secs", "partial_credit"])


def _credit(
    locked: list[UserCredit | HostCredit], result: Result, credit: float, now: dt.datetime, rules: Rules
) -> None:
    """Add it to the granted credit of the volunteer, the computer and the version."""
    versions = [result.app_version_id] if result.app_version_id is not None else []
    accounts: list[_Account] = [*locked, *AppVersion.objects.select_for_update(no_key=True).filter(pk__in=versions)]
    assert result.sent_at is not None  # checked by the caller
    for account in accounts:
        at = account.expavg_at.timestamp() if account.expavg_at else None
        average, _ = add_credit(account.expavg_credit, at, now.timestamp(), credit, result.sent_at.timestamp(), rules)
        account.expavg_credit, account.expavg_at = average, max(now, account.expavg_at or now)
        account.total_credit += credit
        account.save(update_fields=["total_credit", "expavg_credit", "expavg_at"])
