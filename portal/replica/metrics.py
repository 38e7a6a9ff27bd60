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
        in_use = GaugeMetricFamily("cobblestone_replica_in_use", "Whether pages read from the replica.")
        lag = GaugeMetricFamily("cobblestone_replica_lag_seconds", "How far the replica is behind at most.")
        if settings.REPLICA_URL:
            in_use.add_metric([], float(watch().is_usable()))
            if (lag_secs := watch().lag_secs()) is not None:
                lag.add_metric([], lag_secs)
        yield from (in_use, lag)
