"""Our own export, served by a running site and imported: every number comes back."""

from __future__ import annotations

import datetime as dt
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connection
from django.db.models import F, QuerySet, Sum
from django.utils import timezone
from pytest_django import Settings

from accounting.models import AccountTotal, GrantedDay, GrantedTotal, Project, StatisticsImport
from accounting.statistics import run
from credit.export.run import export
from credit.models import ExportConsent
from portal.models import Host
from tools.benchmarks.export import fill
from tools.benchmarks.statistics_import import claim

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


_TOO_MUCH: Final = 1e13
"""Credits of an odd record."""
_OF_THE_WAY: Final = {
    "etag", "last_modified", "update_time", "first_update_time", "imported_at", "asked_at", "next_at",
}  # fmt: skip


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


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
    execute("UPDATE credit_hostcredit SET total_credit = total_credit + 1")
    # As if the first had been yesterday: they are told apart by the second.
    StatisticsImport.objects.update(update_time=F("update_time") - DAY, first_update_time=F("first_update_time") - DAY)
    GrantedTotal.objects.update(as_of=F("as_of") - DAY, fits_since=F("fits_since") - DAY)
    assert "4.00 credits were granted" in run.import_project(project.pk, at_once=True)
    assert not (tmp_path / "in").exists()


def test_the_sites_own_project_counts_as_its_published_export_does(
    live_server: Any, settings: Settings, tmp_path: Path
) -> None:
    """The same records by both ways, odd ones, a merged and a deleted one included, give the same rows."""
    settings.STATISTICS_DIR, settings.STATISTICS_IMPORT_DIR = tmp_path / "out", tmp_path / "in"
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.STATISTICS_IMPORT_ODD_PERCENT = 1
    own = Project.objects.create(name="Itself", master_url=settings.PROJECT_URL, is_own=True)
    published = Project.objects.create(name="As published", master_url=f"{live_server.url}/project/")
    for project in (own, published):
        StatisticsImport.objects.create(project=project)
    fill(150)
    for project in (own, published):
        claim(project, one_in=1)
    first, second, third, fourth, without_id, *_ = Host.objects.order_by("pk")
    Host.objects.filter(pk=fourth.pk).update(merged_into=third)
    Host.objects.filter(pk=without_id.pk).update(host_cpid="")
    execute(f"UPDATE credit_hostcredit SET expavg_at = NULL, total_credit = {_TOO_MUCH} WHERE host_id = {first.pk}")
    execute("UPDATE credit_hostcredit SET expavg_at = NULL")
    execute("UPDATE credit_usercredit SET expavg_at = NULL")
    _read_both(own, published)
    # As if that had been yesterday. One more record is odd now, and was ours before; another lost credit.
    StatisticsImport.objects.update(update_time=F("update_time") - DAY, first_update_time=F("first_update_time") - DAY)
    GrantedTotal.objects.update(as_of=F("as_of") - DAY, fits_since=F("fits_since") - DAY)
    AccountTotal.objects.update(as_of=F("as_of") - DAY)
    execute("UPDATE credit_hostcredit SET total_credit = total_credit + host_id % 3")
    execute(f"UPDATE credit_hostcredit SET total_credit = {_TOO_MUCH} WHERE host_id = {second.pk}")
    execute(f"UPDATE credit_hostcredit SET total_credit = total_credit - 9 WHERE host_id = {third.pk}")
    state = _read_both(own, published)
    # Of 300 computers one is merged into another, two are odd, and one has no id of its client.
    assert (state["hosts_read"], state["hosts_odd"], state["hosts_kept"], state["users_odd"]) == (299, 2, 296, 0)
    assert state["odd_ours"] == f"computer {second.pk}" and state["granted"] > 0


def _read_both(own: Project, published: Project) -> dict[str, Any]:
    """What the import of both said, which is the same; so is all that is kept of their records."""
    assert export() is not None
    for project in (own, published):
        assert "odd records were left out" in run.import_project(project.pk, at_once=True)
    for model, times in ((GrantedTotal, {"as_of", "fits_since", "avg_at"}), (AccountTotal, {"as_of", "avg_at"})):
        rows = [_without(model.objects.filter(project=project), {"id", *times}) for project in (own, published)]
        assert rows[0] == rows[1] and rows[0]
    assert _without(GrantedDay.objects.filter(project=own), set()) == _without(
        GrantedDay.objects.filter(project=published), set()
    )
    mine, theirs = (
        _without(StatisticsImport.objects.filter(project=project), _OF_THE_WAY)[0] for project in (own, published)
    )
    assert mine == theirs
    return mine


def _without(rows: QuerySet[Any], columns: set[str]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in columns | {"project_id"}}
        for row in rows.order_by("pk").values()
    ]


def test_every_number_comes_back(live_server: Any, settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT, settings.STATISTICS_IMPORT_DIR = tmp_path / "out", tmp_path / "in"
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    fill(USERS)
    project = Project.objects.create(name="Itself", master_url=f"{live_server.url}/project/")
    StatisticsImport.objects.create(project=project)
    claim(project, one_in=1)
    # As autovacuum does: by the plans for empty tables the import takes half a minute.
    execute("ANALYZE")
    export()
    outcome = run.import_project(project.pk, at_once=True)
    assert f"{HOSTS} of {HOSTS} computers and {USERS} of {USERS} accounts" in outcome
    assert count(_DIFFERENT_HOSTS) == count(_DIFFERENT_USERS) == 0
    assert GrantedTotal.objects.count() == HOSTS and AccountTotal.objects.count() == USERS
    # As if that had been yesterday: exports are told apart by the second.
    StatisticsImport.objects.update(update_time=F("update_time") - DAY, first_update_time=F("first_update_time") - DAY)
    GrantedTotal.objects.update(as_of=F("as_of") - DAY, fits_since=F("fits_since") - DAY)
    execute("UPDATE credit_hostcredit SET total_credit = total_credit + host_id % 3")
    export()
    run.import_project(project.pk, at_once=True)
    assert count(_DIFFERENT_HOSTS) == 0
    # Of three computers in turn one was granted nothing, one a credit, and one two of them.
    ids = GrantedTotal.objects.values_list("host_id", flat=True)
    granted = dict(GrantedDay.objects.values_list("host_id", "credit"))
    assert all(abs(granted.get(id_, 0) - id_ % 3 * 10**6) <= 1 for id_ in ids)
    assert GrantedTotal.objects.aggregate(total=Sum("counted_credit"))["total"] == sum(granted.values())
