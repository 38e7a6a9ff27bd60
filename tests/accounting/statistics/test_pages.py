"""What operators and volunteers see of imports."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting import figures, tasks
from accounting.models import AccountTotal, StatisticsImport
from accounting.statistics import run
from portal.languages.messages import Message, at_place
from portal.models import Change, User
from tests.support.accounting_factories import make_project
from tests.support.operating_figures import samples
from tests.support.page_reader import page_of
from tests.support.statistics_site import NOON, StatisticsSite

LIST = "/admin/accounting/statisticsimport/"


@pytest.fixture
def row(db: None) -> StatisticsImport:
    return StatisticsImport.objects.create(
        project=make_project("Alpha"), hosts_read=2_000_000, hosts_kept=3, 
        trouble=at_place("host.gz", Message("export_compression_cut_off")),
        trouble_since=timezone.now() - dt.timedelta(days=3), failures=4,
    )  # fmt: skip


def test_operators_see_how_each_import_is_doing(desk: Client, row: StatisticsImport) -> None:
    words = page_of(desk, LIST).words
    assert "Alpha" in words and "host.gz: was cut off" in words and "3 of 2\u202f000\u202f000" in words
    page = page_of(desk, f"{LIST}{row.pk}/change/").words
    assert f"{row.project.master_url}stats/" in page


def test_a_change_leaves_what_an_import_writes_meanwhile(desk: Client, row: StatisticsImport) -> None:
    fields = {"is_on": "", "url": "https://files.example.org/out", "account_email": "ops@example.org"}
    assert desk.post(f"{LIST}{row.pk}/change/", fields).status_code == 302
    row.refresh_from_db()
    assert (row.is_on, row.account_email, row.hosts_read) == (False, "ops@example.org", 2_000_000)
    assert run.url_of(row, row.project) == "https://files.example.org/out/"
    assert Change.objects.filter(content_type__model="statisticsimport", object_pk=str(row.pk)).exists()


def test_read_now_asks_a_worker(
    desk: Client, row: StatisticsImport, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    StatisticsImport.objects.update(next_at=timezone.now() + dt.timedelta(days=1))
    reply = desk.post(LIST, {"action": "read_now", "_selected_action": [row.pk]}, follow=True)
    assert "Projects whose statistics are being read: 1." in reply.content.decode()
    # Should the message be lost, the next round finds it.
    assert run.due(timezone.now()) == [row.pk]


def test_the_dashboard_tells_of_projects_that_cannot_be_read_for_days(row: StatisticsImport) -> None:
    def failing() -> float:
        return samples(figures.READINGS, timezone.now())["am.imports_failing", ""]

    assert failing() == 1
    StatisticsImport.objects.update(trouble_since=timezone.now())
    assert failing() == 0


def test_volunteers_see_the_totals_of_their_own_accounts_only(signed_in: Client, alice: User, bob: User) -> None:
    assert "Totals across projects" not in signed_in.get("/projects/").content.decode()
    now = timezone.now()
    for number, (user, total) in enumerate(((alice, 1_500_000_000), (alice, 2_000_000_000), (bob, 7_777_000_000)), 41):
        AccountTotal.objects.create(
            project=make_project(f"P{number}"),
            project_user_id=number,
            user=user,
            total_credit=total,
            avg_at=now,
            as_of=now,
        )
    page = page_of(signed_in, "/projects/")
    # 1500 + 2000; P42 has more than P41
    assert "3\u202f500" in page.words and "7\u202f777" not in page.words and "P43" not in page.words.split("across")[-1]
    assert page.words.rindex("P42") < page.words.rindex("P41")


@pytest.fixture
def site(settings: Settings, tmp_path: Path) -> Iterator[StatisticsSite]:
    settings.STATISTICS_IMPORT_DIR = tmp_path
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with StatisticsSite() as running:
        yield running


@pytest.mark.django_db(transaction=True)
def test_the_command_and_the_page_maintenance_read_all_projects_or_those_named(site: StatisticsSite) -> None:
    for name in ("Alpha", "Beta"):
        StatisticsImport.objects.create(project=make_project(name), url=f"{site.url}stats/")
    out = io.StringIO()
    call_command("import_statistics", "Beta", stdout=out)
    assert out.getvalue() == (
        "Beta: 0 of 0 computers and 0 of 0 accounts are of volunteers here; 0.00 credits were granted.\n"
    )
    assert [line.partition(":")[0] for line in run.IMPORT.run()] == ["Alpha", "Beta"]
    with pytest.raises(CommandError, match="from a project named Gamma"):
        call_command("import_statistics", "Gamma")


@pytest.mark.django_db(transaction=True)
def test_the_task_starts_one_for_each_project(
    site: StatisticsSite, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ROOMS = ["account_manager"]
    StatisticsImport.objects.create(project=make_project("Alpha"), url=f"{site.url}stats/")
    monkeypatch.setattr(tasks.import_statistics_of, "delay", tasks.import_statistics_of)
    tasks.import_statistics()
    row = StatisticsImport.objects.get()
    assert row.update_time is not None and row.update_time.timestamp() == NOON
    every = dt.timedelta(seconds=settings.STATISTICS_IMPORT_EVERY_SECS)
    assert timezone.now() + every * 0.8 < row.next_at < timezone.now() + every
