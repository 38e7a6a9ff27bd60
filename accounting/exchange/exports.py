"""Files of a long range of a volunteer's history, made by a worker; short ranges are sent at once.

Each file is a zip with the same CSV or JSON file that is sent at once for a short range. A volunteer has at most
MAX_KEPT of them, including queued and unfinished ones.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import IO, Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounting.exchange import made_files
from accounting.exchange.day_rows import DayRange, count_rows, read_names
from accounting.exchange.downloads import as_csv, as_json
from accounting.exchange.made_files import range_of
from accounting.models import DataCopy
from portal.models import User
from portal.requested_work import queue
from portal.requested_work.queue import Standing

KIND: Final = "history export"
"""The kind of requested work."""
CONTENTS: Final = (DataCopy.Content.CSV, DataCopy.Content.JSON)
MAX_KEPT: Final = 5


class TooManyAtOnce(Exception):
    """All the files that this volunteer may have are queued or being made."""


def is_large(user: User, day_range: DayRange) -> bool:
    """Whether the range has too many rows to be sent at once; one statement, which counts no further."""
    most = settings.HISTORY_DOWNLOAD_ROWS
    return count_rows(user, day_range, most + 1) > most


def ask(user: User, content: DataCopy.Content, day_range: DayRange) -> DataCopy:
    """Have the file made, unless one of the same days is unfinished. A new file replaces the oldest.

    Raises TooManyAtOnce. Locks the person's row, so that two simultaneous requests count each other's files.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        export = read(user)
        unfinished = [copy for copy, _ in export if copy.state in made_files.UNFINISHED]
        for copy in unfinished:
            if copy.content == content and range_of(copy) == day_range:
                return copy
        if len(unfinished) >= MAX_KEPT:
            raise TooManyAtOnce
        finished = [copy.pk for copy, _ in export if copy.state not in made_files.UNFINISHED]
        _exports(user).filter(pk__in=finished[MAX_KEPT - 1 - len(unfinished) :]).delete()
        copy = DataCopy.objects.create(
            user=user,
            asked_at=timezone.now(),
            content=content,
            first=day_range.first,
            last=day_range.last,
            only_host=day_range.host_id,
            only_project=day_range.project_id,
            only_processor=day_range.processor or "",
            only_app=day_range.app_id,
        )
        queue.ask(user.pk, KIND, [copy.pk])
        return copy


def read(user: User) -> list[tuple[DataCopy, Standing | None]]:
    """Read the volunteer's files, newest first, each with its progress while unfinished."""
    return made_files.with_standings(KIND, _exports(user))


def find_ready(user: User, pk: int) -> DataCopy | None:
    """Return a file of this volunteer's that can be downloaded."""
    return _exports(user).filter(pk=pk, state=DataCopy.State.READY).first()


def make(copy_id: int) -> None:
    """Make a requested file; safe to run twice."""
    made_files.make(copy_id, write)


def file_name(day_range: DayRange, ending: str) -> str:
    """Return a file name with the days, and the computer, project, app and processors if limited to them."""
    named = {"computer": day_range.host_id, "project": day_range.project_id, "app": day_range.app_id}
    parts = [f"-{name}-{pk}" for name, pk in named.items() if pk is not None]
    parts += [f"-{day_range.processor}"] if day_range.processor else []
    return f"history-{day_range.first}-to-{day_range.last}{''.join(parts)}.{ending}"


def _exports(user: User) -> QuerySet[DataCopy]:
    return DataCopy.objects.filter(user=user, content__in=CONTENTS)


def write(copy: DataCopy, file: IO[bytes]) -> None:
    day_range = range_of(copy)
    chunks = _chunks(copy, day_range)
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(file_name(day_range, copy.content), "w", force_zip64=True) as history,
    ):
        for chunk in chunks:
            history.write(chunk)


def _chunks(copy: DataCopy, day_range: DayRange) -> Iterator[bytes]:
    names = read_names(copy.user, day_range)
    pages = made_files.counted_pages(copy)
    return as_csv(pages, names) if copy.content == DataCopy.Content.CSV else as_json(pages, names, day_range)
