"""What runs, on Home and on the page of a computer; and what became of tasks."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.engine.client_tasks import TaskCreditState, TaskState
from accounting.models import FollowedTask, HostLedger, ProjectProfile
from accounting.running_tasks import follow
from accounting.running_tasks.reads import MAX_ON_HOME, read_host_tasks, read_running
from credit.models import ValidateState
from portal.models import Host, User
from tests.support.accounting_factories import make_host, make_project
from tests.support.credit_factories import make_app, make_result, make_success, make_workunit
from tests.support.page_text import text_of
from tests.support.task_lists import task_list

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def now() -> dt.datetime:
    return timezone.now()


def test_home_and_the_computers_page_say_what_runs(signed_in: Client, studio: Host, now: dt.datetime) -> None:
    project = make_project(name="Tidewater")
    task_list(studio, now, "estuary_7_0", project=project)
    # 10,800 s are 3 hours; 1,790,000,000 s after 1970 is this deadline.
    said = ["Tidewater estuary_7_0", "Running, 25 % done · 3.0 hours left", "eadline 21 Sep 2026, 14:13 UTC"]
    for url in (reverse("home"), reverse("host", args=[studio.pk])):
        page = signed_in.get(url)
        text = text_of(page).replace("\N{THIN SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ")
        assert "Running now" in text
        for each in said:
            assert each in text, text
        assert f'href="{project.master_url}result.php?result_name=estuary_7_0"' in page.content.decode()


def test_a_task_links_to_where_its_project_has_its_pages(studio: Host, alice: User, now: dt.datetime) -> None:
    elsewhere, hostile = make_project(), make_project()
    ProjectProfile.objects.create(project=elsewhere, seen={"web_rpc_url_base": "https://www.example.org/boinc"})
    ProjectProfile.objects.create(project=hostile, seen={"web_rpc_url_base": "javascript:alert(1)//"})
    task_list(studio, now, "a+b_0", project=elsewhere)
    expected = ["https://www.example.org/boinc/result.php?result_name=a%2Bb_0"]
    assert [line.url for line in read_running(alice, now).lines] == expected
    assert [line.url for line in read_host_tasks(studio, now).lines] == expected
    task_list(studio, now, "a_0", project=hostile)
    expected = [f"{hostile.master_url}result.php?result_name=a_0"]
    assert [line.url for line in read_running(alice, now).lines] == expected
    assert [line.url for line in read_host_tasks(studio, now).lines] == expected


def test_home_shows_some_tasks_that_run_and_how_many_there_are(studio: Host, alice: User, now: dt.datetime) -> None:
    project = make_project()
    task_list(studio, now, *[f"a_{n}" for n in range(12)], project=project)
    task_list(make_host(alice, "cellar"), now, "paused_0", project=project, state=TaskState.PAUSED)
    running = read_running(alice, now)
    assert (len(running.lines), running.total, running.left_out) == (MAX_ON_HOME, 12, 4)


def test_a_list_that_is_not_of_now_is_not_shown(studio: Host, alice: User, now: dt.datetime) -> None:
    project = make_project()

    def shown() -> tuple[int, int]:
        return len(read_running(alice, now).lines), len(read_host_tasks(studio, now).lines)

    task_list(studio, now - 47 * HOUR, "a_0", project=project)
    assert shown() == (1, 1)
    task_list(studio, now - 49 * HOUR, "a_0", project=project)
    assert shown() == (0, 0)
    # Since then its client has reported without a list.
    task_list(studio, now - HOUR, "a_0", project=project)
    HostLedger.objects.update(last_at=now)
    assert shown() == (0, 0)


def test_nobody_sees_anothers_tasks(signed_in: Client, studio: Host, bob: User, now: dt.datetime) -> None:
    his = make_host(bob, "cellar")
    task_list(his, now, "secret_0", project=make_project())
    assert "secret_0" not in text_of(signed_in.get(reverse("home")))
    assert signed_in.get(reverse("host", args=[his.pk])).status_code == 404


def test_the_computers_page_says_what_became_of_tasks(studio: Host, now: dt.datetime) -> None:
    own, elsewhere = make_project(is_own=True), make_project()
    app = make_app()
    granted = make_success(make_workunit(app), studio, validate_state=ValidateState.VALID, granted_credit=12.5)
    pending = make_success(make_workunit(app), studio)
    task_list(studio, now - HOUR, granted.name, pending.name, "unknown_0", project=own)
    follow.take_lists()
    task_list(studio, now - HOUR / 2, "far_0", project=elsewhere)
    follow.take_lists()
    task_list(studio, now, "still_0", project=elsewhere)
    # Its own project's are known at once, before any task has settled them.
    assert {line.name: (line.credit, line.text) for line in read_host_tasks(studio, now).ended} == {
        granted.name: (12.5, ""),
        pending.name: (None, "pending"),
        "unknown_0": (None, "not reported yet"),
        "far_0": (None, "counts with the project’s statistics"),
    }
    FollowedTask.objects.filter(name="far_0").update(standing=TaskCreditState.REFUSED)
    ended = {line.name: line.text for line in read_host_tasks(studio, now).ended}
    assert ended["far_0"] == "refused by the project"


def test_a_task_in_the_list_is_not_among_those_before(studio: Host, now: dt.datetime) -> None:
    project = make_project()
    task_list(studio, now - HOUR, "a_0", project=project)
    follow.take_lists()
    # It was not taken over yet, and the next list has the task still.
    task_list(studio, now, "a_0", project=project)
    tasks = read_host_tasks(studio, now)
    assert [line.name for line in tasks.lines] == ["a_0"] and tasks.ended == []


def test_what_runs_costs_a_fixed_number_of_statements(
    studio: Host, alice: User, now: dt.datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        project = make_project()
        task_list(studio, now - (4 - number) * HOUR, *[f"a_{number}_{n}" for n in range(5)], project=project)
        follow.take_lists()
        with django_assert_num_queries(1):
            read_running(alice, now)
        with django_assert_num_queries(4):
            read_host_tasks(studio, now)


def test_a_task_is_found_by_its_name_as_at_boincs_projects(signed_in: Client, studio: Host, bob: User) -> None:
    mine = make_result(make_workunit(make_app()), studio)
    his = make_result(make_workunit(make_app("beta")), make_host(bob, "cellar"))
    page = signed_in.get(reverse("task_by_name"), {"result_name": mine.name})
    assert (page.status_code, page["Location"]) == (302, reverse("task", args=[mine.pk]))
    for name in (his.name, "no_such_task", "", "a\0b"):
        assert signed_in.get(reverse("task_by_name"), {"result_name": name}).status_code == 404
