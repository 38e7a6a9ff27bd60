"""The assimilator: passes the results of finished workunits to the app's function, or keeps their outputs.

An app names a Python function; without one, the canonical result's outputs are kept and offered for download with their
batch. One batch is one transaction. Locks: workunits by id, SKIP LOCKED. A workunit that fails goes into the retry
queue (`scheduler.lifecycle.retry_queue`), and so does one whose function hangs: that is interrupted, and ends the pass.
Only one pass at a time calls an app's function, so that one that hangs keeps only one worker waiting. Slow functions
have a task for each app, and are called while no row is locked (`run_slow`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from credit import functions, models
from credit.engine.states import AssimilateState
from credit.models import App, Result, Workunit
from scheduler.lifecycle import retry_queue, sql
from scheduler.lifecycle.retry_queue import StepBatch, run_batches
from scheduler.models import RetryEntry, Step

log = structlog.get_logger(__name__)
BATCH: Final = 1000
BEGIN_SECS: Final = 60
"""A task starts no further workunit after this, so a function interrupted after ten minutes has had nine."""
QUERY_SECS: Final = 200
"""The longest time of a query in an app's function: an interrupted worker leaves its query behind, with its locks."""
# "as", the first key of advisory locks; the second is the app's id.
_LOCK: Final = 0x6173


@dataclass(frozen=True, slots=True)
class Finished:
    """A decided workunit. ``canonical`` None: it failed, for the reasons in ``workunit.error_mask``.

    ``canonical.outputs`` names the files, by their paths in Django's default storage. A function that wants to keep
    them must copy them: the project deletes the outputs of assimilated workunits.
    """

    workunit: Workunit
    canonical: Result | None
    batch: models.Batch | None


Function = Callable[[Finished], Any]
Take = Callable[[list[int]], list[int]]
"""Takes a batch's ids; returns the ids of those that it assimilated."""


@dataclass(slots=True)
class _Pass:
    """One pass.

    ``until``: by `time.monotonic`. ``taken``: the number of assimilated workunits. ``interrupted``: the workunit whose
    function was interrupted, by its id. That ends the pass, because nothing would interrupt a second function.
    """

    now: dt.datetime
    until: float
    taken: int = 0
    interrupted: dict[int, str] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return bool(self.interrupted) or monotonic() >= self.until


def run(now: dt.datetime, until: float = inf) -> int:
    """Assimilate waiting workunits and return their number. None is begun after ``until`` (of `time.monotonic`)."""
    this = _Pass(now, until)
    # In random order: an app with more to do than fits into a pass must not always be the first.
    for app in App.objects.order_by("?"):
        if this.is_over:
            break
        _run_app(app, this)
    return this.taken


def apps_with_slow_functions() -> list[App]:
    """Return the apps with a slow function and workunits to assimilate."""
    ready = Workunit.objects.filter(app=OuterRef("pk"), assimilate_state=AssimilateState.READY)
    apps = App.objects.filter(Exists(ready)).exclude(assimilation_function="")
    return [app for app in apps if functions.is_slow(_function(app, None))]


def run_slow(app: App, now: dt.datetime, until: float) -> int:
    """Assimilate waiting workunits of an app whose function is slow; return how many. None is begun after ``until``.

    The function may be called twice for a workunit, if this process ends between a call and storing its outcome. Locks
    nothing during a call, then the workunit.
    """
    this = _Pass(now, until)
    function = _function(app, now)
    with _alone(app) as is_alone:
        if not is_alone or not functions.is_slow(function):
            return 0
        with function.session() as session:
            for workunit in _waiting(app, now):
                if session.is_over or this.is_over:
                    break
                _hand_over_alone(workunit, session, this)
    retry_queue.enqueue(Step.ASSIMILATE, this.interrupted, now)
    return this.taken


def _waiting(app: App, now: dt.datetime) -> list[Workunit]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            sql.LOCK_TO_ASSIMILATE, {"app": app.pk, "limit": BATCH, "now": now, "step": Step.ASSIMILATE.value}
        )
        ids = [row[0] for row in cursor.fetchall()]
    return list(Workunit.objects.filter(pk__in=ids).select_related("canonical_result", "batch").order_by("pk"))


def _hand_over_alone(workunit: Workunit, function: functions.Session, this: _Pass) -> None:
    """Assimilate one; ``function`` returns whether the outputs are kept for download with their batch."""
    try:
        keeps = function(Finished(workunit, workunit.canonical_result, workunit.batch))
    except SoftTimeLimitExceeded:
        this.interrupted[workunit.pk] = "The app's function did not end in time."
        return
    except Exception as error:  # a project's handler may raise anything; other workunits must not wait
        log.exception("assimilation_failed", workunit=workunit.name)
        retry_queue.enqueue(Step.ASSIMILATE, {workunit.pk: f"{type(error).__name__}: {error}"}, this.now)
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_WORKUNITS_TO_RETRY, {"ids": [workunit.pk]})
        if keeps:
            _keep(this.now, [workunit.pk])
        cursor.execute(sql.MARK_ASSIMILATED, {"ids": [workunit.pk], "now": this.now})
        retry_queue.remove(cursor, Step.ASSIMILATE, [workunit.pk])
    this.taken += 1


@contextmanager
def _alone(app: App) -> Iterator[bool]:
    """Ensure that no other pass calls the app's function until the end of the block; yield False if one does."""
    key = [_LOCK, app.pk % 2**31]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        is_alone = bool(cursor.fetchone()[0])
    try:
        yield is_alone
    finally:
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


def _function(app: App, now: dt.datetime | None) -> Function | None:
    """Return the app's function; None if it cannot be found, which operators are told if it would be called ``now``."""
    try:
        function: Function = functions.load(functions.FunctionKind.ASSIMILATION, app.assimilation_function)
    except Exception as error:  # not only ImportError: a module may fail in any way while it is imported
        if now is not None:
            _note_missing(app, error, now)
        return None
    return function


def _run_app(app: App, this: _Pass) -> None:
    take: Take = partial(_keep, this.now)
    if app.assimilation_function:
        function = _function(app, this.now)
        if function is None or functions.is_slow(function):
            return
        take = partial(_hand_over, function, this)
    try:
        run_batches(Step.ASSIMILATE, this.now, BATCH, partial(_run_batch, app, take, this))
    except SoftTimeLimitExceeded:
        if not this.interrupted:
            raise
    retry_queue.enqueue(Step.ASSIMILATE, this.interrupted, this.now)


def _run_batch(app: App, take: Take, this: _Pass, batch: StepBatch) -> int:
    """Run a batch; return how many workunits were examined."""
    if this.is_over:
        return 0
    with connection.cursor() as cursor:
        if app.assimilation_function:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_LOCK, app.pk % 2**31])
            if not cursor.fetchone()[0]:
                return 0
        cursor.execute(
            sql.LOCK_TO_ASSIMILATE,
            {"app": app.pk, "limit": batch.limit, "now": this.now, "step": Step.ASSIMILATE.value},
        )
        batch.ids = [row[0] for row in cursor.fetchall()]
        if batch.ids:
            ids = take(batch.ids)
            cursor.execute(sql.MARK_ASSIMILATED, {"ids": ids, "now": this.now})
            retry_queue.remove(cursor, Step.ASSIMILATE, ids)
            this.taken += len(ids)
        return len(batch.ids)


def _keep(now: dt.datetime, ids: list[int]) -> list[int]:
    """Keep all their outputs."""
    with connection.cursor() as cursor:
        cursor.execute(sql.KEEP_OUTPUTS, {"ids": ids, "now": now})
    return ids


def _hand_over(function: Function, this: _Pass, ids: list[int]) -> list[int]:
    """Call the app's function for each workunit; return the ids of those that it accepted.

    Whatever the function writes to the database is rolled back if it fails.

    Raises SoftTimeLimitExceeded if it was interrupted in a query: the connection is unusable then, and the workunits
    before it are called again.
    """
    taken, faults = [], {}
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{QUERY_SECS}s'")
    for workunit in Workunit.objects.filter(pk__in=ids).select_related("canonical_result", "batch").order_by("pk"):
        if this.is_over:
            break  # the workunits so far are stored, the others follow in another pass
        try:
            with transaction.atomic():
                function(Finished(workunit, workunit.canonical_result, workunit.batch))
            taken.append(workunit.pk)
        except SoftTimeLimitExceeded:
            log.exception("assimilation_takes_too_long", workunit=workunit.name)
            this.interrupted[workunit.pk] = "The app's function did not end in time."
            if connection.needs_rollback:
                raise
        except Exception as error:  # a project's handler may raise anything; other workunits must not wait
            log.exception("assimilation_failed", workunit=workunit.name)
            faults[workunit.pk] = f"{type(error).__name__}: {error}"
    retry_queue.enqueue(Step.ASSIMILATE, faults, this.now)
    return taken


def _note_missing(app: App, error: Exception, now: dt.datetime) -> None:
    """Queue the first workunit of an app without its function, so that operators see it. All others wait."""
    log.error("assimilation_function_missing", app=app.name, function=app.assimilation_function, exc_info=error)
    noted = RetryEntry.objects.filter(step=Step.ASSIMILATE, workunit__app=app, retry_at__gt=now)
    waiting = Workunit.objects.filter(app=app, assimilate_state=AssimilateState.READY).order_by("app", "id")
    if not noted.exists() and (first := waiting.values_list("pk", flat=True).first()):
        retry_queue.enqueue(Step.ASSIMILATE, {first: f"{app.assimilation_function}: {error}"}, now)
