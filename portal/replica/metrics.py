"""The replica as the web process that answers knows it, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from portal.replica.reading import watch


class ReplicaMetrics(Collector):
    """Asks nobody."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        if not settings.REPLICA_URL:
            return
        lag_secs = watch().lag_secs()
        yield GaugeMetricFamily(
            "cobblestone_replica_in_use", "Whether pages read from the replica.", value=float(watch().is_usable())
        )
        if lag_secs is not None:
            yield GaugeMetricFamily(
                "cobblestone_replica_lag_seconds", "How far the replica is behind at most.", value=lag_secs
            )
