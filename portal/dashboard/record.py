"""Takes all figures; a task does so every ten minutes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from django.db import transaction

from portal.dashboard import registry
from portal.models import OperatingFigure, OperatingTable

log = structlog.get_logger("dashboard")

_MAX_LABEL_CHARS: Final = 120


class FiguresNotTaken(Exception):
    """Some readings failed: the panels with their errors; the log has more."""


def take_all(now: dt.datetime) -> int:
    """Take the figures and tables of all panels; return the number of values. Safe to run twice.

    If a reading fails, only its own figures are missing. Raises FiguresNotTaken after the last reading, so that the
    dashboard says that the task failed.
    """
    failed: list[str] = []
    number = sum(_take(key, panel, now, failed) for key, panel in registry.panels().items())
    if failed:
        raise FiguresNotTaken(", ".join(failed))
    return number


def moment(at: dt.datetime) -> dict[str, str]:
    """A time as a table cell, which pages show in the reader's zone."""
    return {"at": at.isoformat()}


def _take(key: str, panel: registry.Panel, now: dt.datetime, failed: list[str]) -> int:
    """Only storing is a transaction: taking asks Valkey, and has transactions of its own."""

    @contextmanager
    def noted() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # Any error of a reading: the figures of the others must still be taken.
            log.exception("figures_not_taken", panel=key, reason=type(error).__name__)
            failed.append(f"{key}: {type(error).__name__}")

    values: dict[tuple[str, str], float] = {}
    tables = {}
    for reading in panel.readings:
        with noted():
            values |= {(name, label[:_MAX_LABEL_CHARS]): value for name, value, label in reading(now)}
    for table in panel.tables:
        with noted():
            tables[table.name] = table.read(now)
    rows = [
        OperatingFigure(name=name, label=label, taken_at=now, value=value)
        for (name, label), value in values.items()
        if math.isfinite(value)
    ]
    with transaction.atomic():
        OperatingFigure.objects.bulk_create(rows, ignore_conflicts=True)
        for name, content in tables.items():
            OperatingTable.objects.update_or_create(name=name, defaults={"taken_at": now, "rows": content})
    return len(rows)
