"""Which beat process has the lease, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from portal.periodic.lease import last_holder


class LeaseMetrics(Collector):
    """One statement for each reading."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        left = GaugeMetricFamily(
            "cobblestone_beat_lease_seconds",
            "For how long the beat process that sends periodic tasks still has the lease; negative: since it expired.",
            labels=["holder"],
        )
        if (found := last_holder()) is not None:
            left.add_metric([found.name], found.left_secs)
        yield left
