"""Selects the jobs of a reply, and what to store about them and the computer's (host, version) records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.conf import settings

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from credit.engine.flops import believed_benchmark
from scheduler.engine.choice import versions
from scheduler.engine.choice.selection import SentJob
from scheduler.engine.facts import Job, RecordKey
from scheduler.engine.lanes import is_for_one_person
from scheduler.rpc import writes
from scheduler.rpc.choice.computer import ceilings
from scheduler.rpc.choice.dispatch import Dispatch
from scheduler.rpc.store import JobsOfDay
from scheduler.rpc.writes import RecordChanges


class Sending(NamedTuple):
    """The rows of the jobs to send, and the records that begin a spell of probation or get a quota."""

    rows: list[dict[str, Any]]
    begun: set[RecordKey]


def send(dispatch: Dispatch, jobs: Iterable[Job], jobs_of_day: JobsOfDay, now: dt.datetime) -> Sending:
    """Select the jobs to send, and count them in the computer's records and quotas."""
    selection = dispatch.selection
    for job in jobs:
        selection.offer(job)
    if selection.sent:
        jobs_of_day.begin(selection.today)
    p_fpops = believed_benchmark(dispatch.computer.p_fpops, ceilings())
    begun = set()
    for sent in selection.sent:
        if _count(dispatch, sent, jobs_of_day, now):
            begun.add(sent.choice.key)
    return Sending([_row(dispatch, sent, p_fpops, now) for sent in selection.sent], begun)


def _count(dispatch: Dispatch, sent: SentJob, jobs_of_day: JobsOfDay, now: dt.datetime) -> bool:
    """Count the job; return whether its record begins a spell of probation, or gets its first quota."""
    selection, key = dispatch.selection, sent.choice.key
    record = selection.records.get(key) or selection.records.setdefault(key, HostVersionFacts())
    since = record.host_scale_time
    is_first = not record.max_jobs_per_day
    if is_first:
        # So that even a computer that never reports can be punished.
        record.max_jobs_per_day = versions.most_a_day(selection.apps[key.app_id], dispatch.computer, key.processor_type)
    probation.count_sent(record, now.timestamp(), sent.job.delay_bound_secs, selection.today)
    jobs_of_day.counts[key] = record.n_jobs_today
    return is_first or record.host_scale_time != since


def _row(dispatch: Dispatch, sent: SentJob, p_fpops: float, now: dt.datetime) -> dict[str, Any]:
    job = sent.job
    app = dispatch.selection.apps[job.app_id]
    return writes.job_row(
        job,
        sent.choice,
        p_fpops,
        now + dt.timedelta(seconds=job.delay_bound_secs + settings.REPORT_GRACE_SECS),
        dispatch.ties,
        one_per_user=app.one_result_per_user and not is_for_one_person(job.lane, job.min_quorum),
        must_replicate=sent.must_replicate,
        binding=sent.binding,
    )


def record_changes(
    dispatch: Dispatch, ids: dict[RecordKey, int], judged: set[RecordKey], begun: set[RecordKey]
) -> RecordChanges:
    """Return the rows of the records that reports (``judged``) or jobs (``begun``) changed; ``ids``: of existing
    records.
    """
    selection, changes = dispatch.selection, RecordChanges()
    new = {sent.choice.key for sent in selection.sent if sent.choice.key not in ids}
    # In the order in which everybody locks them.
    for key in sorted(judged | begun | new, key=lambda key: ids.get(key, 0)):
        inherits = dispatch.chooser.inherited.get(key, 0)
        row = writes.record_row(key, selection.records[key], ids.get(key), inherits)
        stored = changes.judged if key in judged else changes.begun
        (stored if key in ids else changes.added).append(row)
    return changes
