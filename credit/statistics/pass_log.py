"""Stores the inputs of passes of the validator and runs of the feeder, a row for each, for replays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Final

from django.db import connection

from credit.engine.facts import VersionFacts
from credit.models import LoggedPass
from credit.statistics.pass_arrays import RECORDS, RESULTS, VERSIONS, WORKUNITS, PassFacts, decode, encode

_BATCH: Final = 50
# Deletes the oldest rows of an app, as long as the others have this many granted workunits. If passes grant nothing, as
# many rows stay as passes of one workunit each, with the feeder's runs, would have.
_PRUNE: Final = """
DELETE FROM credit_loggedpass
 WHERE app_id = %(app)s AND id < (
  SELECT min(id) FROM (
    SELECT id, sum(nworkunits) OVER (ORDER BY id DESC) - nworkunits AS nlater,
           row_number() OVER (ORDER BY id DESC) AS place
      FROM credit_loggedpass WHERE app_id = %(app)s) p
   WHERE nlater < %(keep)s AND place <= 2 * %(keep)s)
"""
# The first row and the sum of granted workunits of an app's last passes: as many as fit, but at least one.
_WINDOW: Final = """
SELECT min(id), coalesce(sum(nworkunits), 0)
  FROM (SELECT id, nworkunits, sum(nworkunits) OVER (ORDER BY id DESC) AS total
          FROM credit_loggedpass WHERE app_id = %(app)s AND id <= %(last)s) p
 WHERE total <= %(keep)s OR total = nworkunits
"""


def version_rows(versions: Iterable[VersionFacts]) -> bytes:
    """Encode the versions; their averages must not be medians of their hosts'."""
    rows = [(v.id, v.pfc.n, v.pfc.avg, v.pfc_scale, v.is_counted, v.is_scale_received) for v in versions]
    columns = list(zip(*rows, strict=True)) or [()] * len(VERSIONS.names or ())
    return encode(VERSIONS, dict(zip(VERSIONS.names or (), columns, strict=True)), len(rows))


def log_feeder(app_id: int, now: dt.datetime, min_avg_pfc: float | None, versions: bytes, has_changed: bool) -> None:
    """Store a run of the feeder that changed something, or the first after a pass: it may matter in a replay."""
    last = LoggedPass.objects.filter(app=app_id).order_by("-pk").values_list("is_feeder", flat=True).first()
    if last is not None and (has_changed or not last):
        LoggedPass.objects.create(app_id=app_id, at=now, is_feeder=True, min_avg_pfc=min_avg_pfc, versions=versions)


def prune(app_id: int, keep: int) -> None:
    """Delete the rows that the last ``keep`` granted workunits do not need."""
    with connection.cursor() as cursor:
        cursor.execute(_PRUNE, {"app": app_id, "keep": keep})


def window(app_id: int, keep: int) -> tuple[int, int, int] | None:
    """Return the first and last row of the last ``keep`` granted workunits, and their number; None if there is none."""
    last = LoggedPass.objects.filter(app=app_id).order_by("-pk").values_list("pk", flat=True).first()
    if last is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_WINDOW, {"app": app_id, "keep": keep, "last": last})
        first, nworkunits = cursor.fetchone()
    return (first, last, int(nworkunits)) if nworkunits else None


def read(app_id: int, first: int, last: int) -> Iterator[PassFacts]:
    """Return the rows from ``first`` to ``last``, in order."""
    rows = LoggedPass.objects.filter(app=app_id, pk__gte=first, pk__lte=last).order_by("pk")
    after = first - 1
    while batch := list(rows.filter(pk__gt=after)[:_BATCH]):
        for row in batch:
            yield PassFacts(
                row.at.timestamp(),
                row.is_feeder,
                row.min_avg_pfc,
                decode(row.versions, VERSIONS),
                decode(row.records, RECORDS),
                decode(row.workunits, WORKUNITS),
                decode(row.results, RESULTS),
            )
        after = batch[-1].pk
