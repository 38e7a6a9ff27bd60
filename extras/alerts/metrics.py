"""Metrics of alerts, read from the database."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.db.models import Count, Min, Q
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from extras.alerts.kinds import KINDS
from extras.alerts.models import AlertChannel, AlertMessage

DAY = dt.timedelta(days=1)


class AlertMetrics(Collector):
    """Channels by kind and state, and the results of a day's messages. Three statements."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = timezone.now()
        channels = GaugeMetricFamily("cobblestone_alert_channels", "Channels for alerts.", labels=["kind", "state"])
        rows = AlertChannel.objects.order_by().values("kind")
        counts = {row["kind"]: row for row in rows.annotate(n=Count("pk"), paused=Count("paused_at"))}
        messages = GaugeMetricFamily(
            "cobblestone_alerts_day", "Alerts of the last 24 hours, tests included.", labels=["kind", "outcome"]
        )
        of_day = AlertMessage.objects.filter(created_at__gt=now - DAY).order_by()
        gauges = {
            (row["channel__kind"], row["outcome"]): row["n"]
            for row in of_day.values("channel__kind", "outcome").annotate(n=Count("pk"))
        }
        for kind in KINDS:
            row = counts.get(kind, {"n": 0, "paused": 0})
            channels.add_metric([kind, "in use"], row["n"] - row["paused"])
            channels.add_metric([kind, "paused"], row["paused"])
            for outcome in AlertMessage.Outcome.values:
                messages.add_metric([kind, outcome], gauges.get((kind, outcome), 0))
        oldest = GaugeMetricFamily("cobblestone_alerts_oldest_seconds", "How long the alert most overdue has waited.")
        waiting = AlertMessage.objects.filter(Q(outcome="waiting"), channel__paused_at=None)
        due_at = waiting.aggregate(first=Min("due_at"))["first"]
        oldest.add_metric([], 0 if due_at is None else max(0.0, (now - due_at).total_seconds()))
        yield from (channels, messages, oldest)
