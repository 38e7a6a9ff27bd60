"""Output files by the addresses that BOINC's programs construct, with access checks.

Files are counted as in the output template, so that a missing optional one shifts no other. Only outputs of canonical
results are stored.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from credit.models import Batch, Result, Workunit
from extras.remote_jobs.keys import KeyRefused, find_caller, is_made_with_key_of
from extras.remote_jobs.operations.objects import Job, JobsError, check_owner, job_named, job_numbered, numbered_batch
from scheduler.models import ArchivedTask, KeptOutput

_INSTANCE: Final = re.compile(r"(.+)_[0-9]{1,4}(?:_r[0-9a-f]{8})?")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class OutputRefused(Exception):
    """An unavailable file. ``status``: 403 for a wrong key, 404 for a missing file."""

    def __init__(self, message: str, status: int = 404) -> None:
        super().__init__(message)
        self.status = status


class WrongProof(OutputRefused):
    """An MD5 that no valid key of the owner produces."""

    def __init__(self) -> None:
        super().__init__("bad auth str", 403)


def of_instance(name: str, number: str, digest: str) -> KeptOutput:
    """Return a file of a result. ``digest``: MD5 of key and result's name."""
    match = _INSTANCE.fullmatch(name)
    job = job_named(match[1]) if match else None
    if job is None or job.batch is None or not _has_instance(job, name):
        raise OutputRefused(f"no job instance {name[:200]}")
    _check(job.batch, name, digest)
    if not _is_canonical(job, name):
        raise OutputRefused(f"no such file: {name} is not the canonical instance of its job")
    return _file(job, number)


def of_job(name: str, number: str, key: str, address: str) -> KeptOutput:
    """Return a file of the canonical result of a job. ``key``: in clear, as programs send it here."""
    try:
        caller = find_caller(key, address, names_app=False)
        job = job_named(name)
        if job is None:
            raise OutputRefused(f"no workunit {name[:200]}")
        check_owner(caller, job.batch, "bad authenticator")
    except (KeyRefused, JobsError) as error:
        raise OutputRefused(str(error), 403) from error
    return _file(_with_result(job), number)


def all_of_batch(number: str, digest: str) -> Batch:
    """Return a batch for downloading all its outputs. ``digest``: MD5 of key and batch number."""
    batch = numbered_batch(_int(number)) if _int(number) else None
    if batch is None:
        raise OutputRefused(f"no batch {number[:20]}")
    _check(batch, number, digest)
    return batch


def all_of_job(number: str, digest: str) -> list[KeptOutput]:
    """Return all outputs of a job. ``digest``: MD5 of key and job number."""
    job = job_numbered(_int(number)) if _int(number) else None
    if job is None or job.batch is None:
        raise OutputRefused(f"no workunit {number[:20]}")
    _check(job.batch, number, digest)
    return _outputs(_with_result(job))


def physical_name(output: KeptOutput) -> str:
    """Return the name that the file was uploaded under; its path also has a random end."""
    return PurePosixPath(output.path).name.rpartition(".")[0]


def _check(batch: Batch, text: str, digest: str) -> None:
    if batch.owner is None:
        raise OutputRefused("no user")
    if not is_made_with_key_of(batch.owner, batch.app_id, text, digest):
        raise WrongProof


def _has_instance(job: Job, name: str) -> bool:
    if not job.is_archived:
        return Result.objects.filter(workunit=job.id, name=name).exists()
    return ArchivedTask.objects.filter(workunit=job.id, facts__name=name).exists()


def _is_canonical(job: Job, name: str) -> bool:
    if not job.is_archived:
        return Workunit.objects.filter(pk=job.id, canonical_result__name=name).exists()
    return ArchivedTask.objects.filter(pk=job.canonical_id, facts__name=name).exists()


def _with_result(job: Job) -> Job:
    if not job.canonical_id:
        raise OutputRefused(f"no canonical result for wu {job.name}")
    return job


def _outputs(job: Job) -> list[KeptOutput]:
    return list(KeptOutput.objects.filter(batch=job.batch, workunit_name=job.name).order_by("number"))


def _file(job: Job, number: str) -> KeptOutput:
    if _NUMBER.fullmatch(number) is None:
        raise OutputRefused("bad file num: not a number")
    by_number = {output.number: output for output in _outputs(job)}
    if int(number) not in by_number:
        most = max(by_number, default=-1)
        if int(number) > most >= 0:
            raise OutputRefused(f"bad file num: {number} > {most}")
        raise OutputRefused(f"no such file: {number} of {job.name}")
    return by_number[int(number)]


def _int(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0
