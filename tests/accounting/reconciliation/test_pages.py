"""What pages say of granted, estimated and provisional credit."""

from __future__ import annotations

import datetime as dt
import json
from functools import partial

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounting import tasks
from accounting.models import GrantedDay, Project, ProjectRatio, Settlement, StatisticsImport
from portal.models import Host, User
from portal.templatetags.display import day
from tests.support.accounting_factories import credit, granted, make_host, make_project
from tests.support.page_reader import page_of
from tests.support.page_text import text_of
from tests.support.roles import make_person
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db

MICRO = 1_000_000


def days_ago(number: int) -> dt.date:
    return timezone.now().date() - dt.timedelta(days=number)


@pytest.fixture
def alpha() -> Project:
    return make_project("Alpha")


@pytest.fixture
def settled(studio: Host, alpha: Project) -> Settlement:
    """700 credits estimated before the statistics had the computer, 300 since, of which 200 are granted."""
    credit(studio, alpha, str(days_ago(9)), (700 * MICRO, 0, 0, 0, 0, 0))
    credit(studio, alpha, str(days_ago(3)), (250 * MICRO, 50 * MICRO, 0, 0, 0, 0))
    granted(studio, alpha, 17, {str(days_ago(1)): 200 * MICRO})
    now = timezone.now()
    StatisticsImport.objects.create(project=alpha, update_time=now, first_update_time=now)
    row = Settlement.objects.create(
        host=studio, project=alpha, seen_on=days_ago(9), read_on=days_ago(9), estimated_before=0, is_whole=False,
        compared_from=700 * MICRO,
    )  # fmt: skip
    tasks.reconcile()
    row.refresh_from_db()
    return row


def test_home_has_one_total_and_says_what_it_is_made_of(signed_in: Client, settled: Settlement) -> None:
    text = text_of(signed_in.get("/home/"))
    assert "Total 900 credits 200 granted, 700 estimated" in text  # 700 + 200
    assert "Provisional, not in the total 100 credits" in text  # 250 + 50 - 200
    assert "Total 900 credits, 200 of them granted · provisional 100 , not in the total" in text


def test_the_chart_has_the_numbers_of_its_table(signed_in: Client, settled: Settlement) -> None:
    shown_page = page_of(signed_in, "/home/")
    (chart,) = json.loads(shown_page.one("script", id="bars-data").text)
    assert (chart["x"], chart["y"], len(chart["labels"])) == ("Day (UTC)", "credits per day", 30)
    values = {series["name"]: series["values"] for series in chart["series"]}
    # Today is the last of thirty days.
    assert values["Granted"][28] == 200 and sum(values["Granted"]) == 200
    assert values["Estimated, in the total"][20] == 700 and sum(values["Estimated, in the total"]) == 700
    assert values["Provisional, not in the total"][26] == 100
    assert f"{day(days_ago(1))} 200 0 0" in text_of(signed_in.get("/home/"))


def test_the_pages_of_the_computer_and_the_project_have_the_same(signed_in: Client, settled: Settlement) -> None:
    host, project = reverse("host", args=[settled.host_id]), reverse("project", args=[settled.project_id])
    for address, words in ((host, "Total credit 900 200 granted"), (project, "Your credit 900 ")):
        text = text_of(signed_in.get(address))
        assert words in text
        assert "Total 900 credits, 200 of them granted" in text
    assert " 900 " in text_of(signed_in.get(reverse("computers")))
    assert "Your contribution 900 credits" in text_of(signed_in.get(reverse("projects")))


def test_a_project_without_grants_shows_no_chart_of_them(signed_in: Client, settled: Settlement) -> None:
    other = make_project("Beta")
    assert "Granted and estimated" not in text_of(signed_in.get(reverse("project", args=[other.pk])))


def test_days_that_are_only_estimated_are_told_and_not_drawn(signed_in: Client, settled: Settlement) -> None:
    days = f"from={days_ago(12)}&to={days_ago(7)}"
    shown_page = page_of(signed_in, f"/history/?{days}")
    assert "Nothing has been granted for these days" in shown_page.words and not shown_page.all(
        "canvas", id="settled-chart"
    )
    assert page_of(signed_in, "/history/").one("canvas", id="settled-chart")


@pytest.mark.parametrize("step", ["day", "week", "month"])
def test_the_history_has_it_for_the_days_that_are_shown(signed_in: Client, settled: Settlement, step: str) -> None:
    days = f"from={days_ago(3)}&to={days_ago(0)}"
    text = text_of(signed_in.get(f"/history/?{days}&step={step}"))
    assert f"Granted and estimated credit per {step}" in text
    assert "Granted 200 Estimated, in the total 0 Provisional, not in the total 100" in text
    folds = [fold.text for fold in page_of(signed_in, f"/history/?{days}&step={step}").all("summary")]
    assert len(set(folds)) == len(folds) and "Granted and estimated credit as a table" in folds
    assert "Granted and estimated" not in text_of(signed_in.get(f"/history/?{days}&step={step}&show=jobs"))


def test_an_account_without_any_statistics_sees_its_estimate_as_before(
    signed_in: Client, studio: Host, alpha: Project
) -> None:
    credit(studio, alpha, str(days_ago(3)), (300 * MICRO, 0, 0, 0, 0, 0))
    text = text_of(signed_in.get("/home/"))
    assert "Total 300 credits" in text
    assert "Provisional" not in text and "Granted" not in text


def test_an_unusual_ratio_is_told_with_what_is_expected(signed_in: Client, settled: Settlement) -> None:
    Settlement.objects.update(granted=100 * MICRO, granted_last=0, estimated=2_000 * MICRO)
    ProjectRatio.objects.update(median=0.8, computers=20)
    text = text_of(signed_in.get(reverse("host", args=[settled.host_id])))
    # 100 / 2,000; 0.8 / 4 and 0.8 × 4
    assert "unusual In the long run, 0.05 credits were granted for each estimated credit." in text
    assert "The expected range is 0.2 to 3.2." in text


def test_operators_see_the_computers_that_are_far_outside_first(client: Client, settled: Settlement) -> None:
    Settlement.objects.update(granted=100 * MICRO, granted_last=0, estimated=2_000 * MICRO, is_outside=True)
    ProjectRatio.objects.update(median=0.8, computers=20)
    client.force_login(make_person("Account manager operator"))
    text = text_of(client.get(reverse("admin:accounting_settlement_changelist") + "?is_outside__exact=1"))
    assert "0.05 0.2 to 3.2 100 2 000" in text


def test_what_is_granted_to_others_stays_theirs(signed_in: Client, settled: Settlement, alice: User) -> None:
    assert GrantedDay.objects.filter(user=alice).count() == 1
    stranger = make_person("Support")
    signed_in.force_login(stranger)
    assert "Granted" not in text_of(signed_in.get("/home/"))


def test_many_computers_projects_and_days_cost_no_more_statements(
    signed_in: Client, settled: Settlement, alice: User
) -> None:
    host, project = reverse("host", args=[settled.host_id]), reverse("project", args=[settled.project_id])
    pages = ["/home/", "/history/", "/computers/", host, project]
    for address in pages:
        signed_in.get(address)
    few = [statements(partial(page_of, signed_in, address)) for address in pages]
    for number in range(12):
        computer, place = make_host(alice, f"node {number}"), make_project()
        for back in (2, 5, 20):
            credit(computer, place, str(days_ago(back)), (MICRO, 0, 0, 0, 0, 0))
        granted(computer, place, 17, {str(days_ago(back)): MICRO for back in (1, 4)})
        now = timezone.now()
        StatisticsImport.objects.create(project=place, update_time=now, first_update_time=now)
    tasks.reconcile()
    assert Settlement.objects.count() == 13
    assert [statements(partial(page_of, signed_in, address)) for address in pages] == few
