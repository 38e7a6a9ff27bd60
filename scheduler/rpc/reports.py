"""A request's reports: which results succeeded, how the computer's records change, which jobs were lost.

Every reported result is acknowledged, known or not. Otherwise its client would send it for ever. It counts once, for
the computer that it was sent to, and while it is open or late. Sources: BOINC protocol, reported result; credit
document, "Cheat prevention and host punishment".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from django.conf import settings

from credit.engine import probation
from credit.engine.probation import Ending
from credit.engine.states import Outcome, ServerState
from portal.languages.messages import Message
from scheduler.engine import copies, outputs
from scheduler.engine.choice import versions
from scheduler.engine.facts import AppFacts, Computer, Records, Version
from scheduler.engine.request import ReportedResult, SchedulerRequest
from scheduler.files.certificates import is_size_key
from scheduler.rpc.rows import KnownResult
from scheduler.rpc.store import Account, JobsOfDay, KnownHost

CLIENT_DONE: Final = 5
CLIENT_ABORTED: Final = 6
_NOT_DOWNLOADED: Final = 1
_NOT_UPLOADED: Final = 7
EXIT_ABORTED_BY_PROJECT: Final = 202
MAX_FAULTS: Final = 20
FORGOTTEN_SECS: Final = 90 * 86_400.0
"""How long after a restore of the database computers may have jobs that it has forgotten."""
_REPORTED: Final = frozenset({Outcome.SUCCESS, Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR})
_LATE: Final = frozenset({Outcome.NO_REPLY, Outcome.CLIENT_DETACHED})


@dataclass(frozen=True, slots=True)
class Report:
    """A reported result that may count: ``row`` is what to store, ``has_succeeded`` its verdict."""

    result: KnownResult
    reported: ReportedResult
    row: dict[str, Any]
    has_succeeded: bool


def judge(account: Account, host_id: int, request: SchedulerRequest, now: dt.datetime) -> list[Report]:
    """Return the reported results that are this computer's and can still count, each once."""
    reports: dict[int, Report] = {}
    for reported in request.results:
        result = account.results.get(reported.name)
        if result is None or result.id in reports or not _can_count(result, host_id, reported):
            continue
        reports[result.id] = _judged(result, reported, now)
    return list(reports.values())


def _can_count(result: KnownResult, host_id: int, reported: ReportedResult) -> bool:
    if result.host_id != host_id:
        return _was_forgotten(result) and _was_given(result, reported)
    is_late = result.server_state == ServerState.OVER and result.outcome in _LATE
    return result.server_state == ServerState.IN_PROGRESS or is_late


def _was_forgotten(result: KnownResult) -> bool:
    """Whether a restored database does not know who got it: its outputs have come (`scheduler.files.lost`)."""
    return result.host_id is None and result.sent_at is None and result.outcome == Outcome.NO_REPLY


def _was_given(result: KnownResult, reported: ReportedResult) -> bool:
    """Whether the report has the upload addresses of the outputs: only the computer that has the job knows them.

    Clients report each output with its address. The MD5s would be known to everybody with a copy of the workunit.
    """
    keys = {file.name: file.address_key for file in reported.files}
    return bool(result.uploads) and all(
        is_size_key(upload.name, keys.get(upload.name, "")) for upload in result.uploads
    )


def _judged(result: KnownResult, reported: ReportedResult, now: dt.datetime) -> Report:
    received = outputs.expected_and_received(result.output_files, result.name, result.uploads)
    faults = list(reported.faults)
    has_finished = reported.state == CLIENT_DONE and reported.exit_status == 0
    wrong = _wrong_files(result, reported, received) if has_finished else []
    faults += wrong
    faults += _time_faults(result, reported, now)
    row = {
        "id": result.id,
        "workunit_id": result.workunit_id,
        "outcome": int(Outcome.SUCCESS if has_finished and not wrong else Outcome.CLIENT_ERROR),
        "received_at": now.isoformat(),
        "client_state": reported.state,
        "exit_status": reported.exit_status,
        "elapsed_secs": reported.elapsed_secs,
        "cpu_secs": reported.cpu_secs,
        "fpops_cumulative": reported.fpops_cumulative,
        "fpops_per_cpu_sec": reported.fpops_per_cpu_sec,
        "peak_working_set_bytes": reported.peak_working_set_bytes,
        "peak_swap_bytes": reported.peak_swap_bytes,
        "peak_disk_bytes": reported.peak_disk_bytes,
        "stderr_text": reported.stderr_text,
        "report_faults": [fault.to_json() for fault in faults[:MAX_FAULTS]],
        "outputs": received.outputs,
        "output_digest": received.digest.hex() if received.outputs else None,
    }
    return Report(result, reported, row, has_finished and not wrong)


def _wrong_files(result: KnownResult, reported: ReportedResult, received: outputs.ReceivedOutputs) -> list[Message]:
    """Return files that the client could not upload, that arrived with other content than it says, or that did not
    arrive.

    A client reports a refused upload as a success; only the file's own element says what happened.
    """
    md5s = {upload.name: upload.sent_md5 or upload.md5 for upload in result.uploads}
    files = [(outputs.own_upload_name(reported.name, file.name), file) for file in reported.files]
    refused = {name: file.error for name, file in files if file.error}
    wrong = [Message("output_refused", name=name, reason=error) for name, error in refused.items()]
    for name, file in files:
        if name in md5s and file.md5 and file.md5 != md5s[name]:
            wrong.append(Message("output_differs", name=name))
    return wrong + [Message("output_missing", name=name) for name in received.missing if name not in refused]


def _time_faults(result: KnownResult, reported: ReportedResult, now: dt.datetime) -> list[Message]:
    out_secs = now.timestamp() - (result.sent_at or 0.0)
    if reported.elapsed_secs is not None and reported.elapsed_secs > out_secs:
        return [Message("reported_run_time", secs=round(reported.elapsed_secs), most_secs=round(out_secs))]
    return []


def count(
    endings: Iterable[tuple[KnownResult, Ending]],
    apps: Mapping[int, AppFacts],
    released: Mapping[int, Collection[Version]],
    records: Records,
    computer: Computer,
    now: dt.datetime,
) -> set[Any]:
    """Apply probation and host punishment to the (host, version) records; return the keys of those that changed.

    ``released``: the versions of each app. Whatever counts against a record also counts in the failing share of newer
    versions' records.
    """
    changed = set()
    for result, ending in endings:
        app, record = apps.get(result.app_id), records.get(result.key)
        if app is None or record is None:
            continue
        most = versions.most_a_day(app, computer, result.processor_type)
        if probation.count_ending(record, ending, now.timestamp(), result.delay_bound_secs, most, app.rules):
            changed.add(result.key)
            if ending is not Ending.SUCCESS:
                for key in versions.newer(records, result.key, released.get(result.app_id, ())):
                    probation.count_failing(records[key], app.rules)
                    changed.add(key)
    return changed


def count_undone(
    endings: Iterable[tuple[KnownResult, Ending]], jobs_of_day: JobsOfDay, records: Records, today: dt.date
) -> None:
    """Count jobs that were not computed again in the day's quota, if they exceed a share of the day's jobs."""
    for result, ending in endings:
        if ending not in probation.UNDONE:
            continue
        jobs_of_day.begin(today)
        nundone = jobs_of_day.undone.get(result.key, 0) + 1
        njobs = jobs_of_day.counts.get(result.key, 0)
        njobs += probation.counts_again(nundone, njobs, settings.MAX_UNDONE_SHARE)
        jobs_of_day.undone[result.key], jobs_of_day.counts[result.key] = nundone, njobs
        if (record := records.get(result.key)) is not None:
            record.jobs_day, record.n_jobs_today = today, njobs


def endings(
    reports: Iterable[Report], lost: Iterable[KnownResult], counted: Collection[int]
) -> list[tuple[KnownResult, Ending]]:
    """Return how the reported or lost results ended, for those that count."""
    # The failure of one that timed out was counted then.
    ended = [
        (report.result, _ending(report))
        for report in reports
        if report.has_succeeded or not _has_timed_out(report.result)
    ]
    # A computer that picks its jobs could just as well forget the others.
    ended += [(result, Ending.NOT_NEEDED if _is_unneeded(result) else Ending.LOST) for result in lost]
    return [(result, ending) for result, ending in ended if result.id in counted]


def _has_timed_out(result: KnownResult) -> bool:
    return result.server_state == ServerState.OVER and result.outcome == Outcome.NO_REPLY


def _ending(report: Report) -> Ending:
    reported = report.reported
    if report.has_succeeded:
        return Ending.SUCCESS
    if reported.exit_status == EXIT_ABORTED_BY_PROJECT:
        return Ending.NOT_NEEDED if _is_unneeded(report.result) else Ending.UNASKED_ABORT
    if reported.state == _NOT_DOWNLOADED:
        return Ending.NOT_DOWNLOADED
    # Done, but not a success: an output is missing.
    if reported.state == _NOT_UPLOADED or (reported.state == CLIENT_DONE and reported.exit_status == 0):
        return Ending.NOT_UPLOADED
    return Ending.ABORTED if reported.state == CLIENT_ABORTED else Ending.FAILED


def _is_unneeded(result: KnownResult) -> bool:
    """Whether the project tells clients to abort it (``unneeded``)."""
    return bool(result.error_mask) or result.is_decided or result.outcome == Outcome.DIDNT_NEED


def lost_row(result: KnownResult) -> dict[str, Any]:
    """Return the values to store for a job that its computer no longer has."""
    return {
        "id": result.id,
        "workunit_id": result.workunit_id,
        "outcome": int(Outcome.CLIENT_DETACHED),
        "report_faults": [Message("job_lost").to_json()],
        "outputs": [],
        "stderr_text": "",
    }


def lost(account: Account, host_id: int, request: SchedulerRequest) -> list[KnownResult]:
    """Return jobs that the computer should have but neither names nor reports: a reply was lost, or it was set up
    again.
    """
    others = request.other_results
    if request.is_cut or (others is None and request.hostid == host_id):
        return []
    named = {result.name for result in request.results} | request.unread_results | (others or frozenset())
    return [
        result
        for result in account.results.values()
        if result.host_id == host_id and result.server_state == ServerState.IN_PROGRESS and result.name not in named
    ]


def knows_other_jobs(account: Account, host: KnownHost, request: SchedulerRequest) -> bool:
    """Whether the request's jobs cannot be those of the client that sent the computer's last request (`engine.copies`).

    This is so if it lacks a job that was named, or still has one that was reported.
    """
    dropped = any((result.sent_at or inf) < host.named_jobs_until for result in lost(account, host.id, request))
    named = (account.results.get(name) for name in request.other_results or ())
    return dropped or any(
        result is not None and result.host_id == host.id and result.outcome in _REPORTED for result in named
    )


def repeats(account: Account, host: KnownHost, request: SchedulerRequest) -> copies.Repeats:
    """Return the new `KnownHost.repeats`."""
    if request.rpc_seqno != host.rpc_seqno:
        return host.repeats
    others = knows_other_jobs(account, host, request)
    return copies.repeated(request.rpc_seqno, host.rpc_seqno, host.repeats, knows_other_jobs=others)


def named_until(account: Account, host: KnownHost, request: SchedulerRequest, now: dt.datetime) -> float:
    """Return the new `KnownHost.named_jobs_until`: jobs that the client does not name yet are sent again."""
    if request.other_results is None or request.is_cut:
        return host.named_jobs_until
    return min((result.sent_at or 0.0 for result in lost(account, host.id, request)), default=now.timestamp())


def unneeded(
    account: Account, host_id: int, request: SchedulerRequest, generation: tuple[str, float] | None, now: dt.datetime
) -> tuple[list[str], list[str]]:
    """Return the names of jobs on the computer to abort at once, and of those to abort unless they are running.

    At once: those of a workunit that was cancelled or failed, of others, and unknown ones, unless they may have been
    sent before the database was restored. Unless running: those of a decided workunit, whose results can still get
    credit.
    """
    at_once, unless_begun = [], []
    for name in sorted(request.other_results or ()):
        result = account.results.get(name)
        if result is None:
            if not _may_be_forgotten(name, generation, now):
                at_once.append(name)
        elif (result.host_id != host_id and not _was_forgotten(result)) or (
            result.error_mask or result.outcome == Outcome.DIDNT_NEED
        ):
            at_once.append(name)
        elif result.is_decided:
            unless_begun.append(name)
    return at_once, unless_begun


def _may_be_forgotten(name: str, generation: tuple[str, float] | None, now: dt.datetime) -> bool:
    if generation is None:
        return False
    mark, begun_at = generation
    return not name.endswith(f"_r{mark}") and now.timestamp() - begun_at < FORGOTTEN_SECS
