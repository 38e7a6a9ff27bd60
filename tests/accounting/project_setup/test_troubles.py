"""The page that shows what the site knows of each project."""

from __future__ import annotations

import datetime as dt

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.models import HostProject, Project, ProjectProfile, ProjectTrouble
from accounting.project_setup.reads import ProjectTroubles, read_troubles
from accounting.wire.project_config import ProjectConfig
from portal.languages.messages import VERBATIM, Message
from portal.models import User
from tests.support.accounting_factories import make_host, make_note, make_project


@pytest.fixture
def now() -> dt.datetime:
    return timezone.now()


def reports(
    user: User, project: Project, at: dt.datetime, *, contact: dt.datetime | None = None, **state: object
) -> None:
    """A computer that said this of a project."""
    host = make_host(user, f"host {HostProject.objects.count()}")
    host.ledger.last_at = at
    host.ledger.save()
    said = {"at": int(at.timestamp()), "failures": 0, "no_work": [], **state}
    HostProject.objects.create(host=host, project=project, listed=True, state=said)


def line_of(project: Project, now: dt.datetime) -> ProjectTroubles:
    cache.clear()
    return next(line for line in read_troubles(now) if line.project == project)


def test_what_computers_say_is_counted(alice: User, now: dt.datetime) -> None:
    project = make_project("Alpha")
    hour = dt.timedelta(hours=1)
    reports(alice, project, now - hour)
    reports(alice, project, now - 2 * hour, no_work=["CPU", "NVIDIA"])
    reports(alice, project, now, failures=5)
    # Fewer than three failures in a row are no sign, but no answer either.
    reports(alice, project, now, failures=2)
    # Long gone: what it said counts no more.
    reports(alice, project, now - 48 * hour, failures=9)
    line = line_of(project, now)
    assert (line.computers, line.failing, line.most_failures, line.without_work) == (4, 1, 5, 1)
    assert line.last_good_at == (now - hour).replace(microsecond=0)
    assert not line.needs_attention


def test_refused_reports_of_the_week_are_named(alice: User, now: dt.datetime) -> None:
    project, other = make_project("Alpha"), make_project("Beta")
    host = make_host(alice, "studio")
    today = now.date()
    make_note(host, "dropped", str(today), project=project, count=3)
    make_note(host, "invalid", str(today - dt.timedelta(days=3)), project=project)
    make_note(host, "dropped", str(today - dt.timedelta(days=30)), project=other)
    make_note(host, "reset", str(today), project=other)
    assert sorted(line_of(project, now).refused) == [
        "1 reports from 1 computers: could not be read",
        "3 reports from 1 computers: more than the computer could have done",
    ]
    assert line_of(other, now).refused == []


def test_projects_that_need_attention_come_first(alice: User, now: dt.datetime) -> None:
    make_project("Alpha")
    failing, troubled, unasked = make_project("Beta"), make_project("Gamma"), make_project("Zeta")
    reports(alice, failing, now, failures=4)
    ProjectTrouble.objects.create(
        project=troubled, kind="no_work", processor_type="CPU", since=now, last_at=now, volunteers=4, of_volunteers=5
    )
    ProjectProfile.objects.create(
        project=unasked, problem=Message(VERBATIM, text="zeta.example.org: no connection."), problem_since=now
    )
    cache.clear()
    lines = read_troubles(now)
    assert [(line.project.name, line.needs_attention) for line in lines] == [
        ("Beta", True),
        ("Gamma", True),
        ("Zeta", True),
        ("Alpha", False),
    ]


def test_what_a_project_says_of_itself_is_named(now: dt.datetime, alice: User) -> None:
    project = make_project("Alpha")
    said = ProjectConfig(name="Alpha", master_url="https://other.example.org/", sched_stopped=True).to_json()
    ProjectProfile.objects.create(project=project, said=said, seen=said)
    stopped, elsewhere = line_of(project, now).warnings
    assert stopped == "Its scheduler is stopped, so it sends no work."
    assert "states https://other.example.org/ as its master URL, not https://p" in elsewhere
    assert line_of(project, now).needs_attention


def test_the_page_says_it_in_words(alice: User, desk: Client, now: dt.datetime) -> None:
    project = make_project("Alpha")
    reports(alice, project, now, failures=4)
    ProjectTrouble.objects.create(
        project=project, kind="failing", since=now, last_at=now, volunteers=4, of_volunteers=5
    )
    page = desk.get(reverse("admin:accounting_project_troubles")).content.decode()
    assert "Does not answer since" in page and "4 of 5 volunteers" in page and "up to 4 times" in page


def test_an_empty_page_says_how_to_begin(desk: Client) -> None:
    page = desk.get(reverse("admin:accounting_project_troubles")).content.decode()
    assert "There is no project yet." in page and reverse("admin:accounting_project_add_by_url") in page


def test_the_page_takes_few_statements(
    alice: User, now: dt.datetime, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for name in ("Alpha", "Beta", "Gamma"):
        reports(alice, make_project(name), now)
    cache.clear()
    with django_assert_max_num_queries(4):
        read_troubles(now)
    with django_assert_max_num_queries(2):
        read_troubles(now)
