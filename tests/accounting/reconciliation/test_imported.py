"""From a project's own statistics, read from a real server, to the volunteer's total."""

from __future__ import annotations

import threading
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from accounting import tasks
from accounting.computers.merge import merge
from accounting.models import HostProject, Project, StatisticsImport
from accounting.reconciliation.reads import read_standings, total_of
from accounting.statistics import run
from portal.models import User
from tests.support.accounting_factories import at, credit, granted, make_host, make_project
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.statistics_site import DAY, NOON, HostRecord, StatisticsSite
from tests.support.wait import wait_until

# An import has a session of its own: it sees only what was committed.
pytestmark = pytest.mark.django_db(transaction=True)

MICRO = 1_000_000


def test_what_an_import_found_is_settled_by_the_next_run(alice: User, settings: Settings, tmp_path: Path) -> None:
    settings.STATISTICS_IMPORT_DIR = tmp_path
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    project = make_project("Alpha")
    studio = make_host(alice, "studio", "2025-01-01", host_cpid="a" * 32)
    credit(studio, project, "2026-02-28", (400 * MICRO, 0, 0, 0, 0, 0))
    HostProject.objects.update(state={"hostid": 17})
    totals = []
    with StatisticsSite() as site:
        Project.objects.update(master_url=site.url)
        StatisticsImport.objects.create(project=project)
        for day, granted in enumerate(("1000.25", "1100.75", "900.00", "1101.75")):
            site.publish(NOON + day * DAY, [HostRecord(17, granted)])
            run.import_project(project.pk, at_once=True)
            tasks.reconcile()
            totals.append(total_of(read_standings(alice)) / MICRO)
    # 400 were estimated before; 1100.75 - 1000.25 = 100.5; a total that went back; 1101.75 - 1100.75 = 1.
    assert totals == [400, 500.5, 500.5, 501.5]


def test_a_merge_while_grants_are_settled_for_the_first_time_counts_nothing_twice(alice: User) -> None:
    project = make_project("Alpha")
    older = make_host(alice, "studio", "2026-01-01", "2026-02-01")
    newer = make_host(alice, "studio", "2026-02-02", "2026-02-09")
    for host, day in ((older, "2026-01-31"), (newer, "2026-02-08")):
        credit(host, project, day, (400 * MICRO, 0, 0, 0, 0, 0))
    granted(older, project, 17, {"2026-02-08": 5 * MICRO})
    StatisticsImport.objects.create(project=project, update_time=at("2026-02-08"), first_update_time=at("2026-02-07"))
    before = total_of(read_standings(alice))

    def settle_in_a_thread() -> None:
        try:
            tasks.reconcile()
        finally:
            connection.close()

    settling = threading.Thread(target=settle_in_a_thread)
    with transaction.atomic():
        merge(alice.pk, older.pk, newer.pk)
        settling.start()
        # The merge has the ledgers until it is committed.
        wait_until(lambda: nwaiting_for_locks() == 1 or not settling.is_alive(), "it waits", timeout_secs=60)
    settling.join()
    assert total_of(read_standings(alice)) == before
