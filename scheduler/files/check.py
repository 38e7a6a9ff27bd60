"""Compares the storage with the database's rows: whether each file exists, its size, its MD5.

Reads all files, and changes nothing. It may run alongside everything else: a difference counts only if the row is still
the same afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from credit.engine.states import FileDeleteState
from portal.maintenance.jobs import Job
from portal.object_storage import storage
from portal.object_storage.errors import StorageError
from scheduler.models import KeptOutput, StoredFile, Upload

_ROWS_AT_ONCE: Final = 1000
Row = TypeVar("Row", StoredFile, Upload, KeptOutput)


def differences() -> Iterator[str]:
    """Report each file that is missing or differs from its row, in a sentence."""
    yield from _compare("program or input", _stored())
    yield from _compare("upload", _needed())
    yield from _compare("kept output", KeptOutput.objects.all())


def _stored() -> QuerySet[StoredFile]:
    return StoredFile.objects.filter(deleted_at=None)


def _needed() -> QuerySet[Upload]:
    """Select uploads that must exist: all except those of finished workunits, which may be deleted unless they are
    kept.
    """
    return Upload.objects.exclude(completed_at=None).filter(
        result__file_delete_state=FileDeleteState.INIT, result__workunit__file_delete_state=FileDeleteState.INIT
    )


def _size() -> str:
    return f"{_stored().count() + _needed().count() + KeptOutput.objects.count():,} files"


def fault(row: StoredFile | Upload | KeptOutput) -> str:
    """Return what is wrong with the file of this row; empty if nothing is. Reads the whole file.

    StorageError if the object storage cannot be reached: that says nothing about the file.
    """
    try:
        here = storage.kept_content(row.path)
    except FileNotFoundError:
        return "missing"
    except StorageError:
        raise
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if here.nbytes != row.nbytes:
        return f"has {here.nbytes} bytes instead of {row.nbytes}"
    return "" if here.md5 == row.md5 else f"has the MD5 {here.md5} instead of {row.md5}"


def _compare(kind: str, rows: QuerySet[Row]) -> Iterator[str]:
    after = 0
    while page := list(rows.filter(pk__gt=after).order_by("pk")[:_ROWS_AT_ONCE]):
        after = page[-1].pk
        for row in page:
            reason = fault(row)
            if reason and rows.filter(pk=row.pk).exists():
                yield f"{kind} {row} ({row.path}): {reason}"


FILES: Final = Job(
    "check_files",
    _("Files"),
    _(
        "Checks that the storage has every program, input, upload and kept output, with its size and MD5. All of them "
        "are read: with many files this takes hours."
    ),
    differences,
    size=_size,
)
