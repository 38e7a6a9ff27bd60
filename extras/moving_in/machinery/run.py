"""Rehearses an import, begins it, or goes on with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
from django.db import DataError, IntegrityError, connection, transaction
from django.utils import timezone

from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow
from extras.moving_in.machinery.steps import CallStep, Context, RowStep, Step, Translate
from extras.moving_in.models import ImportStep
from extras.moving_in.source import Row

CHUNK_ROWS: Final = 10_000
_LOCK: Final = 0x6D6F7665
_UNREADABLE: Final = (ValueError, TypeError, ArithmeticError, LookupError, RecursionError)
# COPY raises psycopg's own errors, and UnicodeError for what is no text.
_REFUSED: Final = (DataError, IntegrityError, psycopg.DataError, UnicodeError)
_CLOSED: Final = "closed"
"""The step of this name is there after the last import."""
Write = Callable[[str], object]


class ImportRunning(Exception):
    """Another process imports at this time."""


class ImportClosed(Exception):
    """The last import was declared to be the last."""


def rehearse(steps: Sequence[Step], context: Context, write: Write) -> dict[str, Tally]:
    """Read and translate all, and write nothing; the tallies by step."""
    tallies = {}
    for step in steps:
        tally, began = Tally(), time.monotonic()
        tallies[step.name] = tally
        if isinstance(step, CallStep):
            step.call(context, tally)
        elif _has_table(step, context, tally):
            translate, progress = step.translator(context), _Progress(step, context, write)
            for row in context.source.rows(step.table, 0, None):
                _translated(step, translate, row, tally)
                progress.show(tally.nread)
        tally.secs = time.monotonic() - began
    return tallies


def carry_out(
    source_name: str, steps: Sequence[Step], context: Context, write: Write, *, is_last: bool = False
) -> dict[str, Tally]:
    """Import, or go on where an import was interrupted; if the last one came to its end, import what changed since.

    ``is_last``: none follows, as another one would overwrite what people change here from then on. Locks, in a step's
    transaction: its row of `ImportStep`, then what its statements say. Raises ImportRunning, ImportClosed.
    """
    with _alone():
        if ImportStep.objects.filter(source=source_name, name=_CLOSED).exists():
            raise ImportClosed
        goes_on = _begin(source_name, steps, context)
        tallies = _go_through(source_name, steps, context, write)
        if is_last:
            if goes_on:
                # What was read before the interruption may have changed since.
                _begin(source_name, steps, context)
                tallies = _go_through(source_name, steps, context, write)
            ImportStep.objects.create(source=source_name, name=_CLOSED, finished_at=timezone.now())
        return tallies


def reopen(source_name: str) -> None:
    """Let there be imports after the last one."""
    ImportStep.objects.filter(source=source_name, name=_CLOSED).delete()


def _begin(source_name: str, steps: Sequence[Step], context: Context) -> bool:
    """Add rows for new steps. If all are finished, they begin again, else the run goes on; return whether it does.

    All steps of a run share the time at which it begins: a row may have been left, or be incomplete, because what it
    refers to reached the source after an earlier step had read it.
    """
    as_of = context.source.as_of(step.table for step in steps if isinstance(step, RowStep))
    with transaction.atomic():
        is_new = not ImportStep.objects.filter(source=source_name).exists()
        ImportStep.objects.bulk_create(
            [ImportStep(source=source_name, name=step.name, as_of=as_of) for step in steps], ignore_conflicts=True
        )
        rows = list(ImportStep.objects.select_for_update().filter(source=source_name).order_by("pk"))
        if any(row.finished_at is None for row in rows):
            return not is_new
        for row in rows:
            row.since, row.as_of = row.as_of, as_of
            row.run, row.last_key, row.tally, row.finished_at = row.run + 1, 0, {}, None
            row.save()
        return False


def _go_through(source_name: str, steps: Sequence[Step], context: Context, write: Write) -> dict[str, Tally]:
    tallies = {}
    for step in steps:
        row = ImportStep.objects.get(source=source_name, name=step.name)
        if row.finished_at is None:
            if isinstance(step, CallStep):
                _call(step, context, row)
            else:
                _import_rows(step, context, row, write)
        tallies[step.name] = Tally.of_json(row.tally)
    return tallies


@contextmanager
def _alone() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        if cursor.fetchone() != (True,):
            raise ImportRunning
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


def _call(step: CallStep, context: Context, row: ImportStep) -> None:
    tally, began = Tally(), time.monotonic()
    step.call(context, tally)
    tally.secs = time.monotonic() - began
    row.tally, row.finished_at = tally.as_json(), timezone.now()
    row.save()


def _import_rows(step: RowStep, context: Context, progress: ImportStep, write: Write) -> None:
    """Range by range: while our database merges one, the next is read and translated by a thread of its own."""
    tally = Tally.of_json(progress.tally)
    since = f"{progress.since:%Y-%m-%d %H:%M:%S}" if progress.since else ""
    shown = _Progress(step, context, write)
    if not progress.last_key and not _has_table(step, context, tally):
        progress.tally, progress.finished_at = tally.as_json(), timezone.now()
        progress.save()
        return
    reader = _Reader(step, context, since)
    with ThreadPoolExecutor(1) as thread:
        coming: Future[_Range] | None = thread.submit(reader.read, progress.last_key)
        began = time.monotonic()
        while coming is not None:
            range_ = coming.result()
            coming = thread.submit(reader.read, range_.up_to) if range_.up_to is not None else None
            tally.add(range_.tally)
            with transaction.atomic():
                _merge(step, range_.rows, context, tally)
                if range_.up_to is None:
                    progress.finished_at = timezone.now()
                else:
                    progress.last_key = range_.up_to
                tally.secs += time.monotonic() - began
                began = time.monotonic()
                progress.tally = tally.as_json()
                progress.save()
            shown.show(tally.nread)


@dataclass(slots=True)
class _Range:
    """Rows of a step, translated. ``up_to``: the last key of the range; None: it is the last range."""

    up_to: int | None
    rows: list[Sequence[object]]
    tally: Tally


class _Reader:
    """Reads and translates ranges of a step. It never touches our database, whose connection is another thread's."""

    def __init__(self, step: RowStep, context: Context, since: str) -> None:
        self._step, self._source, self._since = step, context.source, since
        self._translate = step.translator(context)

    def read(self, above: int) -> _Range:
        step, tally = self._step, Tally()
        up_to = self._source.bound(step.table, above, CHUNK_ROWS)
        rows = []
        for row in self._source.rows(step.table, above, up_to, self._since):
            if (values := _translated(step, self._translate, row, tally)) is not None:
                rows.append(values)
        return _Range(up_to, rows, tally)


def _has_table(step: RowStep, context: Context, tally: Tally) -> bool:
    if not context.source.has(step.table.name):
        tally.tell("the database has no such table", step.table.name, 0)
        return False
    if nbelow := context.source.nbelow(step.table):
        tally.nread += nbelow
        tally.leave("a number that is negative, or 0", f"{step.table.name}.{step.table.key}", nbelow)
    return True


def _translated(step: RowStep, translate: Translate, row: Row, tally: Tally) -> Sequence[object] | None:
    tally.nread += 1
    try:
        values = translate(row, tally)
    except BrokenRow as broken:
        tally.leave(broken.reason, row[step.table.key])
        return None
    except _UNREADABLE as error:
        # Volunteers' computers, too, wrote into these rows: none of them stops all.
        tally.leave(f"cannot be read ({type(error).__name__})", row[step.table.key])
        return None
    tally.ntaken += values is not None
    return values


def _merge(step: RowStep, rows: Sequence[Sequence[object]], context: Context, tally: Tally) -> None:
    """Merge the rows; if our tables refuse one, all but that one, by halves. Inside a transaction."""
    if not rows:
        return
    try:
        with transaction.atomic():
            found = _copy_and_merge(step, rows, context)
    except _REFUSED as error:
        if len(rows) == 1:
            tally.ntaken -= 1
            tally.leave(_in_words(error), rows[0][0])
            return
        middle = len(rows) // 2
        _merge(step, rows[:middle], context, tally)
        _merge(step, rows[middle:], context, tally)
    else:
        tally.add(found)


def _copy_and_merge(step: RowStep, rows: Sequence[Sequence[object]], context: Context) -> Tally:
    """What the database finds of the rows; it has them afterwards."""
    found, params = Tally(), {"now": context.now}
    columns = ", ".join(f"{name} {kind}" for name, kind in step.columns.items())
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMP TABLE moving_rows ({columns}) ON COMMIT DROP")
        with cursor.copy("COPY moving_rows FROM STDIN") as copy:
            for values in rows:
                copy.write_row(values)
        cursor.execute("ANALYZE moving_rows")
        for check in step.checks:
            cursor.execute(check.statement, params)
            for (key,) in cursor.fetchall():
                found.ntaken -= check.leaves
                (found.leave if check.leaves else found.tell)(check.reason, key)
        for position, statement in enumerate(step.merge):
            cursor.execute(statement, params)
            if not position:
                found.nchanged = max(cursor.rowcount, 0)
        # Finds references to missing rows here instead of at the end of the transaction.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("DROP TABLE moving_rows")
    return found


def _in_words(error: Exception) -> str:
    """What the database said, without the row's values."""
    return f"refused by the database: {str(error).splitlines()[0]}"


class _Progress:
    """Tells every few seconds how far a step is, and how long it still takes."""

    _EVERY_SECS: Final = 5.0

    def __init__(self, step: RowStep, context: Context, write: Write) -> None:
        self._name, self._write = step.name, write
        self._nrows = context.source.nrows(step.table)
        self._began = self._told = time.monotonic()
        self._first: int | None = None

    def show(self, nread: int) -> None:
        if self._first is None:
            self._first = nread
        if (now := time.monotonic()) < self._told + self._EVERY_SECS:
            return
        self._told = now
        rate = (nread - self._first) / (now - self._began)
        left = f", about {max(self._nrows - nread, 0) / rate / 60:.0f} min left" if rate and self._nrows else ""
        self._write(f"{self._name}: {nread:,} of about {self._nrows:,} rows, {rate:,.0f} a second{left}")
