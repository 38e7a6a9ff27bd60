"""The export on the dashboard: how old the published one is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.utils.translation import gettext_lazy as _

from credit.figures.credit import KEY
from credit.models import StatisticsExport
from portal.dashboard import registry
from portal.dashboard.registry import Combine, Figure, Sample, Source, Unit
from portal.dashboard.rules import above

_LIST: Final = "admin:credit_statisticsexport_changelist"
FIGURES: Final = (
    Figure(
        "export.age",
        _("Age of the statistics export"),
        Unit.SECS,
        combine=Combine.MAX,
        link=_LIST,
        link_text=_("Exports"),
        about=_("Other sites read it daily."),
        trouble=above(
            2 * 86_400 + 3600, _("The statistics for other sites are two days old. The list of exports says why.")
        ),
    ),
    Figure("export.users", _("Published volunteers"), link=_LIST, link_text=_("Exports")),
)


def take(now: dt.datetime) -> Iterator[Sample]:
    made = StatisticsExport.objects.filter(finished_at__isnull=False, failure="").first()
    if made is not None:
        yield Sample("export.age", (now - made.started_at).total_seconds())
        yield Sample("export.users", made.nusers)


def register() -> None:
    """Called once, when the app is ready, if the site has a project."""
    registry.add_source(Source(KEY, FIGURES, take))
