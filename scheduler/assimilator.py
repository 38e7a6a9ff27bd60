"""The assimilator: takes what finished workunits found to where the project wants it.

An app names a Python function; without one, the canonical result's outputs are kept and offered for download with
their batch. One pass is one transaction. Locks: workunits by id, SKIP LOCKED.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from django.db import connection, transaction
from django.utils.module_loading import import_string

from credit.models import App, Batch, Result, Workunit

log = structlog.get_logger(__name__)
BATCH: Final = 1000
# After a function failed on a workunit, the pass goes on behind it; the next pass tries it again.
_READY: Final = """
SELECT id FROM credit_workunit
 WHERE app_id = %(app)s AND assimilate_state = 1 AND id > %(after)s ORDER BY id LIMIT %(limit)s
   FOR NO KEY UPDATE SKIP LOCKED
"""
_KEEP: Final = """
INSERT INTO scheduler_keptoutput (batch_id, workunit_name, number, name, path, nbytes, md5, kept_at)
SELECT w.batch_id, w.name, file.number - 1, w.output_files->(file.number::int - 1)->>'open_name', o.value->>'path',
       (o.value->>'nbytes')::bigint, o.value->>'md5', %(now)s
  FROM credit_workunit w
  JOIN credit_result r ON r.id = w.canonical_result_id,
       jsonb_array_elements(w.output_files) WITH ORDINALITY AS file(value, number),
       jsonb_array_elements(r.outputs) AS o(value)
 WHERE w.id = ANY(%(ids)s) AND o.value->>'name' = r.name || '_' || (file.number - 1)
 ORDER BY w.id, file.number
    ON CONFLICT (workunit_name, number) DO NOTHING
"""
_FINISH: Final = """
UPDATE credit_workunit SET assimilate_state = 2, assimilated_at = %(now)s, transition_at = %(now)s
 WHERE id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class Finished:
    """A workunit that is decided. ``canonical`` None: it failed, for the reasons in ``workunit.error_mask``.

    ``canonical.outputs`` names the files, by their paths in Django's default storage. A function that wants to keep
    them copies them: the project deletes outputs of workunits that were assimilated.
    """

    workunit: Workunit
    canonical: Result | None
    batch: Batch | None


def run(now: dt.datetime) -> int:
    """Assimilate what waits for it, app by app; how many workunits were."""
    return sum(_run_app(app, now) for app in App.objects.all())


def _run_app(app: App, now: dt.datetime) -> int:
    done = after = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_READY, {"app": app.pk, "after": after, "limit": BATCH})
            ids = [row[0] for row in cursor.fetchall()]
            if not ids:
                return done
            after = ids[-1]
            if app.assimilation_function:
                ids = _hand_over(app, ids)
            else:
                cursor.execute(_KEEP, {"ids": ids, "now": now})
            cursor.execute(_FINISH, {"ids": ids, "now": now})
            done += len(ids)


def _hand_over(app: App, ids: list[int]) -> list[int]:
    """Call the app's function for each; the ids of those that it took. What it does to the database is kept or not."""
    try:
        function: Callable[[Finished], Any] = import_string(app.assimilation_function)
    except Exception:  # not only ImportError: a module may fail in any way while it is read
        log.exception("assimilation_function_missing", app=app.name, function=app.assimilation_function)
        return []
    taken = []
    for workunit in Workunit.objects.filter(pk__in=ids).select_related("canonical_result", "batch").order_by("pk"):
        try:
            with transaction.atomic():
                function(Finished(workunit, workunit.canonical_result, workunit.batch))
            taken.append(workunit.pk)
        except Exception:
            log.exception("assimilation_failed", app=app.name, workunit=workunit.name)
    return taken
