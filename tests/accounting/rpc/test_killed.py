"""A request that dies in the middle, on the server or in the process: all of it happened, or nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from accounting.ledger import check
from accounting.models import Day, HostLedger, HostProject, Note, Project
from portal.databases.params import psycopg_params
from portal.models import Host, User
from tests.support.am_rpc import Reply, attach, host_of, hours_credited, hours_pass, post, sync, work
from tests.support.database import backend
from tests.support.site_process import environment
from tools.simulation.client import SimulatedComputer

pytestmark = pytest.mark.django_db(transaction=True)

LAST_WRITTEN = "accounting_day"
FIRST_WRITTEN = "accounting_hostledger"

# Hands a message on standard input to the site, as a worker process of its own would.
WORKER = """
import sys, django
django.setup()
from django.test import Client
from django.test.utils import setup_test_environment
setup_test_environment()
Client().post("/rpc.php", sys.stdin.buffer.read(), content_type="text/xml")
"""


@contextmanager
def held(table: str, host: Host) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else holds the host's rows of this table."""
    with psycopg.connect(**psycopg_params()) as other:
        other.execute(f"SELECT 1 FROM {table} WHERE host_id = %s FOR UPDATE", [host.pk])
        yield other


def waiting_backend(other: psycopg.Connection[Any]) -> int:
    """The server process that waits for what ``other`` holds; asked until there is one."""
    own = other.info.backend_pid
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [own])
            if row := cursor.fetchone():
                return int(row[0])


def books(host: Host) -> list[Any]:
    """All that a request may change."""
    return [
        list(HostLedger.objects.filter(host=host).values()),
        list(HostProject.objects.filter(host=host).order_by("project_id").values()),
        list(Day.objects.filter(host=host).order_by("project_id", "day").values()),
        list(Note.objects.filter(host=host).values()),
        list(Host.objects.filter(pk=host.pk).values()),
    ]


def with_work(user: User, projects: list[Project]) -> SimulatedComputer:
    """A computer with rows in all tables, and three more hours to report."""
    computer = attach(user)
    hours_pass(computer, 10)
    work(computer, projects[0], 1)
    sync(computer)
    work(computer, projects[0], 3)
    return computer


@pytest.mark.parametrize("table", [FIRST_WRITTEN, LAST_WRITTEN])
@pytest.mark.parametrize("ntimes", [1, 2])
def test_a_request_whose_server_process_is_ended_is_done_once_more_and_booked_once(
    table: str, ntimes: int, alice: User, projects: list[Project]
) -> None:
    computer = with_work(alice, projects)
    host = host_of(computer)
    before = books(host)
    replies: list[Reply] = []

    def report() -> None:
        try:
            replies.append(post(computer.request(time.time()), Client(raise_request_exception=False)))
        finally:
            connection.close()

    with held(table, host) as other:
        reporter = threading.Thread(target=report)
        reporter.start()
        for _ in range(ntimes):
            pid = waiting_backend(other)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        if ntimes == 1:
            waiting_backend(other)  # the second try
        other.rollback()
        reporter.join()
    if ntimes == 1:
        assert replies[0].error[0] == 0
    else:
        assert replies[0].error[0] == -1
        assert "try again" in replies[0].error[1]
        assert books(host) == before
    # The client tries again, and nothing is lost or doubled.
    sync(computer)
    assert hours_credited(computer, projects[0]) == 4


@pytest.mark.parametrize("table", [FIRST_WRITTEN, LAST_WRITTEN])
def test_a_request_whose_process_is_killed_happened_whole_or_not_at_all(
    table: str, alice: User, projects: list[Project]
) -> None:
    computer = with_work(alice, projects)
    host = host_of(computer)
    before = books(host)
    message = computer.request(time.time())
    with held(table, host) as other:
        variables = environment(
            settings.VAR_DIR,
            AM_SIGNING_KEY=str(settings.AM_SIGNING_KEY),
            AM_SIGNING_KEY_PUBLIC=str(settings.AM_SIGNING_KEY_PUBLIC),
        )
        worker = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, env=variables)
        assert worker.stdin is not None
        worker.stdin.write(message)
        worker.stdin.close()
        pid = waiting_backend(other)
        worker.kill()
        worker.wait()
        other.rollback()
    _until_gone(pid)
    assert hours_credited(computer, projects[0]) in (1, 4)
    assert (books(host) == before) == (hours_credited(computer, projects[0]) == 1)
    assert list(check.differences()) == []
    sync(computer)
    assert hours_credited(computer, projects[0]) == 4


def _until_gone(pid: int) -> None:
    """Until the server has noticed that the process is gone, and finished its work or not."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
            if cursor.fetchone() is None:
                return


def test_after_a_restart_of_the_database_the_first_failure_clears_the_pool(
    live_server: LiveServer, alice: User, projects: list[Project]
) -> None:
    computer = with_work(alice, projects)

    def report() -> int:
        request = Request(f"{live_server.url}/rpc.php", data=computer.request(time.time()))
        with urlopen(request) as response:
            return Reply(response.read()).error[0]

    assert report() == 0
    pool = backend().pool
    for raw in [pool.getconn() for _ in range(5)]:
        pool.putconn(raw)
    # All but this test's own connection: those that wait in the pool.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (ended,) = cursor.fetchone()
    errors = [report() for _ in range(ended + 2)]
    assert ended >= 5
    assert set(errors) <= {0, -1}
    # Not each connection of the pool fails a request of its own. Some requests may be under way at once.
    assert errors.count(-1) < ended
    assert errors[-1] == 0
    assert hours_credited(computer, projects[0]) == 4
