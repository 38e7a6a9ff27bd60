"""The dashboard's first panel, and the public status that every site has. Other apps add their own."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from portal.celery import queue_length
from portal.dashboard import registry, sql
from portal.dashboard.registry import Combine, Daemon, Figure, FigureQuery, Part, Rows, Sample, Table, Unit, per_hour
from portal.dashboard.rules import above, below, first_of, grows
from portal.ops import heartbeats, metrics
from portal.periodic.titles import task_title

LEAST_FREE_PERCENT: Final = 10.0
_WORK_LIST: Final = "admin:portal_requestedwork_changelist?state=waiting"

FIGURES: Final = (
    Figure(
        "services.web",
        _("Web processes"),
        about=_("Processes that answered within the last minute, of clients (web) and of pages alone (pages)."),
        trouble=below(1, _("No web process that answers clients reports that it is alive.")),
        series=_("kind"),
    ),
    Figure(
        "services.workers",
        _("Workers by queue"),
        about=_("Workers that take tasks from each queue."),
        series=_("queue"),
        trouble=below(1, _("No worker takes tasks from: {labels}. Start one (docs/how-to/operate.md).")),
    ),
    Figure(
        "services.waiting_tasks",
        _("Tasks waiting for a worker"),
        series=_("queue"),
        trouble=first_of(
            above(1000, _("More than 1\u202f000 tasks wait in: {labels}. Start more workers.")),
            grows(_("More and more tasks wait for a worker. Start more workers.")),
        ),
    ),
    Figure("services.task_secs", _("Run time of periodic tasks"), Unit.SECS, series=_("task"), label_text=task_title),
    per_hour("services.task_failures", _("Failed runs of periodic tasks"), series=_("task"), label_text=task_title),
    Figure("services.database_size", _("PostgreSQL: size"), Unit.BYTES),
    Figure(
        "services.database_sessions",
        _("PostgreSQL: sessions in use"),
        Unit.PERCENT,
        about=_("Of the sessions that PostgreSQL allows (max_connections)."),
        trouble=above(85, _("PostgreSQL has hardly any sessions left. Lower DB_POOL_MAX or raise max_connections.")),
    ),
    Figure(
        "services.replication_lag",
        _("PostgreSQL: standbys are behind by"),
        Unit.SECS,
        series=_("standby"),
        about=_("Empty without a standby."),
        trouble=above(300, _("The standby is more than five minutes behind: {labels}.")),
    ),
    Figure("services.valkey_memory", _("Valkey: memory used"), Unit.BYTES),
    Figure(
        "services.valkey_memory_share",
        _("Valkey: part of its limit"),
        Unit.PERCENT,
        about=_("Empty without a limit (maxmemory)."),
        trouble=above(90, _("Valkey is almost full: tasks and logins may fail soon.")),
    ),
    Figure(
        "services.free_bytes",
        _("Storage: free"),
        Unit.BYTES,
        combine=Combine.MIN,
        series=_("folder"),
        about=_("As seen by the machine that the worker runs on."),
    ),
    Figure(
        "services.free_share",
        _("Free space (%)"),
        Unit.PERCENT,
        combine=Combine.MIN,
        series=_("folder"),
        trouble=below(
            LEAST_FREE_PERCENT, _("The disk is almost full: {labels}. Make room, or move it to a larger one.")
        ),
    ),
    Figure(
        "services.requested_waiting",
        _("Queued requests"),
        link=_WORK_LIST,
        about=_("Runs of the emulator, uploads to it and copies of data."),
        trouble=grows(_("More and more requests are queued. Start more workers of the queue “requested”.")),
    ),
    Figure(
        "services.requested_oldest",
        _("Oldest queued request"),
        Unit.SECS,
        link=_WORK_LIST,
        trouble=above(6 * 3600, _("A request has been queued for more than six hours.")),
    ),
)


def _processes(now: dt.datetime) -> Iterator[Sample]:
    alive = heartbeats.processes()
    kinds = Counter(process.kind for process in alive if process.kind in ("web", "pages"))
    # Clients need "web"; a site may have no "pages", which serve pages only.
    for kind in sorted({"web", *kinds}):
        yield Sample("services.web", kinds[kind], kind)
    queues = Counter(queue for process in alive for queue in process.queues)
    for queue in sorted({*_queues(), *queues}):
        yield Sample("services.workers", queues[queue], queue)


def _tasks(now: dt.datetime) -> Iterator[Sample]:
    for queue in _queues():
        yield Sample("services.waiting_tasks", queue_length(queue), queue)
    for task in metrics.task_runs():
        if task.elapsed_secs is not None:
            yield Sample("services.task_secs", task.elapsed_secs, task.task)
        yield Sample("services.task_failures", task.failed, task.task)


def _queues() -> list[str]:
    return [*metrics.queue_names(), *(f"validator.{app}" for app in settings.VALIDATOR_QUEUES)]


def _valkey(now: dt.datetime) -> Iterator[Sample]:
    used, most = heartbeats.memory()
    yield Sample("services.valkey_memory", used)
    if most:
        yield Sample("services.valkey_memory_share", 100 * used / most)


def _storage(now: dt.datetime) -> Iterator[Sample]:
    for folder in folders():
        if folder.exists():
            usage = shutil.disk_usage(folder)
            yield Sample("services.free_bytes", usage.free, str(folder))
            yield Sample("services.free_share", 100 * usage.free / usage.total, str(folder))


def folders() -> list[Path]:
    """The folders that the site writes to, which may be on disks of their own."""
    paths = [Path(settings.VAR_DIR)]
    if "project" in settings.ROOMS:
        paths.append(Path(settings.UPLOADS_DIR))
        if isinstance(default_storage, FileSystemStorage):
            paths.append(Path(default_storage.path("")))
    return paths


def _daemons(now: dt.datetime) -> Rows:
    """The parts of the site, and whether each runs: its task succeeded lately, or is not overdue."""
    runs = {run.task: run for run in metrics.task_runs()}
    has_web = any(process.kind in ("web", "pages") for process in heartbeats.processes())
    rows: Rows = []
    for daemon in (daemon for part in registry.parts() for daemon in part.daemons):
        run = runs.get(daemon.task)
        if run is None:
            runs_well = has_web and not daemon.task
        else:
            lately = now.timestamp() - 3 * run.schedule_secs - 900
            runs_well = (run.last_success_at or run.known_since) > lately
        rows.append([daemon.command, runs_well])
    return rows


_READINGS: Final = (
    *(_processes, _tasks, _valkey, _storage),
    *(FigureQuery(sql.DATABASE), FigureQuery(sql.STANDBYS), FigureQuery(sql.REQUESTED)),
)
PARTS: Final = (
    Part("services", FIGURES, _READINGS, words=[gettext_noop("other")]),
    Part(
        "status",
        readings=[FigureQuery(sql.REGISTERED)],
        tables=[Table("status.daemons", _daemons)],
        daemons=[Daemon("web server")],
    ),
)
