"""Copies all files that the database names from one storage to another, and deletes them from the first one.

May be interrupted and repeated. Files that are already in the other storage are not sent again. A file is deleted only
once the other storage has the same content, and, if the database knows its MD5, that content. Meanwhile the site may
run on the storage that the files come from; a final pass is needed once it uses the other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from django.core.files.storage import Storage
from django.db.models import QuerySet

from credit.engine.states import FileDeleteState
from portal.object_storage import storage
from portal.object_storage.storage import ContentDigest
from scheduler.models import DraftFile, KeptOutput, StoredFile, SubmissionDraft, Upload

_ROWS_AT_ONCE: Final = 1000


class NamedFile(NamedTuple):
    """A file that a row names; ``content`` is None if the row does not record it."""

    path: str
    content: ContentDigest | None
    rows: QuerySet[Any]


class MoveOutcome(NamedTuple):
    """The outcome for a file. ``fault``: why it was not copied, or not deleted; empty if all went well."""

    path: str
    nbytes: int
    was_there: bool
    fault: str = ""


def move(source: Storage, target: Storage, *, deletes: bool) -> Iterator[MoveOutcome]:
    """Copy each file and, if ``deletes``, delete it from ``source``. Raises a storage's errors if it cannot be used."""
    for named in _all():
        moved = _move(named, source, target)
        # The file deleter may have run meanwhile, and knows only one storage.
        if not moved.fault and not named.rows.exists():
            target.delete(named.path)
        elif not moved.fault and deletes:
            source.delete(named.path)
        yield moved


def _move(named: NamedFile, source: Storage, target: Storage) -> MoveOutcome:
    content = named.content
    if content is not None and _has(target, named.path, content):
        return MoveOutcome(named.path, content.nbytes, was_there=True)
    try:
        here = storage.kept_content(named.path, source)
    except FileNotFoundError:
        if content is None and target.exists(named.path):
            return MoveOutcome(named.path, target.size(named.path), was_there=True)
        fault = "missing in both storages" if named.rows.exists() else ""
        return MoveOutcome(named.path, 0, was_there=False, fault=fault)
    if content is not None and here != content:
        return MoveOutcome(
            named.path, 0, False, f"has {here.nbytes} bytes with the MD5 {here.md5}, which its row contradicts"
        )
    if _has(target, named.path, here):
        return MoveOutcome(named.path, here.nbytes, was_there=True)
    # A part of it, left by an interrupted run.
    target.delete(named.path)
    with source.open(named.path, "rb") as file:
        saved = target.save(named.path, file)
    if saved != named.path or not _has(target, saved, here):
        target.delete(saved)
        return MoveOutcome(named.path, 0, False, "the other storage's copy differs from what was sent")
    storage.sync([saved], target)
    return MoveOutcome(named.path, here.nbytes, was_there=False)


def _has(where: Storage, path: str, content: ContentDigest) -> bool:
    try:
        return storage.has(path, content, where)
    except FileNotFoundError:
        return False


def _all() -> Iterator[NamedFile]:
    """Yield the files of all rows that name one."""
    needed = Upload.objects.exclude(completed_at=None).filter(
        result__file_delete_state=FileDeleteState.INIT, result__workunit__file_delete_state=FileDeleteState.INIT
    )
    for rows in (
        StoredFile.objects.filter(deleted_at=None),
        needed,
        KeptOutput.objects.all(),
        DraftFile.objects.all(),
        SubmissionDraft.objects.all(),
    ):
        yield from _named(rows)


def _named(rows: QuerySet[Any]) -> Iterator[NamedFile]:
    after = 0
    while page := list(rows.filter(pk__gt=after).order_by("pk")[:_ROWS_AT_ONCE]):
        after = page[-1].pk
        for row in page:
            content = ContentDigest(row.nbytes, row.md5) if hasattr(row, "md5") else None
            yield NamedFile(row.path, content, rows.filter(pk=row.pk))
