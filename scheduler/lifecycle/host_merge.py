"""Merges two records of one computer: archived tasks and the day's jobs move to the record that stays.

Runs inside the caller's transaction, after `credit.statistics.host_merge`, which has locked both computers. So no
scheduler RPC of either is writing. An RPC that has read the merged records must notice the merge before it writes.
"""

from __future__ import annotations

from collections import Counter

from django.db.models import F

from portal.models import Host
from scheduler.lanes.release import move_jobs
from scheduler.models import ArchivedTask, HostRecord, WorkBlock


def merge_records(older_id: int, newer_id: int) -> None:
    """Move the older record's data to the newer one; safe to repeat."""
    # A scheduler RPC writes only if the computer's row is unchanged since it was read (`rpc.writes.write`).
    Host.objects.filter(pk=newer_id).update(last_contact_at=F("last_contact_at"))
    # The older record's jobs are new to the newer one's client.
    HostRecord.objects.filter(host=newer_id).update(named_jobs_until=None)
    ArchivedTask.objects.filter(host=older_id).update(host=newer_id)
    move_jobs(older_id, newer_id)
    # A computer that was blocked stays blocked, whatever its record.
    if not WorkBlock.objects.filter(host=newer_id).exists():
        WorkBlock.objects.filter(host=older_id).update(host=newer_id)
    _join_jobs_of_day(older_id, newer_id)


def _join_jobs_of_day(older_id: int, newer_id: int) -> None:
    """Add up the day's jobs: otherwise a merge would renew the daily quota. Of two days the later one counts."""
    records = {record.host_id: record for record in HostRecord.objects.filter(host__in=(older_id, newer_id))}
    older, newer = records.get(older_id), records.get(newer_id)
    if older is None or older.jobs_day is None:
        return
    counts: Counter[tuple[int, int, str]] = Counter()
    undone: Counter[tuple[int, int, str]] = Counter()
    for record in (older, newer):
        if record is not None and record.jobs_day == older.jobs_day:
            for app, version, type_, njobs, *nundone in record.jobs_of_day:
                counts[app, version, type_] += njobs
                undone[app, version, type_] += sum(nundone)
    if newer is None or newer.jobs_day is None or newer.jobs_day <= older.jobs_day:
        rows = [[*key, njobs, undone[key]] if undone[key] else [*key, njobs] for key, njobs in counts.items()]
        HostRecord.objects.update_or_create(
            host_id=newer_id, defaults={"jobs_day": older.jobs_day, "jobs_of_day": rows}
        )
    HostRecord.objects.filter(host=older_id).update(jobs_day=None, jobs_of_day=[])
