"""The rows that the statements of a scheduler request return: JSON objects with these fields. Times in Unix seconds."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import msgspec

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts
from portal.clients.database.json_rows import JsonRow
from scheduler.engine.facts import Job, RecordKey
from scheduler.engine.project_preferences import ProjectPreferences
from scheduler.engine.trickle_downs import Message


class UploadRow(JsonRow):
    """An output that is here (`outputs.UploadedFile`). ``sent_md5``: as its computer knows it, if it arrived packed."""

    name: str
    path: str
    nbytes: int
    md5: str
    sent_md5: str
    is_complete: bool = True


class KnownResult(JsonRow):
    """A result that the computer has, reports, or names.

    ``is_decided``: its workunit has its canonical result, or ended otherwise. ``output_files`` and ``uploads`` are read
    only for reported ones, and ``job``, to send it again, only for those that the client does not name.
    """

    id: int
    name: str
    host_id: int | None
    workunit_id: int
    app_id: int
    version_id: int | None
    processor_type: str
    server_state: int
    outcome: int
    sent_at: float | None
    deadline_at: float | None
    projected_flops: float | None
    peak_flops: float | None
    error_mask: int
    is_decided: bool
    delay_bound_secs: int
    job: Job | None
    output_files: list[dict[str, Any]] = []
    uploads: list[UploadRow] = []

    @property
    def key(self) -> RecordKey:
        return RecordKey(self.app_id, self.version_id or 0, self.processor_type)


class RecordRow(JsonRow):
    """The columns of a (host, version) record that the scheduler uses; ``version_id`` 0: of the host's own programs."""

    id: int
    app_id: int
    version_id: int
    processor_type: str
    et_n: int
    et_avg: float | None
    scale_probation: bool
    host_scale_at: float | None
    error_rate: float
    consecutive_valid: int
    max_jobs_per_day: int
    failing_share: float
    turnaround_n: int
    turnaround_avg: float | None

    @property
    def key(self) -> RecordKey:
        return RecordKey(self.app_id, self.version_id, self.processor_type)

    def facts(self, n_jobs_today: int, jobs_day: dt.date | None) -> HostVersionFacts:
        return HostVersionFacts(
            pfc=Average(),
            et=AverageWithVariance(self.et_n, self.et_avg),
            turnaround=AverageWithVariance(self.turnaround_n, self.turnaround_avg),
            scale_probation=self.scale_probation,
            host_scale_time=self.host_scale_at,
            error_rate=self.error_rate,
            consecutive_valid=self.consecutive_valid,
            max_jobs_per_day=self.max_jobs_per_day,
            n_jobs_today=n_jobs_today,
            jobs_day=jobs_day,
            failing_share=self.failing_share,
        )


class ReadRow(JsonRow):
    """One request's row of `scheduler/rpc/sql/read.sql`; ``n``: its position in the batch.

    ``host_id`` None: the account has no such computer.
    """

    n: int
    user_id: int
    user_name: str
    email: str
    cross_project_id: str
    user_created_at: float
    key_id: int
    key_created_at: float
    key_used_at: float | None
    user_total: float | None
    user_expavg: float | None
    user_expavg_at: float | None
    host_id: int | None
    host_created_at: float | None
    venue: str | None
    host_version: str | None
    host_total: float | None
    host_expavg: float | None
    host_expavg_at: float | None
    rpc_seqno: int | None
    hardware_digest: str | None
    jobs_day: dt.date | None
    jobs_of_day: list[list[Any]] | None
    cpids: list[str] | None
    named_jobs_until: float | None
    repeated_seqno: int | None
    repeated_times: int | None
    work_asked_at: float | None
    preferences_at: float | None
    preferences: str | None
    project_preferences: ProjectPreferences | None
    records: list[RecordRow] | None
    results: list[KnownResult] | None
    # Only from statements that read them
    unneeded_files: list[str] | None = None
    trickle_downs: list[Message] | None = None


class ReportRow(JsonRow):
    """The results that a report ended, and the computer's records, locked, if there were any."""

    counted: set[int]
    records: list[RecordRow] | None


class PickedJob(JsonRow):
    """A job from the head of its app's queue, and where that now begins; None if only lanes have jobs."""

    job: Job
    rank: int | None
    place: int | None


class WaitingCounts(JsonRow):
    """Among the examined jobs: how many wait, and how many need more time than there is.

    For those that need more memory or disk space: how many bytes the smallest lacks.
    """

    njobs: int
    memory_nbytes: float | None
    disk_nbytes: float | None
    deadline: int


class ElsewhereRow(JsonRow):
    jobs: list[Job] | None
    waiting: WaitingCounts


class WrittenRow(JsonRow):
    """What was written for a computer: the names of the jobs to send, by their ids, and whether some of its trickle-up
    messages were rejected.
    """

    host_id: int
    sent: dict[int, str] | None
    has_dropped_trickles: bool


READ: Final = msgspec.json.Decoder(ReadRow)
REPORT: Final = msgspec.json.Decoder(ReportRow)
PICKED: Final = msgspec.json.Decoder(list[PickedJob] | None)
ELSEWHERE: Final = msgspec.json.Decoder(ElsewhereRow)
WAITING: Final = msgspec.json.Decoder(WaitingCounts)
WRITTEN: Final = msgspec.json.Decoder(WrittenRow)
