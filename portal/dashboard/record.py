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


def take_all(now: dt.datetime) -> int:
    """Take each source's figures, in a transaction each; return the number of values. Safe to run twice.

    A source that fails leaves the others: its figures are missing, and the log says why.
    """
    return sum(_take(source, now) for source in registry.sources)


def _take(source: registry.Source, now: dt.datetime) -> int:
    try:
        with transaction.atomic():
            rows = {
                (sample.name, sample.label[:_MAX_LABEL_CHARS]): sample.value
                for sample in source.take(now)
                if math.isfinite(sample.value)
            }
            OperatingFigure.objects.bulk_create(
                [
                    OperatingFigure(name=name, label=label, taken_at=now, value=value)
                    for (name, label), value in rows.items()
                ],
                ignore_conflicts=True,
            )
            for name, table in (source.take_tables(now) if source.take_tables else {}).items():
                OperatingTable.objects.update_or_create(name=name, defaults={"taken_at": now, "rows": table})
    except Exception as error:
        # Whatever a source cannot reach: the figures of the others must still be taken.
        log.exception("figures_not_taken", panel=source.panel, reason=type(error).__name__)
        return 0
    return len(rows)
