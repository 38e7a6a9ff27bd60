"""All operations by name, and one answer for each request, whatever happens."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from django.core.files import File
from django.db import DatabaseError

from extras.remote_jobs.keys import Caller, KeyRefused, find_caller
from extras.remote_jobs.operations import ending, files, following, submitting
from extras.remote_jobs.operations.objects import SUCCESS, JobsError, Reply
from extras.remote_jobs.staging import StagingError
from extras.remote_jobs.wire.jobs import RequestError
from extras.remote_jobs.wire.replies import DATABASE_ERROR_NUM, error
from extras.remote_jobs.wire.xml_tree import Element, XmlError, parse

log = structlog.get_logger(__name__)
Operation = Callable[[Caller, Element, dt.datetime], Reply]
Answer = tuple[str, Reply]
"""The root of a reply, and its elements."""
REFUSALS: Final = (JobsError, RequestError, StagingError, XmlError)

_KEY: Final = re.compile(rb"<authenticator>\s*([^<\s]{1,100})\s*</authenticator>")

OF_APPS: Final[dict[str, Operation]] = {
    "create_batch": submitting.create_batch,
    "estimate_batch": submitting.estimate_batch,
    "submit_batch": submitting.submit_batch,
    "get_templates": submitting.get_templates,
}
OF_BATCHES: Final[dict[str, Operation]] = {
    "query_batches": following.query_batches,
    "query_batch": following.query_batch,
    "query_batch2": following.query_batch2,
    "query_job": following.query_job,
    "query_completed_job": following.query_completed_job,
    "abort_batch": ending.abort_batch,
    "abort_jobs": ending.abort_jobs,
    "retire_batch": ending.retire_batch,
    "set_expire_time": ending.set_expire_time,
}


def answer_jobs(raw: bytes, address: str, now: dt.datetime) -> Answer:
    """Answer a request to submit_rpc_handler.php."""
    operations = OF_APPS | OF_BATCHES

    def carry_out(request: Element) -> Reply:
        if request.tag == "ping":
            return SUCCESS
        return operations[request.tag](_caller(request, address, names_app=request.tag in OF_APPS), request, now)

    return _answer(raw, {"ping", *operations}, "bad command", carry_out)


def answer_files(raw: bytes, uploaded: Sequence[File[bytes]], address: str, now: dt.datetime) -> Answer:
    """Answer a request to job_file.php."""

    def carry_out(request: Element) -> Reply:
        caller = _caller(request, address, names_app=False)
        if request.tag == "query_files":
            return files.query_files(caller, request, now)
        return files.upload_files(caller, request, uploaded)

    return _answer(raw, {"query_files", "upload_files"}, "no such action", carry_out)


def _caller(request: Element, address: str, *, names_app: bool) -> Caller:
    return find_caller(request.text_of("authenticator"), address, names_app=names_app)


def _answer(raw: bytes, names: set[str], unknown: str, carry_out: Callable[[Element], Reply]) -> Answer:
    """Answer a request. Errors are replies, too: some programs take a body that is not XML for a success."""
    try:
        request = parse(raw)
    except XmlError as fault:
        return error(f"can't parse request message: {fault}")
    if request.tag not in names:
        return error(unknown)
    try:
        return request.tag, carry_out(request)
    except KeyRefused as fault:
        log.warning("jobs_key_refused", operation=request.tag, reason=str(fault))
        return request.tag, [error(str(fault))]
    except REFUSALS as fault:
        log.info("jobs_request_refused", operation=request.tag, reason=str(fault)[:300])
        return request.tag, [error(str(fault))]
    except DatabaseError:
        log.exception("jobs_request_failed", operation=request.tag)
        return request.tag, [error("database error: try again", DATABASE_ERROR_NUM)]
    except Exception:  # any error: the program must not take an HTML page for a success
        log.exception("jobs_request_failed", operation=request.tag)
        return request.tag, [error("internal error: the operators of this project find it in the log")]


def check_key(beginning: bytes, address: str) -> None:
    """Raise KeyRefused unless this beginning of a request contains a valid key: no more of a stranger's is read."""
    key = _KEY.search(beginning)
    find_caller(key[1].decode("latin-1") if key else "", address, names_app=False)
