"""What a request costs: the statements that really go to the server, as libpq writes them down."""

from __future__ import annotations

import datetime as dt
import re
import time
from contextlib import ExitStack

import pytest
from django.utils import timezone

from accounting.models import Project, ProjectAddress
from accounting.projects.addresses import learn
from accounting.rpc import catalogue
from portal.models import ClientKey, User
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import asked, attach, hours_pass, kinds_noted, make_computer, post, sync, with_total, work
from tests.support.event_loops import Loop
from tools.benchmarks.harness.statements import count, sent_by, statements, traced
from tools.simulation.client import SimulatedComputer, Task

# Without a surrounding transaction, whose statements would be counted too.
pytestmark = pytest.mark.django_db(transaction=True)

_QUERY = re.compile(r'^F\t\d+\tQuery\t "(.*)"$', re.MULTILINE)


def warm(computer: SimulatedComputer) -> None:
    """The second report of this process: the projects are known, the statements prepared."""
    hours_pass(computer, 10)
    sync(computer)


def more_projects(number: int) -> None:
    for n in range(number):
        make_project(
            name=f"More {n}",
            master_url=f"https://more{n}.example.org/",
            account_key=f"1_{n}",
        )
    catalogue.forget()


@pytest.mark.parametrize("number", [1, 3, 10])
def test_a_known_host_costs_two_statements_whatever_the_number_of_projects(
    number: int, alice: User, projects: list[Project]
) -> None:
    more_projects(7)
    for project in Project.objects.order_by("pk")[:number]:
        alice.user_projects.create(project=project, is_chosen=True)
    computer = attach(alice)
    warm(computer)
    assert len(computer.projects) == number
    for url in computer.projects:
        computer.projects[url].work(computer, 3600, 0, (1, 0))
    assert statements(lambda: sync(computer)) == 2


def test_a_project_at_another_address_or_an_unknown_one_costs_no_statement_more(
    alice: User, projects: list[Project]
) -> None:
    alpha, beta, _ = projects
    learn(alpha, "https://moved.example.org/", ProjectAddress.Source.CONFIG)
    computer = attach(alice)
    for project, url in ((alpha, "http://www.moved.example.org/"), (beta, "https://unknown.example.org/")):
        attachment = computer.projects.pop(project.master_url)
        attachment.url = url
        computer.projects[url] = attachment
    warm(computer)
    for attachment in computer.projects.values():
        attachment.work(computer, 3600, 0, (1, 0))
    assert statements(lambda: sync(computer)) == 2


def test_each_statement_is_a_transaction_of_its_own(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    warm(computer)
    # Neither BEGIN nor COMMIT nor any text that the server would have to plan again.
    assert _QUERY.findall(sent_by(lambda: sync(computer))) == []


def test_a_repeated_message_costs_two_statements_and_a_stale_one_only_the_read(
    alice: User, projects: list[Project]
) -> None:
    computer = attach(alice)
    warm(computer)
    older = computer.request(time.time())
    newer = computer.request(time.time() + 1)
    post(newer)
    assert statements(lambda: post(newer)) == 2
    assert statements(lambda: post(older)) == 1


def test_notes_cost_no_statement_more(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    warm(computer)
    spoilt = with_total(computer.request(time.time()), projects[0], "cpu_time", b"nan")
    post(spoilt)  # prepares the statement with notes
    assert statements(lambda: post(with_total(computer.request(time.time()), projects[0], "cpu_time", b"nan"))) == 2
    assert kinds_noted(computer) == ["sum_broken"]


def test_a_list_of_tasks_costs_no_statement_more(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    warm(computer)
    for number in (1, 200):
        computer.tasks = [
            Task(projects[0].master_url, f"task_{number}_{n}", 1e9, process=(1, 2)) for n in range(number)
        ]
        assert statements(lambda: sync(computer)) == 2
    assert len(alice.hosts.get().task_list.tasks) == 200


def test_a_key_that_was_not_used_for_a_day_costs_one_more(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    warm(computer)
    ClientKey.objects.update(last_used_at=timezone.now() - dt.timedelta(days=2))
    assert statements(lambda: sync(computer)) == 3
    assert statements(lambda: sync(computer)) == 2


def test_new_hardware_costs_no_more(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    warm(computer)
    work(computer, projects[0], 1)
    computer.ncpus = 8
    assert statements(lambda: sync(computer)) == 2
    assert alice.hosts.get().ncpus == 8
    assert statements(lambda: sync(computer)) == 2


def test_a_first_contact_costs_the_same_however_many_projects_and_computers_there_are(
    alice: User, projects: list[Project]
) -> None:
    def first_contact(name: str) -> int:
        computer = make_computer(alice, name, p_model=f"CPU of {name}")
        return statements(lambda: sync(computer))

    first_contact("attic")
    counts = [first_contact("cellar")]
    more_projects(7)
    attach(alice, "kitchen")
    counts.append(first_contact("studio"))
    assert counts[0] == counts[1] <= 25


def test_requests_that_come_together_cost_two_statements_in_all(alice: User, projects: list[Project]) -> None:
    computers = [attach(alice, f"computer-{number}", p_model=f"CPU {number}") for number in range(5)]
    now = timezone.now()

    def reports(loop: Loop) -> list[object]:
        for computer in computers:
            hours_pass(computer, 10)
            work(computer, projects[0], 1)
        computers[2].tasks = [Task(projects[0].master_url, "alpha_1_0", 1e9, process=(1, 2))]
        spoilt = with_total(computers[0].request(time.time()), projects[0], "cpu_time", b"nan")
        computers[1].ncpus += 1
        messages = [spoilt, *[computer.request(time.time()) for computer in computers[1:]]]
        return list(loop.run_together([asked(message, now) for message in messages]))

    with Loop() as loop:
        for _ in range(3):
            reports(loop)  # makes the connections, reads the projects, prepares the statements
        sent: list[str] = []
        with ExitStack() as stack:
            for lane in (loop.batcher._reads, loop.batcher._writes):
                (kept,) = lane._kept
                stack.enter_context(traced(kept.connection.pgconn, sent))
            replies = reports(loop)
    assert not [reply for reply in replies if not isinstance(reply, bytes) or b"<error_num>" in reply]
    # A read and a write for all five, of whom one has a note, one new hardware and one tasks; no BEGIN and no COMMIT.
    assert sum(count(text) for text in sent) == 2
    # Both are prepared: nothing is planned again.
    assert not [text for text in sent if "\tParse\t" in text]
    assert kinds_noted(computers[0])
