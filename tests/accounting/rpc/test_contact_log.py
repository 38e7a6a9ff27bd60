"""What a computer was answered is kept, once for answers alike, and only the latest are."""

from __future__ import annotations

import time

import pytest

from accounting.models import Answer, HostLedger, HostProject, Project
from accounting.rpc.contact_log import MAX_ANSWERS, NOTHING_ANSWERED, LastAnswer
from portal.models import User
from tests.support.am_rpc import attach, host_of, hours_pass, make_computer, post, sync
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db


def test_the_first_answer_is_new_and_the_same_again_is_counted() -> None:
    first, is_new = NOTHING_ANSWERED.then('{"delay_secs":60}')
    assert (first.logged, first.same, is_new) == (1, 1, True)
    second, is_new = first.then('{"delay_secs":60}')
    assert second == LastAnswer(first.digest, 1, 2)
    assert not is_new
    third, is_new = second.then('{"delay_secs":61}')
    assert (third.logged, third.same, is_new) == (2, 1, True)


def test_the_ring_of_answers_comes_round() -> None:
    answered = NOTHING_ANSWERED
    slots = []
    for number in range(MAX_ANSWERS + 1):
        answered, _ = answered.then(str(number))
        slots.append(answered.slot)
    assert sorted(slots[:MAX_ANSWERS]) == list(range(MAX_ANSWERS))
    assert slots[MAX_ANSWERS] == slots[0]


def test_an_attach_and_its_first_report_are_two_answers(alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    reply = sync(computer)
    (answer,) = Answer.objects.all()
    assert {entry["project"]: entry["order"] for entry in answer.content["accounts"]} == dict.fromkeys(
        (project.pk for project in projects if project.master_url in reply.accounts), "attach"
    )
    assert answer.content["delay_secs"] == reply.repeat_secs
    assert answer.content["cpid"] == computer.cpid
    hours_pass(computer, 10)
    sync(computer)
    latest = Answer.objects.get(host=host_of(computer), slot=2)
    assert {entry["order"] for entry in latest.content["accounts"]} == {"keep"}
    assert (latest.before_times, latest.before_last_at is not None) == (1, True)


def test_answers_alike_are_one_row_and_a_count(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    for _ in range(4):
        hours_pass(computer, 10)
        sync(computer)
    # One at the attach, one for the four contacts with everything in place.
    assert Answer.objects.count() == 2
    assert HostLedger.objects.get(host=host_of(computer)).same_answers == 4


def test_an_owners_wish_is_in_the_answer_that_carries_it(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    sync(computer)
    HostProject.objects.filter(project=projects[0]).update(no_new_work=True, suspended=True, update_asked=True)
    sync(computer)
    ledger = HostLedger.objects.get(host=host_of(computer))
    accounts = Answer.objects.get(slot=ledger.answers_logged % MAX_ANSWERS).content["accounts"]
    (entry,) = [entry for entry in accounts if entry["project"] == projects[0].pk]
    assert (entry["no_new_work"], entry["suspend"], entry["update"]) == (True, True, True)


def test_what_the_client_met_stands_with_the_answer(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    message = computer.request(time.time()).replace(
        f"<url>{projects[0].master_url}</url>".encode(),
        f"<url>{projects[0].master_url}</url><sched_req_no_work>CPU</sched_req_no_work>".encode(),
    )
    post(message)
    ledger = HostLedger.objects.get(host=host_of(computer))
    accounts = Answer.objects.get(slot=ledger.answers_logged % MAX_ANSWERS).content["accounts"]
    assert [entry["met"] for entry in accounts if entry["project"] == projects[0].pk] == [[["no_work", "CPU"]]]


def test_a_computer_keeps_at_most_fifty_answers(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    for number in range(MAX_ANSWERS + 5):
        HostProject.objects.filter(project=projects[0]).update(no_new_work=bool(number % 2))
        sync(computer)
    assert Answer.objects.count() == MAX_ANSWERS


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_differs_costs_no_statement_more(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    for wanted in (True, False, True):
        HostProject.objects.filter(project=projects[0]).update(no_new_work=wanted)
        sync(computer)
    HostProject.objects.filter(project=projects[0]).update(no_new_work=False)
    assert statements(lambda: sync(computer)) == 2
