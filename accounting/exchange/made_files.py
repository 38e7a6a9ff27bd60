"""Files that a worker makes for a volunteer: their progress, their content piece by piece, and their removal.

Each is a row of `DataCopy`, where the worker notes its progress, and a piece of requested work. The file is stored in
the database, as web servers and workers may be on different machines.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final

from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils import timezone

from accounting.engine.amounts import Processor
from accounting.exchange.day_rows import PAGE_ROWS, DayRange, DayRow, close_connection, count_rows, read_pages
from accounting.models import DataCopy, DataCopyPart
from portal.models import RequestedWork
from portal.requested_work import queue
from portal.requested_work.queue import Standing

KEPT: Final = dt.timedelta(days=7)
PART_BYTES: Final = 1 << 20
UNFINISHED: Final = (DataCopy.State.WAITING, DataCopy.State.WORKING)


def standing(kind: str, copy: DataCopy) -> Standing | None:
    """Return the progress of an unfinished file; None if it is finished or abandoned. ``kind``: of requested work."""
    if copy.state not in UNFINISHED:
        return None
    return queue.standings(kind, [copy.pk], timezone.now()).get(copy.pk)


def with_standings(kind: str, copies: Iterable[DataCopy]) -> list[tuple[DataCopy, Standing | None]]:
    """Return each file with its progress while unfinished. An abandoned one is shown as failed."""
    files = list(copies)
    unfinished = [copy.pk for copy in files if copy.state in UNFINISHED]
    standings = queue.standings(kind, unfinished, timezone.now()) if unfinished else {}
    for copy in files:
        if copy.state in UNFINISHED and copy.pk not in standings:
            # It may have been finished between the two statements.
            copy.refresh_from_db(fields=["state", "percent", "size_bytes", "finished_at"])
            if copy.state in UNFINISHED:
                copy.state = DataCopy.State.FAILED
    return [(copy, standings.get(copy.pk)) for copy in files]


def make(copy_id: int, write: Callable[[DataCopy, IO[bytes]], None]) -> None:
    """Make a requested file; safe to run twice. One that is ready, or gone, is left alone."""
    # Whatever happens meanwhile: a worker presumed dead may finish the file after all.
    unfinished = DataCopy.objects.filter(pk=copy_id).exclude(state=DataCopy.State.READY)
    copy = unfinished.select_related("user").first()
    if copy is None:
        return
    unfinished.update(state=DataCopy.State.WORKING, percent=0)
    try:
        while copy is not None and not _written(copy, write):
            copy = unfinished.select_related("user").first()
    except Exception:  # of any kind: the owner is told that it failed, and the error goes on to the task's log
        unfinished.update(state=DataCopy.State.FAILED, finished_at=timezone.now())
        raise


def _written(copy: DataCopy, write: Callable[[DataCopy, IO[bytes]], None]) -> bool:
    """Write and store the file; not if its computer has been merged into another meanwhile, and so has no days left."""
    with tempfile.TemporaryFile() as file:
        write(copy, file)
        if DataCopy.objects.filter(pk=copy.pk).exclude(only_host=copy.only_host).exists():
            return False
        _store(copy, file)
    return True


def range_of(copy: DataCopy) -> DayRange:
    """Return the range that the file covers."""
    first, last = copy.first or dt.date.min, copy.last or dt.date.max
    processor = Processor(copy.only_processor) if copy.only_processor else None
    return DayRange(first, last, copy.only_project, copy.only_host, processor, copy.only_app)


def counted_pages(copy: DataCopy, page_rows: int = PAGE_ROWS) -> Iterator[list[DayRow]]:
    """Yield the pages of the history for the file, and record the progress in its row."""
    day_range = range_of(copy)
    total = count_rows(copy.user, day_range)
    done = stored_percent = 0
    for page in read_pages(copy.user, day_range, page_rows):
        yield page
        done += len(page)
        percent = min(99, 100 * done // max(total, 1))
        if percent > stored_percent:
            stored_percent = percent
            DataCopy.objects.filter(pk=copy.pk).update(percent=percent)


def sent(copy: DataCopy, name: str) -> StreamingHttpResponse:
    """Send a finished file; ``name`` is the one that the browser gives it."""
    return StreamingHttpResponse(
        read_parts(copy),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(copy.size_bytes),
            "Cache-Control": "private, no-store",
        },
    )


def read_parts(copy: DataCopy) -> Iterator[bytes]:
    """Yield a finished file, piece by piece."""
    number = 0
    while (part := DataCopyPart.objects.filter(copy=copy, number=number).first()) is not None:
        close_connection()
        yield bytes(part.content)
        number += 1


def note_given_up(kind: str, contents: Iterable[str], now: dt.datetime) -> None:
    """Note which files the queue gave up. Safe to repeat."""
    given_up = RequestedWork.objects.filter(kind=kind, is_given_up=True).values("subject")
    unfinished = DataCopy.objects.filter(state__in=UNFINISHED, content__in=contents, pk__in=given_up)
    unfinished.update(state=DataCopy.State.FAILED, finished_at=now)


def remove_old(now: dt.datetime) -> int:
    """Remove files that are a week old; return how many."""
    old = DataCopy.objects.filter(asked_at__lt=now - KEPT)
    number = old.count()
    old.delete()
    return number


def _store(copy: DataCopy, file: IO[bytes]) -> None:
    size = file.tell()
    file.seek(0)
    with transaction.atomic():
        # Locked, so that only one of two runs stores its file, and none for an account that was deleted.
        current = DataCopy.objects.select_for_update().filter(pk=copy.pk).first()
        if current is None or current.state == DataCopy.State.READY:
            return
        DataCopyPart.objects.filter(copy=copy).delete()
        for number, content in enumerate(iter(lambda: file.read(PART_BYTES), b"")):
            DataCopyPart.objects.create(copy=copy, number=number, content=content)
        current.state, current.percent = DataCopy.State.READY, 100
        current.size_bytes, current.finished_at = size, timezone.now()
        current.save(update_fields=["state", "percent", "size_bytes", "finished_at"])
