"""Prometheus metrics: counted by the middleware and the tasks, and read at /metrics.

The web server's processes share their counters through files (portal.ops.metrics_folder); tasks are counted in the
cache, as their processes come and go; the broker is asked for the lengths of queues at each reading.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import structlog
from celery import Task
from celery.signals import task_failure, task_prerun, task_success
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
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
from portal.extras import apps_in_use
from portal.ops.cache import valkey
from portal.periodic.timetable import EVERY

log = structlog.get_logger(__name__)

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_rpcs = Counter("cobblestone_rpcs", "Requests of BOINC clients, by BOINC's error number.", ["path", "error_num"])
_rpc_secs = Histogram("cobblestone_rpc_seconds", "Time to answer a BOINC client.", ["path"], buckets=_BUCKETS)
_pages = Counter("cobblestone_pages", "Requests of people and scripts, by view.", ["view", "status"])
_page_secs = Histogram("cobblestone_page_seconds", "Time to answer people and scripts.", buckets=_BUCKETS)
# Looking up a child by its labels costs more than counting.
_rpc_children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

_OTHER_QUEUES = sorted({route["queue"] for route in settings.CELERY_TASK_ROUTES.values()})
_TASK_KEY = "metrics:task:{}:{}"
_MAX_FAULT_CHARS = 300


def count_rpc(path: str, error_num: int, elapsed_secs: float) -> None:
    """Count one answered request of a BOINC client; ``path`` is one of settings.CLIENT_PATHS."""
    children = _rpc_children.get((path, error_num))
    if children is None:
        # In one step, as other threads run this code at the same time.
        children = _rpcs.labels(path, str(error_num)), _rpc_secs.labels(path)
        _rpc_children[path, error_num] = children
    count, secs = children
    count.inc()
    secs.observe(elapsed_secs)


def count_page(view: str, status: int, elapsed_secs: float) -> None:
    """Count one answered request of a person or a script; ``view`` is the name of a view, so there are few."""
    _pages.labels(view, str(status)).inc()
    _page_secs.observe(elapsed_secs)


def rpc_counts() -> dict[tuple[str, str], float]:
    """Requests of clients that this process has answered, by path and BOINC's error number."""
    return {
        (sample.labels["path"], sample.labels["error_num"]): sample.value
        for metric in _rpcs.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


# When this process began its present task, by the task's id. A process runs one at a time.
_begun: dict[str, float] = {}


@task_prerun.connect
def _note_begin(task_id: str, **_: object) -> None:
    _begun.clear()
    _begun[task_id] = time.monotonic()


@task_success.connect
def _count_success(sender: Task[Any, Any], **_: object) -> None:
    count_task(sender.name, succeeded=True, elapsed_secs=_elapsed(str(sender.request.id)))


@task_failure.connect
def _count_failure(sender: Task[Any, Any], task_id: str, exception: object = None, **_: object) -> None:
    # Only the first line: the others quote rows of PostgreSQL's tables.
    words = f"{type(exception).__name__}: {exception}".splitlines()[0][:_MAX_FAULT_CHARS]
    count_task(sender.name, succeeded=False, elapsed_secs=_elapsed(task_id), fault=words)


def _elapsed(task_id: str) -> float | None:
    begun = _begun.pop(task_id, None)
    return None if begun is None else time.monotonic() - begun


def count_task(task: str, succeeded: bool, elapsed_secs: float | None = None, fault: str = "") -> None:
    """Count a run of a background task, and store its time, duration and fault, if any."""
    outcome = "succeeded" if succeeded else "failed"
    key = _TASK_KEY.format(task, outcome)
    cache = valkey()
    cache.add(key, 0, timeout=None)
    cache.incr(key)
    last: dict[str, Any] = {"last" if succeeded else "failed_at": timezone.now().timestamp()}
    if elapsed_secs is not None:
        last["secs"] = elapsed_secs
    if not succeeded:
        last["fault"] = fault
    cache.set_many({_TASK_KEY.format(task, what): value for what, value in last.items()}, timeout=None)


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """The recorded runs of a periodic task; times are Unix times, None if there was none.

    ``known_since``: when the site first looked at it, so that one that never ran is noticed, too.
    """

    task: str
    schedule_secs: float
    known_since: float
    succeeded: int
    failed: int
    last_success_at: float | None
    last_failure_at: float | None
    elapsed_secs: float | None
    fault: str


def task_runs() -> list[TaskRuns]:
    """The runs of all periodic tasks, by name. Raises RedisError while Valkey is unreachable."""
    entries = settings.CELERY_BEAT_SCHEDULE.values()
    schedules = {str(entry["task"]): float(entry["options"]["headers"][EVERY]) for entry in entries}
    facts = _stored_facts(schedules, ("succeeded", "failed", "last", "failed_at", "secs", "fault", "known"))
    now = timezone.now().timestamp()
    unknown = {_TASK_KEY.format(task, "known"): now for task in schedules if (task, "known") not in facts}
    if unknown:
        valkey().set_many(unknown, timeout=None)
    return [
        TaskRuns(
            task=task,
            schedule_secs=secs,
            known_since=facts.get((task, "known"), now),
            succeeded=facts.get((task, "succeeded"), 0),
            failed=facts.get((task, "failed"), 0),
            last_success_at=facts.get((task, "last")),
            last_failure_at=facts.get((task, "failed_at")),
            elapsed_secs=facts.get((task, "secs")),
            fault=facts.get((task, "fault"), ""),
        )
        for task, secs in sorted(schedules.items())
    ]


def _stored_facts(tasks: Iterable[str], whats: Iterable[str]) -> dict[tuple[str, str], Any]:
    """The stored facts about tasks, by task and kind; one question to Valkey."""
    keys = {_TASK_KEY.format(task, what): (task, what) for task in tasks for what in whats}
    return {keys[key]: value for key, value in valkey().get_many(keys).items()}


def queue_names() -> list[str]:
    """The queues in which tasks wait for a worker."""
    return [app.conf.task_default_queue, *_OTHER_QUEUES]


class _ErrorTolerantCollector(Collector):
    """Wraps an app's collector: if that fails, for instance without a database, the rest can still be read."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        try:
            yield from list(self._collector.collect())
        except Exception:
            # Any error of an app: the other metrics must still be read.
            log.warning("metrics_part_unreadable", part=type(self._collector).__name__, exc_info=True)


class _TaskCollector(Collector):
    """Tasks and queues, looked up whenever the metrics are read. What is unreachable is left out and logged."""

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for part in (self._tasks, self._queues):
            try:
                yield from part()
            except Exception:
                # Redis, AMQP and kombu each raise their own errors; the other metrics must still be read.
                log.warning("metrics_part_unreadable", part=part.__name__, exc_info=True)

    def _tasks(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        runs = CounterMetricFamily("cobblestone_tasks", "Runs of background tasks.", labels=["task", "outcome"])
        last = GaugeMetricFamily(
            "cobblestone_task_last_success_seconds", "When the task last succeeded, Unix time.", labels=["task"]
        )
        secs = GaugeMetricFamily("cobblestone_task_seconds", "How long its last run took.", labels=["task"])
        failed = GaugeMetricFamily(
            "cobblestone_task_last_failure_seconds", "When the task last failed, Unix time.", labels=["task"]
        )
        schedule = GaugeMetricFamily(
            "cobblestone_task_schedule_seconds", "How often the task is due to run.", labels=["task"]
        )
        for task in task_runs():
            schedule.add_metric([task.task], task.schedule_secs)
            runs.add_metric([task.task, "succeeded"], task.succeeded)
            runs.add_metric([task.task, "failed"], task.failed)
            for gauge, value in (
                (last, task.last_success_at),
                (failed, task.last_failure_at),
                (secs, task.elapsed_secs),
            ):
                if value is not None:
                    gauge.add_metric([task.task], value)
        return [runs, last, failed, secs, schedule]

    def _queues(self) -> list[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("cobblestone_queue_length", "Tasks waiting for a worker.", labels=["queue"])
        for name in queue_names():
            waiting.add_metric([name], queue_length(name))
        return [waiting]


def may_read(request: HttpRequest) -> bool:
    """Whether the request carries METRICS_TOKEN or, if that is not set, comes directly from this machine."""
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode())
    # A proxy on this machine has a loopback address too, but names its client.
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    try:
        return not forwarded and ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics in Prometheus' text format; 404 for those who may not read them."""
    if not may_read(request):
        return HttpResponse(status=404)
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
    background = CollectorRegistry()
    background.register(_TaskCollector())
    for site_app in apps_in_use():
        for collector in site_app.collectors():
            background.register(_ErrorTolerantCollector(collector))
    return HttpResponse(generate_latest(registry) + generate_latest(background), content_type=CONTENT_TYPE_LATEST)
