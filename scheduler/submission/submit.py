"""Submits jobs: a batch of workunits and their first results, in one transaction of a fixed number of statements.

A submission with a ``request_id`` may be repeated: the second one finds the batch of the first. Ids are separate for
each submitter, and reusing one for different content is refused.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import connection, transaction
from psycopg.errors import UniqueViolation

from credit.models import App, Batch, Workunit
from portal.languages.messages import Message
from portal.models import User
from portal.object_storage.storage import sync
from scheduler.engine.limits import job_of_output
from scheduler.engine.submission.fair_queue import QueueKey, Window
from scheduler.files.store import removed_on_failure, save_content
from scheduler.models import ArchivedWorkunit, StickyFile, StoredFile
from scheduler.programs import containers
from scheduler.submission import fair_shares, sql, targets
from scheduler.submission.batches import RETRY
from scheduler.submission.create_work import copy_workunits, create_results
from scheduler.wire import container_jobs
from scheduler.wire.job_fields import InputFile, JobError, KeptContent, RemoteContent, SubmittedJob, read_jobs


class RequestIdUsed(JobError):
    """The submitter has used this request id for a different submission."""

    def __init__(self) -> None:
        super().__init__("request_id", Message("request_id_used"))


_BASE_FIELDS: Final = (
    "memory_bound_bytes",
    "disk_bound_bytes",
    "delay_bound_secs",
    "min_quorum",
    "max_error_results",
    "max_total_results",
    "max_success_results",
    "priority",
    "command_line",
)


def submit(
    app: App,
    defaults: object,
    jobs: object,
    *,
    owner: User | None,
    name: str = "",
    request_id: str = "",
    is_retry: bool = False,
    exact_names: bool = False,
    into: Batch | None = None,
    now: dt.datetime,
) -> tuple[Batch, bool]:
    """Create a batch of jobs (docs/how-to/jobs.md describes jobs); return the batch, and whether it is new.

    ``exact_names``: named jobs keep their names, without a prefix of app and batch. ``into``: an existing batch; its
    row is locked, and names must be exact. ``is_retry``: for failed jobs, whose request ids nobody else may use. Raises
    JobError, which names the position, and then writes nothing, also if the owner's limits are exceeded; RequestIdUsed
    if the id was used for something else.
    """
    if request_id.startswith(RETRY) and not is_retry:
        raise JobError("request_id", Message("request_id_reserved", prefix=RETRY))
    parsed, faults = _read(app, defaults, jobs, most_faults=1, exact_names=exact_names)
    if faults:
        raise faults[0]
    targets.check(app, parsed, owner)
    parsed = targets.one_for_each_computer(targets.marked(parsed, owner), owner, now)
    with transaction.atomic():
        fields = {"app": app, "name": name or f"{app.name}, {now:%Y-%m-%d %H:%M}", "nworkunits": len(parsed)}
        if into is not None:
            batch, is_new = _filled(into, len(parsed)), True
        elif not request_id:
            batch, is_new = Batch.objects.create(owner=owner, created_at=now, **fields), True
        else:
            digest = _digest(app, name, defaults, jobs, exact_names)
            batch, is_new = _requested_batch(owner, request_id, digest, {"created_at": now, **fields})
        if is_new:
            _write(batch, parsed, now)
    return batch, is_new


def check(
    app: App, defaults: object, jobs: object, most_faults: int = 1, *, owner: User | None
) -> tuple[list[SubmittedJob], list[JobError]]:
    """Return what `submit` would create from these, and what it would refuse: reading stops after this many faults."""
    parsed, faults = _read(app, defaults, jobs, most_faults)
    if not faults:
        try:
            targets.check(app, parsed, owner)
            _check_sizes(parsed, _stored_before(parsed))
        except JobError as error:
            faults.append(error)
    if not faults:
        faults = list(islice(_container_faults(app, parsed), most_faults))
    return parsed, faults


def _read(
    app: App, defaults: object, jobs: object, most_faults: int, *, exact_names: bool = False
) -> tuple[list[SubmittedJob], list[JobError]]:
    if app.is_deprecated:
        return [], [JobError("app", Message("app_closed", app=app.name))]
    hosts = settings.REMOTE_INPUT_HOSTS
    parsed, faults = read_jobs(defaults, jobs, _base(app), most_faults, exact_names=exact_names, remote_hosts=hosts)
    return parsed, faults


def _container_faults(app: App, jobs: list[SubmittedJob]) -> Iterator[JobError]:
    if containers.runs_in_containers(app):
        yield from container_jobs.check(jobs, cache(containers.beginning))


def _base(app: App) -> dict[str, Any]:
    """Return values for fields that are not given: the table's defaults, and single results if the app allows them."""
    blank = Workunit()
    base = {field: getattr(blank, field) for field in _BASE_FIELDS}
    return base | {"min_quorum": 1} if app.adaptive_replication else base


def _requested_batch(owner: User | None, request_id: str, digest: bytes, fields: dict[str, Any]) -> tuple[Batch, bool]:
    batch, is_new = Batch.objects.get_or_create(
        owner=owner, request_id=request_id, defaults={"request_digest": digest, **fields}
    )
    if not is_new and bytes(batch.request_digest or b"") != digest:
        raise RequestIdUsed
    return batch, is_new


def _filled(into: Batch, njobs: int) -> Batch:
    """Return the batch with room for more jobs. JobError if it takes none."""
    batch = Batch.objects.select_for_update(no_key=True, of=("self",)).select_related("app").get(pk=into.pk)
    if batch.cancelled_at is not None or batch.retired_at is not None:
        raise JobError("batch", Message("batch_closed", number=str(batch.pk)))
    batch.nworkunits += njobs
    batch.save(update_fields=["nworkunits"])
    return batch


def _digest(app: App, name: str, *given: object) -> bytes:
    """Return a digest that is equal for equal submissions.

    A file that is read only when it is stored counts by its size: drafts and retries, which have such files, are
    protected from repetition by other means.
    """
    text = json.dumps([app.pk, name, *given], sort_keys=True, default=lambda content: content.nbytes)
    return hashlib.sha256(text.encode()).digest()


def _write(batch: Batch, jobs: list[SubmittedJob], now: dt.datetime) -> None:
    containers.keep_as_it_is(batch.app)
    for fault in _container_faults(batch.app, jobs):
        raise fault
    windows = fair_shares.admit(batch, jobs)
    _refuse_used_names(jobs)
    with removed_on_failure() as paths:
        _write_rows(batch, jobs, _stored(batch, jobs, paths), windows, now)
    if kept := {file.name for job in jobs for file in job.inputs if file.remote is not None and file.is_sticky}:
        rows = (StickyFile(batch=batch, name=name) for name in sorted(kept))
        # Existing rows are written, too: so the file deleter, which does not see these jobs yet, leaves them alone.
        StickyFile.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["name", "batch"], update_fields=["name"], batch_size=10_000
        )


_USED_NAME: Final = re.compile(r"\(name\)=\((.*)\)")
_NEW_WORKUNITS: Final = """
SELECT id, 0, target_nresults FROM credit_workunit w
 WHERE batch_id = %s AND NOT EXISTS (SELECT 1 FROM credit_result r WHERE r.workunit_id = w.id)
"""


def _refuse_used_names(jobs: Sequence[SubmittedJob]) -> None:
    names = [job.name for job in jobs if job.is_whole_name]
    if not names:
        return
    for model in (Workunit, ArchivedWorkunit):
        used = model.objects.filter(name__in=names).order_by("name").values_list("name", flat=True).first()
        if used is not None:
            number = next(number for number, job in enumerate(jobs) if job.name == used and job.is_whole_name)
            raise _name_used(f"jobs[{number}].name", used)
    places = {job.name: number for number, job in enumerate(jobs) if job.is_whole_name}
    for file in StoredFile.objects.raw(sql.FILES_NAMED_AFTER, [names]):
        if (name := job_of_output(file.name)) is not None and name in places:
            raise JobError(f"jobs[{places[name]}].name", Message("named_as_output", name=file.name, job=name))


def _name_used(where: str, name: str) -> JobError:
    return JobError(where, Message("job_name_used", name=name))


def _write_rows(
    batch: Batch,
    jobs: Sequence[SubmittedJob],
    stored: dict[_Key, StoredFile],
    windows: Mapping[QueueKey, Window],
    now: dt.datetime,
) -> None:
    workunits = (
        Workunit(
            app_id=batch.app_id,
            batch=batch,
            name=job.name if job.is_whole_name else f"{batch.app.name}_{batch.pk}_{job.name}",
            created_at=now,
            input_files=[_input(file, stored) for file in job.inputs],
            **job.fields,
        )
        for job in jobs
    )
    with connection.cursor() as cursor:
        try:
            copy_workunits(cursor, workunits)
        except UniqueViolation as error:
            # By a simultaneous submission, or because somebody gave a job a name that this batch would generate.
            used = _USED_NAME.search(error.diag.message_detail or "")
            raise _name_used("jobs", used[1] if used else "?") from error
        cursor.execute(_NEW_WORKUNITS, [batch.pk])
        create_results(cursor, cursor.fetchall(), now, windows)


def _input(input_file: InputFile, stored: dict[_Key, StoredFile]) -> dict[str, Any]:
    file: dict[str, Any]
    if input_file.remote is not None:
        file = {"name": input_file.name, "open_name": input_file.open_name, **_remote(input_file.remote)}
    else:
        source = stored[_key(input_file)]
        file = {"name": source.name, "open_name": input_file.open_name, "nbytes": source.nbytes, "md5": source.md5}
        if input_file.is_gzipped:
            file["gzipped_nbytes"] = stored[input_file.gzipped_name, None].nbytes
    flags = {"sticky": input_file.is_sticky, "executable": input_file.is_executable}
    variant = {"plan_class": input_file.plan_class, "cpu": input_file.cpu}
    return file | {name: value for name, value in {**flags, **variant}.items() if value}


def _remote(remote: RemoteContent) -> dict[str, Any]:
    fields: dict[str, Any] = {"urls": list(remote.urls), "nbytes": remote.nbytes, "md5": remote.md5}
    if remote.gzipped_urls:
        fields |= {"gzipped_urls": list(remote.gzipped_urls), "gzipped_nbytes": remote.gzipped_nbytes}
    return fields


_Key = tuple[str, str | KeptContent | None]


def _key(file: InputFile) -> _Key:
    return file.name, file.content


def _stored_before(jobs: Sequence[SubmittedJob]) -> dict[str, StoredFile]:
    """Return the existing files that jobs name, by name; JobError if one is missing."""
    inputs = {file for job in jobs for file in job.inputs if file.content is None and file.remote is None}
    names = {file.name for file in inputs} | {file.gzipped_name for file in inputs if file.is_gzipped}
    stored = {file.name: file for file in StoredFile.objects.raw(sql.NAMED_FILES, [list(names)])} if names else {}
    if missing := sorted(names - set(stored)):
        raise JobError("input_files", Message("no_stored_file", name=missing[0]))
    outputs = {job: name for name in names if (job := job_of_output(name)) is not None}
    if outputs and (job := Workunit.objects.filter(name__in=outputs).values_list("name", flat=True).first()):
        raise JobError("input_files", Message("named_as_output", name=outputs[job], job=job))
    return stored


def _check_sizes(jobs: Sequence[SubmittedJob], stored: Mapping[str, StoredFile]) -> None:
    """Raise JobError if a job's inputs alone are larger than the disk space that it declares; of variants the largest
    counts.
    """
    for number, job in enumerate(jobs):
        sizes: Counter[tuple[str, str]] = Counter()
        for file in job.inputs:
            sizes[file.plan_class, file.cpu] += stored[file.name].nbytes if file.name in stored else file.nbytes
        nbytes = sizes.pop(("", ""), 0) + max(sizes.values(), default=0)
        if nbytes > job.fields["disk_bound_bytes"]:
            limits = {"nbytes": job.fields["disk_bound_bytes"], "inputs_nbytes": nbytes}
            raise JobError(f"jobs[{number}].disk_bound_bytes", Message("disk_bound_limit", **limits))


def _stored(batch: Batch, jobs: Sequence[SubmittedJob], paths: list[str]) -> dict[_Key, StoredFile]:
    """Return the files of all jobs; contents are stored for this batch, each once, with their paths in ``paths``."""
    keys = {_key(file): None for job in jobs for file in job.inputs if file.remote is None}
    stored = _stored_before(jobs)
    _check_sizes(jobs, stored)
    own = _store_contents(batch, len(jobs), (content for _, content in keys if content is not None), paths)
    by_name: dict[_Key, StoredFile] = {(name, None): file for name, file in stored.items()}
    return by_name | {(name, content): own[content] for name, content in keys if content is not None}


def _store_contents(
    batch: Batch, njobs: int, contents: Iterable[str | KeptContent], paths: list[str]
) -> dict[str | KeptContent, StoredFile]:
    """Store contents in one statement, without checking for rows of these names, which contain the number of the batch
    and of its earlier jobs.
    """
    nearlier = batch.nworkunits - njobs
    prefix = f"{batch.app.name}_{batch.pk}_in{f'_{nearlier}' if nearlier else ''}"
    files: dict[str, StoredFile] = {}
    by_content: dict[str | KeptContent, StoredFile] = {}
    for content in contents:
        raw = content.encode() if isinstance(content, str) else content.read()
        md5 = hashlib.md5(raw, usedforsecurity=False).hexdigest()
        if md5 not in files:
            name = f"{prefix}_{md5}"
            paths.append(save_content(name, ContentFile(raw)))
            files[md5] = StoredFile(name=name, path=paths[-1], nbytes=len(raw), md5=md5, batch=batch)
        by_content[content] = files[md5]
    sync(file.path for file in files.values())
    StoredFile.objects.bulk_create(files.values())
    return by_content
