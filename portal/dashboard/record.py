"""Takes all figures, as the task of every ten minutes does."""

from __future__ import annotations

import datetime as dt
import math
from typing import Final

import structlog
from django.db import transaction

from portal.dashboard import registry
from portal.models import OperatingFigure, OperatingTable

log = structlog.get_logger("dashboard")

_MAX_LABEL_CHARS: Final = 120


class FiguresNotTaken(Exception):
    """Which sources failed, by their panel, and with which error; the log has more."""


def take_all(now: dt.datetime) -> int:
    """Take each source's figures; return the number of values. Safe to run twice.

    A source that fails leaves the others, and its own figures are missing. Raises FiguresNotTaken after the last one,
    so that the dashboard says that the task failed.
    """
    number, failed = 0, []
    for source in registry.sources:
        try:
            number += _take(source, now)
        except Exception as error:
            # Whatever a source cannot reach: the figures of the others must still be taken.
            log.exception("figures_not_taken", panel=source.panel, reason=type(error).__name__)
            failed.append(f"{source.panel}: {type(error).__name__}")
    if failed:
        raise FiguresNotTaken(", ".join(failed))
    return number


def moment(at: dt.datetime) -> dict[str, str]:
    """A time as a cell of a table, which pages show in the reader's zone."""
    return {"at": at.isoformat()}


def _take(source: registry.Source, now: dt.datetime) -> int:
    """Only what is kept is written in a transaction: taking asks Valkey, and has transactions of its own."""
    rows = {
        (sample.name, sample.label[:_MAX_LABEL_CHARS]): sample.value
        for sample in source.take(now)
        if math.isfinite(sample.value)
    }
    tables = source.take_tables(now) if source.take_tables else {}
    with transaction.atomic():
        OperatingFigure.objects.bulk_create(
            [
                OperatingFigure(name=name, label=label, taken_at=now, value=value)
                for (name, label), value in rows.items()
            ],
            ignore_conflicts=True,
        )
        for name, table in tables.items():
            OperatingTable.objects.update_or_create(name=name, defaults={"taken_at": now, "rows": table})
    return len(rows)
