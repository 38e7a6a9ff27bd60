"""The project server's metrics, read from the database whenever they are scraped."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from credit.engine.states import AssimilateState
from credit.models import App, Workunit
from scheduler.models import RetryEntry, Step, Trickle


class Background(Collector):
    """The workunits that wait for the background tasks, and those in their retry queue."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        queued = GaugeMetricFamily(
            "cobblestone_workunits_set_aside", "Workunits that made a background step fail.", labels=["step"]
        )
        counts = dict(RetryEntry.objects.order_by().values_list("step").annotate(Count("pk")))
        for step in Step.values:
            queued.add_metric([step], counts.get(step, 0))
        waiting = GaugeMetricFamily("cobblestone_workunits_to_assimilate", "Workunits that wait.", labels=["app"])
        ready = Workunit.objects.filter(assimilate_state=AssimilateState.READY).order_by()
        to_assimilate = dict(ready.values_list("app__name").annotate(Count("pk")))
        for name in App.objects.values_list("name", flat=True):
            waiting.add_metric([name], to_assimilate.get(name, 0))
        trickles = GaugeMetricFamily("cobblestone_trickles_to_handle", "Messages of jobs that wait.")
        trickles.add_metric([], Trickle.objects.filter(handled_at=None).count())
        yield from (queued, waiting, trickles)
