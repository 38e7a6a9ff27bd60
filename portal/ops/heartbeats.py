"""Heartbeats: each process reports to Valkey every few seconds, and web processes add what they have counted.

A process that has been silent for a minute counts as gone. Nothing here may keep a process from its work, so errors
are ignored.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import structlog
from celery.signals import heartbeat_sent
from django.conf import settings
from django.utils import timezone
from redis import Redis, RedisError

from portal.ops import metrics

log = structlog.get_logger("heartbeats")

EVERY_SECS: Final = 15.0
SILENT_SECS: Final = 60.0
FORGOTTEN_SECS: Final = 600.0
_PROCESSES: Final = "cobblestone:processes"
_RPCS: Final = "cobblestone:rpcs"
_MAILS: Final = "cobblestone:mails"


@dataclass(frozen=True, slots=True)
class Process:
    """``kind``: web, pages, worker or beat. ``at``: its last report, Unix time. ``queues``: those of a worker."""

    kind: str
    name: str
    at: float
    queues: list[str] = field(default_factory=list)


@cache
def _client(address: str) -> Redis:
    return Redis.from_url(address, socket_timeout=2, socket_connect_timeout=2)


def _valkey() -> Any:
    return _client(str(settings.CACHES["default"]["LOCATION"]))


def tell(kind: str, name: str, queues: list[str] | None = None) -> None:
    """Report that a process is alive."""
    facts = json.dumps({"at": timezone.now().timestamp(), "queues": queues or []})
    _valkey().hset(_PROCESSES, f"{kind} {name}", facts)


def processes() -> list[Process]:
    """The live processes, by kind and name. Raises RedisError while Valkey is unreachable."""
    alive, gone, now = [], [], timezone.now().timestamp()
    for key, value in _valkey().hgetall(_PROCESSES).items():
        kind, _, name = key.decode().partition(" ")
        facts = json.loads(value)
        silent_secs = now - facts["at"]
        if silent_secs <= SILENT_SECS:
            alive.append(Process(kind, name, facts["at"], facts["queues"]))
        elif silent_secs > FORGOTTEN_SECS:
            gone.append(key)
    if gone:
        _valkey().hdel(_PROCESSES, *gone)
    return sorted(alive, key=lambda process: (process.kind, process.name))


def rpc_totals() -> dict[tuple[str, str], float]:
    """Requests of clients that all web processes have answered, by path and BOINC's error number."""
    totals = {}
    for key, value in _valkey().hgetall(_RPCS).items():
        path, _, error_num = key.decode().rpartition(" ")
        totals[path, error_num] = float(value)
    return totals


def count_mails(outcome: str, number: int) -> None:
    """Count mails that were "sent" or "failed"; of the latter, those refused for good also as "bounced"."""
    if number:
        try:
            _valkey().hincrby(_MAILS, outcome, number)
        except RedisError:
            log.warning("mails_not_counted", outcome=outcome)


def mail_totals() -> dict[str, float]:
    """Mails handed to the mail server, those it did not accept, and among these those that it refused for good."""
    totals = {key.decode(): float(value) for key, value in _valkey().hgetall(_MAILS).items()}
    return {"sent": 0.0, "failed": 0.0, "bounced": 0.0, **totals}


def memory() -> tuple[float, float]:
    """The bytes that Valkey uses, and its limit; 0 if it has none."""
    usage = _valkey().info("memory")
    return float(usage["used_memory"]), float(usage.get("maxmemory", 0))


# --- web processes ------------------------------------------------------------------------------------


class WebHeartbeat:
    """A web process; ``beat`` reports that it is alive, and adds what it has counted since the last time."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._told: dict[tuple[str, str], float] = {}

    def beat(self) -> None:
        tell(self._kind, self._name)
        counts = metrics.rpc_counts()
        for (path, error_num), count in counts.items():
            if (more := count - self._told.get((path, error_num), 0.0)) > 0:
                _valkey().hincrbyfloat(_RPCS, f"{path} {error_num}", more)
            self._told[path, error_num] = count

    def run(self) -> None:
        while True:
            try:
                self.beat()
            except RedisError:
                # The next one comes soon; pages report that Valkey is unreachable.
                log.debug("heartbeat_not_told")
            time.sleep(EVERY_SECS)


def start_web(kind: str) -> None:
    """Start a web process's heartbeat, in a thread that ends with the process."""
    threading.Thread(target=WebHeartbeat(kind).run, name="heartbeat", daemon=True).start()


# --- workers and beat -----------------------------------------------------------------------------------

_told_at: dict[str, float] = {}


def tell_now_and_then(kind: str, name: str, queues: list[str] | None = None) -> None:
    """Report that this process is alive, at most every EVERY_SECS; never raises."""
    now = time.monotonic()
    if now < _told_at.get(kind, 0.0) + EVERY_SECS:
        return
    _told_at[kind] = now
    try:
        tell(kind, name, queues)
    except RedisError:
        log.debug("heartbeat_not_told")


@heartbeat_sent.connect
def _worker_lives(sender: Any, **_: object) -> None:
    events = sender.eventer
    tell_now_and_then("worker", events.hostname, sorted(events.app.amqp.queues.consume_from))
