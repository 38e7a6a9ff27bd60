"""Find the objects that requests name: apps, batches, jobs. Only the caller's own, and of the apps that the key is
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from credit.models import App, Batch, Workunit
from extras.remote_jobs.keys import Caller
from extras.remote_jobs.wire.xml_tree import Element
from scheduler.models import ArchivedWorkunit
from scheduler.web_rpcs.documents import Element as ReplyElement

Reply = list[ReplyElement]
SUCCESS: Final[Reply] = [("success", 1)]


class JobsError(Exception):
    """A fault that is answered with an ``<error>``; the message is BOINC's where it has one."""


def app_of(caller: Caller, element: Element) -> App:
    """Return the app that ``<app_name>`` names."""
    name = element.text_of("app_name")
    app = App.objects.filter(name=name, is_deprecated=False).first()
    if app is None:
        raise JobsError(f"app not found: {name[:100]}")
    if app.pk not in caller.app_ids:
        raise JobsError("no submit access")
    return app


def batch_of(caller: Caller, element: Element, not_owner: str = "not owner of batch") -> Batch:
    """Return the batch of ``<batch_id>`` or, without one, the caller's newest one with the name in ``<batch_name>``."""
    number, name = element.integer("batch_id"), element.text_of("batch_name")
    if not number and not name:
        raise JobsError("batch not specified")
    batch = numbered_batch(number) if number else newest_batch(caller, name)
    if batch is None:
        raise JobsError("no such batch")
    check_owner(caller, batch, not_owner)
    return batch


def numbered_batch(number: int) -> Batch | None:
    return Batch.objects.select_related("app").filter(pk=number).first()


def newest_batch(caller: Caller, name: str) -> Batch | None:
    batches = Batch.objects.filter(owner=caller.user, app__in=caller.app_ids, name=name)
    return batches.select_related("app").order_by("pk").last()


def check_owner(caller: Caller, batch: Batch | None, not_owner: str) -> None:
    if batch is None or batch.owner_id != caller.user.pk or batch.app_id not in caller.app_ids:
        raise JobsError(not_owner)


@dataclass(frozen=True, slots=True)
class Job:
    """A workunit, archived or not."""

    id: int
    name: str
    batch: Batch | None
    error_mask: int
    canonical_id: int
    is_archived: bool


def job_named(name: str) -> Job | None:
    return _job(name=name)


def job_numbered(number: int) -> Job | None:
    return _job(pk=number)


def _job(**lookup: Any) -> Job | None:
    workunit = Workunit.objects.filter(**lookup).select_related("batch__app").first()
    if workunit is not None:
        canonical_id = workunit.canonical_result_id or 0
        return Job(workunit.pk, workunit.name, workunit.batch, workunit.error_mask, canonical_id, is_archived=False)
    row = ArchivedWorkunit.objects.filter(**lookup).select_related("batch__app").first()
    if row is None:
        return None
    canonical_id = row.facts.get("canonical_result_id") or 0
    return Job(row.pk, row.name, row.batch, row.error_mask, canonical_id, is_archived=True)
