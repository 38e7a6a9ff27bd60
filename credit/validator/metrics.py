"""Prometheus metrics of validators. They are counted in the cache, because the validators' processes come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.core.cache import cache
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from credit.models import App
from credit.validator.passes import PassReport

_KEY: Final = "metrics:validator:{}:{}"
_PER_UNIT: Final = 1_000_000
"""Seconds and credit are counted in millionths: the cache counts integers."""
_WORKUNITS: Final = ("decided", "undecided", "fault")
_RESULTS: Final = ("valid", "invalid", "inconclusive")


def count(app: str, report: PassReport, elapsed_secs: float) -> None:
    """Count a pass of the app with this short name."""
    amounts = {
        "passes": 1,
        "secs": round(elapsed_secs * _PER_UNIT),
        "credit": round(min(report.credit, 1e12) * _PER_UNIT),
        "decided": report.ndecided,
        "undecided": report.nworkunits - report.ndecided - report.nfaults,
        "fault": report.nfaults,
        "valid": report.nvalid,
        "invalid": report.ninvalid,
        "inconclusive": report.ninconclusive,
    }
    for what, amount in amounts.items():
        if amount:
            key = _KEY.format(app, what)
            cache.add(key, 0, timeout=None)
            cache.incr(key, amount)


class Passes(Collector):
    """Reads the counts when the metrics are scraped."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        names = list(App.objects.values_list("name", flat=True))
        whats = ("passes", "secs", "credit", *_WORKUNITS, *_RESULTS)
        counts = cache.get_many([_KEY.format(name, what) for name in names for what in whats])

        def value(name: str, what: str) -> float:
            return float(counts.get(_KEY.format(name, what), 0))

        passes = CounterMetricFamily("cobblestone_validator_passes", "Validator passes.", labels=["app"])
        secs = CounterMetricFamily("cobblestone_validator_seconds", "Time spent in validator passes.", labels=["app"])
        credit = CounterMetricFamily("cobblestone_granted_credit", "Credit granted by validators.", labels=["app"])
        workunits = CounterMetricFamily(
            "cobblestone_validated_workunits", "Workunits examined by validators.", labels=["app", "outcome"]
        )
        results = CounterMetricFamily(
            "cobblestone_validated_results", "Results judged by validators.", labels=["app", "state"]
        )
        for name in names:
            passes.add_metric([name], value(name, "passes"))
            secs.add_metric([name], value(name, "secs") / _PER_UNIT)
            credit.add_metric([name], value(name, "credit") / _PER_UNIT)
            for what in _WORKUNITS:
                workunits.add_metric([name, what], value(name, what))
            for what in _RESULTS:
                results.add_metric([name, what], value(name, what))
        yield from (passes, secs, credit, workunits, results)
