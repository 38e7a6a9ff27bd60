"""Stores program and input files: each name is used once, and its file never changes afterwards."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext

from credit.models import Batch
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.object_storage import storage
from scheduler.engine.limits import MAX_NAME_CHARS, is_job_name, is_name, job_name_rule, name_rule
from scheduler.models import StoredFile


class StoringError(Exception):
    """A file that cannot be stored; the message says which and why."""


def store_file(
    name: str, content: File[bytes], *, signature: str = "", is_executable: bool = False, batch: Batch | None = None
) -> StoredFile:
    """Store ``content`` under ``name`` for good, or return the file stored there before. Safe to repeat.

    A deleted file is stored again if the content is the same. Locks its row, so that nobody deletes the file before the
    end of the caller's transaction, in which another row may start to name it.

    ``signature``: the code-signing signature of a program; ``batch``: an input that is deleted when this batch is done.
    Raises StoringError for other content under a used name, and for a name that clients cannot have.
    """
    if not is_job_name(name):
        raise _no_name(name, MAX_NAME_CHARS, job_name_rule())
    given = storage.content_of(content)
    columns = {
        "path": _path_for(name),
        "nbytes": given.nbytes,
        "md5": given.md5,
        "signature": signature,
        "is_executable": is_executable,
        "batch": batch,
    }
    with transaction.atomic():
        # The row comes first: anyone storing the same name meanwhile waits for it, and touches no file.
        file, is_new = StoredFile.objects.get_or_create(name=name, defaults=columns)
        if is_new:
            default_storage.delete(file.path)  # left by an interrupted run: no row refers to it
            file.path = storage.keep(file.path, content, given)
            file.save(update_fields=["path"])
            return file
        file = StoredFile.objects.select_for_update(no_key=True, of=("self",)).get(pk=file.pk)
        is_same = file.md5 == given.md5 and file.is_executable == is_executable
        if is_same:
            if file.deleted_at is None and signature and not file.signature:
                # It was stored as an input, and now belongs to a program.
                file.signature = signature
                file.save(update_fields=["signature"])
            if file.deleted_at is not None:
                file.path, file.deleted_at = storage.keep(_path_for(name), content, given), None
                file.signature, file.batch = signature, batch
                file.save(update_fields=["path", "deleted_at", "signature", "batch"])
    if not is_same:
        raise StoringError(
            gettext(
                "%(name)s: a file of this name was stored before, with other content. Clients would never fetch the "
                "new one. Give it a new name."
            )
            % {"name": name}
        )
    return file


def store_gzipped(name: str, content: IO[bytes]) -> StoredFile:
    """Also store the file packed by gzip, under its name with ``.gz``: repeating this gives the same bytes."""
    with tempfile.TemporaryFile(dir=settings.UPLOADS_DIR.parent) as packed:
        content.seek(0)
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as packer:
            shutil.copyfileobj(content, packer, 256 * 1024)
        return store_file(f"{name}.gz", File(packed))


def save_content(name: str, content: File[bytes]) -> str:
    """Save ``content`` under ``name`` and return its path; nothing else may be kept there. The row is the caller's.

    The caller must also sync it to the disk (`portal.object_storage.storage.sync`).
    """
    path = _path_for(name)
    default_storage.delete(path)  # left by an interrupted run: no row refers to it
    content.seek(0)
    return default_storage.save(path, content)


def _path_for(name: str) -> str:
    return f"files/{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]}/{name}"


@contextmanager
def removed_on_failure() -> Iterator[list[str]]:
    """Yield a list of paths in the storage: if the block fails, the files there are deleted.

    For use inside a transaction that is rolled back then. Not around it: a COMMIT that appears to fail may have
    succeeded, and rows would name files that are gone.
    """
    paths: list[str] = []
    try:
        yield paths
    except BaseException:
        for path in paths:
            default_storage.delete(path)
        raise


def check_name(name: str, max_chars: int = MAX_NAME_CHARS) -> None:
    """Check a name of a program or an app (BOINC protocol, job description). Raises StoringError."""
    if not is_name(name, max_chars):
        raise _no_name(name, max_chars, name_rule(max_chars))


def _no_name(name: str, max_chars: int, rule: Message) -> StoringError:
    words = {"name": repr(name[:max_chars]), "rule": sentence(rule)}
    return StoringError(gettext("%(name)s is not a name of %(rule)s.") % words)
