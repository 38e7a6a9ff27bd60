"""Runs Celery's own beat while this process holds a lock in the database, so that only one of several machines sends
the periodic tasks.

Beat keeps its schedule in memory and follows its machine's clock. It is restarted when that clock jumps: after a clock
was set back, it would send nothing until the clock had caught up.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import structlog
from django.conf import settings
from django.db import connection
from kombu.exceptions import OperationalError
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from portal.celery import is_full
from portal.databases.clocks import ahead_secs
from portal.databases.params import psycopg_params
from portal.dev.parent_death import ends_with_parent
from portal.ops import heartbeats

log = structlog.get_logger("beat")

LOOK_SECS: Final = 1.0
"""How often to look: nothing notifies us that a lock is free, a clock was set, a child ended or too much waits."""
STEP_SECS: Final = 5.0
END_SECS: Final = 5.0
_COMMAND: Final = (
    *(sys.executable, "-W", "ignore::UserWarning:celery.platforms", "-m", "celery", "--quiet", "--app", "portal"),
    *("beat", "--pidfile=", "--loglevel", "WARNING"),
)
# "bt", in an advisory lock's number
LOCK: Final = 0x6274
_TRY_LOCK: Final = f"SELECT pg_try_advisory_lock({LOCK})"
_HOLDER: Final = f"""
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
 WHERE locktype = 'advisory' AND classid = 0 AND objid = {LOCK} AND objsubid = 1 AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_NAME: Final = f"{socket.gethostname()[:40]}:{os.getpid()}"


def run() -> None:
    """Send the periodic tasks whenever nobody else does, until this process is told to end."""
    while True:
        try:
            with psycopg.connect(**_params(), autocommit=True) as session:
                _wait_for_lock(session)
                _send(session)
        except psycopg.Error as error:
            log.warning("beat_waits_for_database", reason=str(error)[:300])
        time.sleep(LOOK_SECS)


def holder() -> str:
    """The process that sends the periodic tasks, by the database's locks; empty if none does. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLDER)
        row = cursor.fetchone()
    return row[0] if row else ""


class BeatMetrics(Collector):
    """Reports to Prometheus whether periodic tasks are sent."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        text = "1 while a beat process sends the periodic tasks."
        yield GaugeMetricFamily("cobblestone_beat_running", text, 1 if holder() else 0)


def _params() -> dict[str, Any]:
    """Connection parameters with which a paused or cut-off process loses its session, and so the lock, within 10 s."""
    return psycopg_params() | {
        "options": "-c idle_session_timeout=10s",
        "application_name": _NAME,
        "connect_timeout": 2,
        "tcp_user_timeout": 5000,
    }


def _wait_for_lock(session: psycopg.Connection[Any]) -> None:
    while session.execute(_TRY_LOCK).fetchone() != (True,):
        heartbeats.tell_now_and_then("beat", _NAME)
        time.sleep(LOOK_SECS)


def _send(session: psycopg.Connection[Any]) -> None:
    """Keep beat running until the clock jumps, pausing it while too much waits."""
    log.info("beat_has_the_lock", holder=_NAME)
    began_ahead_secs = ahead_secs(session)
    child: subprocess.Popen[bytes] | None = None
    try:
        while abs(ahead_secs(session) - began_ahead_secs) < STEP_SECS:
            heartbeats.tell_now_and_then("beat", _NAME)
            if _is_too_much_waiting():
                _end(child)
                child = None
            elif child is None or child.poll() is not None:
                child = subprocess.Popen(ends_with_parent([*_COMMAND]))
            time.sleep(LOOK_SECS)
        log.warning("beat_clock_was_set")
    finally:
        _end(child)


def _is_too_much_waiting() -> bool:
    """Whether too much waits; False while the broker cannot be asked, as beat itself waits for it."""
    try:
        return is_full(settings.CELERY_TASK_DEFAULT_QUEUE)
    except OperationalError:
        return False


def _end(child: subprocess.Popen[bytes] | None) -> None:
    if child is not None:
        child.terminate()
        try:
            child.wait(END_SECS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
