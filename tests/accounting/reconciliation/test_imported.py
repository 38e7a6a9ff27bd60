"""From a project's own statistics, read from a real server, to the volunteer's total."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest
from pytest_django import Settings

from accounting import tasks
from accounting.models import HostProject, Project, StatisticsImport
from accounting.reconciliation.reads import read_standings, total_of
from accounting.statistics import run
from portal.models import User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.statistics_site import DAY, NOON, HostRecord, StatisticsSite

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
