"""Our own export, served by a running site and imported: every number comes back."""

from __future__ import annotations

import datetime as dt
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, Sum
from django.utils import timezone
from pytest_django import Settings

from accounting.benchmarks.statistics import claim
from accounting.models import AccountTotal, GrantedDay, GrantedTotal, Project, StatisticsImport
from accounting.statistics import run
from accounting.wire.statistics import Tables, read_tables
from credit.benchmarks.export import fill
from credit.export.run import export
from credit.models import ExportConsent

pytestmark = pytest.mark.django_db(transaction=True)

USERS = 3_000
HOSTS = 2 * USERS
DAY = dt.timedelta(days=1)

# What the project granted, and what was kept of it: rows that differ in anything. A half of a millionth may be rounded
# either way.
_DIFFERENT_HOSTS = """
SELECT count(*) FROM credit_hostcredit c
  FULL JOIN accounting_grantedtotal t ON t.project_host_id = c.host_id AND t.host_id = c.host_id
 WHERE (abs(t.total_credit - c.total_credit::numeric * 1000000) <= 0.5) IS NOT TRUE
    OR t.made_at IS DISTINCT FROM (SELECT date_trunc('second', created_at) FROM portal_host WHERE id = c.host_id)"""
_DIFFERENT_USERS = """
SELECT count(*) FROM credit_usercredit c
  FULL JOIN accounting_accounttotal t ON t.project_user_id = c.user_id AND t.user_id = c.user_id
 WHERE (abs(t.total_credit - c.total_credit::numeric * 1000000) <= 0.5) IS NOT TRUE"""


def count(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def test_the_sites_own_project_is_read_without_a_request_or_consent(settings: Settings, tmp_path: Path) -> None:
    """Its volunteers see their own credit here, and nobody else's; what is published stays as it was."""
    settings.MEDIA_ROOT, settings.STATISTICS_IMPORT_DIR = tmp_path / "out", tmp_path / "in"
    settings.FETCH_ALLOWED_NETWORKS = []
    project = Project.objects.create(name="Itself", master_url=settings.PROJECT_URL, is_own=True)
    run.follow_projects(timezone.now())
    fill(2)
    claim(project, one_in=1)
    ExportConsent.objects.all().delete()
    published = export()
    assert published is not None and (published.nusers, published.nhosts) == (0, 0)
    assert "4 of 4 computers and 2 of 2 accounts" in run.import_project(project.pk)
    assert count(_DIFFERENT_HOSTS) == 0
    with connection.cursor() as cursor:
        cursor.execute("UPDATE credit_hostcredit SET total_credit = total_credit + 1")
    # As if the first had been yesterday: they are told apart by the second.
    StatisticsImport.objects.update(update_time=F("update_time") - DAY, first_update_time=F("first_update_time") - DAY)
    GrantedTotal.objects.update(as_of=F("as_of") - DAY, fits_since=F("fits_since") - DAY)
    assert "4.00 credits were granted" in run.import_project(project.pk, at_once=True)
    assert list((tmp_path / "in").iterdir()) == []


@pytest.mark.parametrize("fault", ["no room is left", "nothing new"])
def test_what_is_written_of_everybody_is_private_and_never_stays(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    settings.STATISTICS_IMPORT_DIR = tmp_path / "in"
    project = Project.objects.create(name="Itself", master_url=settings.PROJECT_URL, is_own=True)
    run.follow_projects(timezone.now())
    fill(1)
    if fault == "nothing new":
        StatisticsImport.objects.update(update_time=timezone.now() + DAY)
    modes = []

    def tables(body: bytes, now: dt.datetime) -> Tables:
        folder = tmp_path / "in" / str(project.pk)
        modes.append((folder.stat().st_mode & 0o777, (folder / "host.gz").exists()))
        if fault == "no room is left":
            raise OSError(28, "No space left on device")
        return read_tables(body)

    monkeypatch.setattr(run, "_tables", tables)
    said = run.import_project(project.pk, at_once=True)
    assert ("No space" in said) == (fault == "no room is left")
    assert modes == [(0o700, True)]
    assert list((tmp_path / "in").iterdir()) == []


def test_every_number_comes_back(live_server: Any, settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT, settings.STATISTICS_IMPORT_DIR = tmp_path / "out", tmp_path / "in"
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    fill(USERS)
    project = Project.objects.create(name="Itself", master_url=f"{live_server.url}/project/")
    StatisticsImport.objects.create(project=project)
    claim(project, one_in=1)
    export()
    said = run.import_project(project.pk, at_once=True)
    assert f"{HOSTS} of {HOSTS} computers and {USERS} of {USERS} accounts" in said
    assert count(_DIFFERENT_HOSTS) == count(_DIFFERENT_USERS) == 0
    assert GrantedTotal.objects.count() == HOSTS and AccountTotal.objects.count() == USERS
    # As if that had been yesterday: exports are told apart by the second.
    StatisticsImport.objects.update(update_time=F("update_time") - DAY, first_update_time=F("first_update_time") - DAY)
    GrantedTotal.objects.update(as_of=F("as_of") - DAY, fits_since=F("fits_since") - DAY)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE credit_hostcredit SET total_credit = total_credit + host_id % 3")
    export()
    run.import_project(project.pk, at_once=True)
    assert count(_DIFFERENT_HOSTS) == 0
    # Of three computers in turn one was granted nothing, one a credit, and one two of them.
    ids = GrantedTotal.objects.values_list("host_id", flat=True)
    granted = dict(GrantedDay.objects.values_list("host_id", "credit"))
    assert all(abs(granted.get(id_, 0) - id_ % 3 * 10**6) <= 1 for id_ in ids)
    assert GrantedTotal.objects.aggregate(total=Sum("counted_credit"))["total"] == sum(granted.values())
