"""The state of requested work, for operators, and its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db.models import Case, Count, Min, Q, Value, When
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from portal.models import RequestedWork
from portal.requested_work import queue

STATES: Final = {
    "waiting": Q(started_at=None, finished_at=None),
    "working": Q(started_at__isnull=False, finished_at=None),
    "done": Q(finished_at__isnull=False, is_given_up=False),
    "given up": Q(is_given_up=True),
}
STATE_WORDS: Final = {"waiting": _("waiting"), "working": _("running"), "done": _("done"), "given up": _("given up")}
STATE: Final = Case(*(When(rows, then=Value(state)) for state, rows in STATES.items()))


class RequestedWorkMetrics(Collector):
    """Requested work by state, and how long the oldest piece has been waiting, from the database."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        pieces = GaugeMetricFamily(
            "cobblestone_requested_work", "Work that volunteers asked for.", labels=["kind", "state"]
        )
        oldest = GaugeMetricFamily(
            "cobblestone_requested_work_oldest_seconds", "How long the oldest piece has waited.", labels=["kind"]
        )
        counts = {state.replace(" ", "_"): Count("pk", filter=rows) for state, rows in STATES.items()}
        rows = (
            RequestedWork.objects.order_by()
            .values("kind")
            .annotate(asked_first_at=Min("asked_at", filter=STATES["waiting"]), **counts)
        )
        by_kind: dict[str, Any] = {row["kind"]: row for row in rows}
        now = timezone.now()
        for kind in sorted({*queue.kinds(), *by_kind}):
            row = by_kind.get(kind, {})
            for state in counts:
                pieces.add_metric([kind, state], row.get(state, 0))
            asked_at = row.get("asked_first_at")
            oldest.add_metric([kind], 0 if asked_at is None else (now - asked_at).total_seconds())
        yield from (pieces, oldest)
