"""Prometheus metrics: counted by the middleware and the tasks, and read at /metrics.

The web server's processes share their counters through files (portal.ops.metrics_folder); tasks are counted in the
cache, as their processes come and go; queue lengths are read from the broker for each reading.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import time
from collections.abc import Iterator
from typing import Any

import structlog
from celery import Task
from celery.signals import task_failure, task_success
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from portal.celery import app, queue_length
from portal.ops.cache import valkey

log = structlog.get_logger(__name__)

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_rpcs = Counter("cobblestone_rpcs", "Requests of BOINC clients, by BOINC's error number.", ["path", "error_num"])
_rpc_secs = Histogram("cobblestone_rpc_seconds", "Time to answer a BOINC client.", ["path"], buckets=_BUCKETS)
_pages = Counter("cobblestone_pages", "Requests of people and scripts, by view.", ["view", "status"])
_page_secs = Histogram("cobblestone_page_seconds", "Time to answer people and scripts.", buckets=_BUCKETS)
# Looking a child up by its labels costs more than counting.
_rpc_children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

_OTHER_QUEUES = sorted({route["queue"] for route in settings.CELERY_TASK_ROUTES.values()})
_TASK_KEY = "metrics:task:{}:{}"


def count_rpc(path: str, error_num: int, elapsed_secs: float) -> None:
    """Count one answered request of a BOINC client; ``path`` is one of settings.CLIENT_PATHS."""
    children = _rpc_children.get((path, error_num))
    if children is None:
        # Both in one step: other threads run this code at the same time.
        children = _rpcs.labels(path, str(error_num)), _rpc_secs.labels(path)
        _rpc_children[path, error_num] = children
    count, secs = children
    count.inc()
    secs.observe(elapsed_secs)


def count_page(view: str, status: int, elapsed_secs: float) -> None:
    """Count one answered request of a person or a script; ``view`` is the name of a view, so there are few."""
    _pages.labels(view, str(status)).inc()
    _page_secs.observe(elapsed_secs)


@task_success.connect
def _count_success(sender: Task[Any, Any], **_: object) -> None:
    count_task(sender.name, succeeded=True)


@task_failure.connect
def _count_failure(sender: Task[Any, Any], **_: object) -> None:
    count_task(sender.name, succeeded=False)


def count_task(task: str, succeeded: bool) -> None:
    """Count one run of a background task and keep when it last succeeded."""
    outcome = "succeeded" if succeeded else "failed"
    key = _TASK_KEY.format(task, outcome)
    cache = valkey()
    cache.add(key, 0, timeout=None)
    cache.incr(key)
    if succeeded:
        cache.set(_TASK_KEY.format(task, "last"), time.time(), timeout=None)


# Collectors of other apps, asked for each reading; an app adds its own in ready().
app_collectors: list[Collector] = []


class _ErrorTolerantCollector(Collector):
    """Wraps the collector of an app: if it fails, without a database for instance, the rest can still be read."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        try:
            yield from list(self._collector.collect())
        except Exception:
            # An app may fail in any way; the other metrics must still be read.
            log.warning("metrics.part_unreadable", part=type(self._collector).__name__, exc_info=True)


class _TaskCollector(Collector):
    """Tasks and queues, looked up when somebody reads the metrics. What cannot be reached is left out and logged."""

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for part in (self._tasks, self._queues):
            try:
                yield from part()
            except Exception:
                # Redis, AMQP and kombu each raise errors of their own; the rest of the metrics must still be read.
                log.warning("metrics.part_unreadable", part=part.__name__, exc_info=True)

    def _tasks(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        runs = CounterMetricFamily("cobblestone_tasks", "Runs of background tasks.", labels=["task", "outcome"])
        last = GaugeMetricFamily(
            "cobblestone_task_last_success_seconds", "When the task last succeeded, Unix time.", labels=["task"]
        )
        tasks = sorted({str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()})
        kept = valkey().get_many(
            [_TASK_KEY.format(task, what) for task in tasks for what in ("succeeded", "failed", "last")]
        )
        for task in tasks:
            for outcome in ("succeeded", "failed"):
                runs.add_metric([task, outcome], kept.get(_TASK_KEY.format(task, outcome), 0))
            if (at := kept.get(_TASK_KEY.format(task, "last"))) is not None:
                last.add_metric([task], at)
        return [runs, last]

    def _queues(self) -> list[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("cobblestone_queue_length", "Tasks that wait for a worker.", labels=["queue"])
        for name in (app.conf.task_default_queue, *_OTHER_QUEUES):
            waiting.add_metric([name], queue_length(name))
        return [waiting]


def may_read(request: HttpRequest) -> bool:
    """Whether the request carries METRICS_TOKEN or, if none is set, comes straight from this machine."""
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode())
    # A proxy on this machine has a loopback address too, but says for whom it asks.
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    try:
        return not forwarded and ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics in Prometheus' text format; 404 for who may not read them."""
    if not may_read(request):
        return HttpResponse(status=404)
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    background = CollectorRegistry()
    background.register(_TaskCollector())
    for collector in app_collectors:
        background.register(_ErrorTolerantCollector(collector))
    return HttpResponse(generate_latest(registry) + generate_latest(background), content_type=CONTENT_TYPE_LATEST)
