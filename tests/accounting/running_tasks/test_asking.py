"""Projects elsewhere are asked what became of tasks: another Cobblestone, and some that do not answer."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Iterator
from ipaddress import ip_network
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from accounting import tasks as background
from accounting.engine.client_tasks import TaskCreditState
from accounting.models import FollowedTask, Project, ProjectProfile, TaskSource
from accounting.running_tasks import asking, follow
from credit.models import ValidateState
from portal.models import Host, User
from tests.support.accounting_factories import make_host, make_project
from tests.support.credit_factories import make_app, make_result, make_success, make_workunit
from tests.support.raw_server import RawServer, path_of, reply
from tests.support.task_lists import task_list

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def may_ask_this_machine(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


class Elsewhere(RawServer):
    """A project that says the same of every task: ``said``; or answers with ``answer``."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.said = (5, 1, 1, "12.5")
        self.answer: bytes | None = None

    def _reply(self, connection: socket.socket, request: bytes) -> None:
        connection.sendall(self.answer if self.answer is not None else reply(self._results(names_of(request))))

    def _results(self, names: list[str]) -> bytes:
        tags = ("server_state", "outcome", "validate_state", "granted_credit")
        numbers = "".join(f"<{tag}>{value}</{tag}>\n" for tag, value in zip(tags, self.said, strict=True))
        return (
            f"<results>{''.join(f'<result><name>{name}</name>{numbers}</result>' for name in names)}</results>".encode()
        )


def names_of(request: bytes) -> list[str]:
    return parse_qs(urlsplit(path_of(request)).query)["names"][0].split(",")


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as server:
        yield server


def project_at(url: str) -> Project:
    """A project that was asked what it is."""
    project = make_project(master_url=url)
    ProjectProfile.objects.create(
        project=project, seen={"web_rpc_url_base": url}, said={"web_rpc_url_base": "https://new.invalid/"}
    )
    return project


def ended(host: Host, project: Project, *names: str, at: dt.datetime = NOW) -> None:
    """Tasks that the host had, and has not any more at this time."""
    task_list(host, at - HOUR, *names, project=project)
    follow.take_lists()
    task_list(host, at, project=project)
    follow.take_lists()


@pytest.mark.django_db(transaction=True)
def test_another_cobblestone_tells_what_it_granted(studio: Host, bob: User, live_server: LiveServer) -> None:
    # Its volunteers are not ours, and it says nothing of them.
    theirs, app = make_host(bob, "cellar"), make_app()
    granted = make_success(make_workunit(app), theirs, validate_state=ValidateState.VALID, granted_credit=12.5)
    refused = make_success(make_workunit(app), theirs, validate_state=ValidateState.INVALID)
    running = make_result(make_workunit(app), theirs)
    project = project_at(f"{live_server.url}/project/")
    ended(studio, project, granted.name, refused.name, running.name, "no_such_task_0")
    assert asking.due_projects(NOW) == [project.pk]
    assert asking.ask(project.pk, NOW) == 4
    assert set(FollowedTask.objects.values_list("name", "standing", "granted_credit")) == {
        (granted.name, TaskCreditState.GRANTED, 12.5),
        (refused.name, TaskCreditState.REFUSED, None),
        (running.name, TaskCreditState.OPEN, None),
        ("no_such_task_0", TaskCreditState.OPEN, None),
    }
    source = TaskSource.objects.get()
    assert (source.answered_at, source.problem) == (NOW, None)
    # What is not decided is asked about again, after an hour.
    assert asking.due_projects(NOW + HOUR - DAY / 1440) == []
    assert asking.due_projects(NOW + HOUR) == [project.pk]


def test_a_project_is_asked_about_forty_tasks_at_once_and_two_hundred_in_a_run(
    studio: Host, elsewhere: Elsewhere
) -> None:
    project = project_at(elsewhere.url)
    for part in range(2):
        ended(studio, project, *[f"task_{part}_{n}" for n in range(150)], at=NOW - 2 * (1 - part) * HOUR)
    assert asking.ask(project.pk, NOW) == 200
    assert [len(names_of(request)) for request in elsewhere.requests] == [40] * 5
    assert FollowedTask.objects.filter(standing=TaskCreditState.GRANTED, granted_credit=12.5).count() == 200
    # Not again at once, even if somebody starts it twice.
    assert asking.ask(project.pk, NOW) == 0 and len(elsewhere.requests) == 5
    assert asking.ask(project.pk, NOW + asking.EVERY) == 100


def test_long_names_are_asked_about_in_shorter_lists(studio: Host, elsewhere: Elsewhere) -> None:
    project = project_at(elsewhere.url)
    ended(studio, project, *[f"{n:0>250}" for n in range(30)])
    assert asking.ask(project.pk, NOW) == 30
    # 3,500 characters hold 13 names of 250 with their commas (3 characters each).
    assert [len(names_of(request)) for request in elsewhere.requests] == [13, 13, 4]


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"", status="404 Not Found"),
        reply(b"<html><body>Welcome</body></html>"),
        reply(b"<results>" + b"<result></result>" * 30_000 + b"</results>"),
    ],
)
def test_a_project_that_has_no_such_answer_is_left_alone_for_a_month(
    studio: Host, elsewhere: Elsewhere, answer: bytes
) -> None:
    elsewhere.answer = answer
    project = project_at(elsewhere.url)
    ended(studio, project, "a_0")
    assert asking.ask(project.pk, NOW) == 0
    source = TaskSource.objects.get()
    assert source.problem and source.ask_after == NOW + 30 * DAY
    task = FollowedTask.objects.get()
    assert (task.standing, task.asks) == (TaskCreditState.OPEN, 0)


@pytest.mark.parametrize(
    "answer",
    [
        # As this site's own answers to clients fail, with status 200
        reply(b"<error>\n<error_num>-183</error_num>\n<error_msg>Too many requests.</error_msg>\n</error>\n"),
        reply(b"<html><body>Down for maintenance</body></html>"),
        reply(b"<results><result><name>a_0</name>"),
        reply(b"", status="403 Forbidden"),
    ],
)
def test_a_project_that_answered_before_is_asked_again_soon_after_it_failed(
    studio: Host, elsewhere: Elsewhere, answer: bytes
) -> None:
    project = project_at(elsewhere.url)
    ended(studio, project, "a_0", "b_0")
    elsewhere.said = (4, 0, 0, "0")
    assert asking.ask(project.pk, NOW) == 2
    elsewhere.answer = answer
    asking.ask(project.pk, NOW + HOUR)
    source = TaskSource.objects.get()
    assert source.problem and source.ask_after == NOW + 2 * HOUR


def test_a_project_whose_first_answer_is_an_error_of_boincs_is_asked_again(studio: Host, elsewhere: Elsewhere) -> None:
    elsewhere.answer = reply(b"<error><error_num>-1</error_num><error_msg>Database is down</error_msg></error>")
    project = project_at(elsewhere.url)
    ended(studio, project, "a_0")
    asking.ask(project.pk, NOW)
    source = TaskSource.objects.get()
    assert "Database is down" in str(source.problem) and source.ask_after == NOW + HOUR


def test_a_project_that_fails_is_asked_ever_more_rarely(studio: Host, elsewhere: Elsewhere) -> None:
    elsewhere.answer = reply(b"", status="503 Service Unavailable")
    project = project_at(elsewhere.url)
    ended(studio, project, "a_0")
    now, waits = NOW, []
    for _ in range(6):
        asking.ask(project.pk, now)
        source = TaskSource.objects.get()
        waits.append((source.ask_after - now) / HOUR)
        now = source.ask_after
    # 1, 2, 4, 8, 16 hours, then 32 > 24
    assert waits == [1, 2, 4, 8, 16, 24] and "503" in str(source.problem)
    elsewhere.answer = None
    assert asking.ask(project.pk, now) == 1
    source.refresh_from_db()
    assert (source.problem, source.failures) == (None, 0)


def test_an_answer_with_strange_numbers_settles_nothing(studio: Host, elsewhere: Elsewhere) -> None:
    elsewhere.said = (5, 1, 1, "nan")
    project = project_at(elsewhere.url)
    ended(studio, project, "a_0")
    for _ in range(4):
        FollowedTask.objects.update(ask_after=NOW)
        TaskSource.objects.update(ask_after=NOW)
        asking.ask(project.pk, NOW)
    task = FollowedTask.objects.get()
    assert (task.standing, task.granted_credit, task.asks) == (TaskCreditState.OPEN, None, 4)


def test_addresses_inside_private_networks_are_not_asked(
    studio: Host, elsewhere: Elsewhere, settings: Settings
) -> None:
    settings.FETCH_ALLOWED_NETWORKS = []
    project = project_at(elsewhere.url)
    ended(studio, project, "a_0")
    assert asking.ask(project.pk, NOW) == 0 and elsewhere.requests == []
    assert TaskSource.objects.get().problem


def test_one_bad_project_keeps_no_other_from_being_asked(studio: Host, elsewhere: Elsewhere) -> None:
    bad, good = project_at("https://nowhere.invalid/"), project_at(elsewhere.url)
    now = dt.datetime.now(dt.UTC)
    ended(studio, bad, "bad_0", at=now - 2 * HOUR)
    ended(studio, good, "good_0", at=now)
    # Each in a background task of its own, of which one fails.
    follow.follow(now)
    for project_id in asking.due_projects(now):
        background.ask_about_tasks(project_id)
    standings = dict(FollowedTask.objects.values_list("name", "standing"))
    assert standings == {"bad_0": TaskCreditState.OPEN, "good_0": TaskCreditState.GRANTED}


def test_a_project_that_was_never_asked_what_it_is_is_not_asked_about_tasks(studio: Host, elsewhere: Elsewhere) -> None:
    ended(studio, make_project(master_url=elsewhere.url), "a_0")
    assert asking.due_projects(NOW + DAY) == []
