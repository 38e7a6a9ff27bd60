"""The list of a computer's last contacts on its page."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace

import pytest
from django.db.models import F
from django.test import Client
from django.utils import translation
from pytest_django import Settings

from accounting.computers.contacts import are_two_clients, read_contacts
from accounting.computers.merge import merge
from accounting.models import Answer, HostLedger, HostProject, Project
from accounting.rpc import catalogue
from portal.models import Host, User
from tests.support.am_rpc import attach, host_of, hours_pass, post, sync
from tests.support.page_reader import page_of
from tools.benchmarks.harness.statements import statements
from tools.simulation.client import SimulatedComputer

pytestmark = pytest.mark.django_db


def lines_of(computer: SimulatedComputer, projects: list[Project]) -> list[tuple[int, list[str], list[str]]]:
    """Times, orders and what was said, of the newest answer first."""
    host = host_of(computer)
    contacts = read_contacts(host, {project.pk: project for project in projects})
    return [(line.times, line.orders, line.said) for line in contacts.lines]


def test_an_attach_is_followed_by_going_on(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    for _ in range(3):
        hours_pass(computer, 10)
        sync(computer)
    ((again, kept, _), (first, attached, _)) = lines_of(computer, projects)
    assert (again, first) == (3, 1)
    assert len(kept) == len(attached) == 1
    assert kept[0].startswith("Continue with ") and attached[0] == kept[0].replace("Continue with", "Attach")
    assert {"Alpha", "Beta", "Gamma"} == set(kept[0].removeprefix("Continue with ").replace(" and ", ", ").split(", "))


def test_wishes_and_detaching_are_told_in_words(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    sync(computer)
    alpha, beta, gamma = projects
    HostProject.objects.filter(project=alpha).update(excluded=True)
    HostProject.objects.filter(project=beta).update(suspended=True, no_new_work=True, update_asked=True)
    HostProject.objects.filter(project=gamma).update(no_rsc=["NVIDIA"])
    sync(computer)
    orders = lines_of(computer, projects)[0][1]
    assert "Detach Alpha when its tasks are finished" in orders
    assert {"Suspend Beta", "No new tasks from Beta", "Contact Beta now"} <= set(orders)
    assert "Do not use the NVIDIA GPU for Gamma" in orders


def test_messages_to_the_client_are_in_the_readers_language(
    alice: User, projects: list[Project], settings: Settings
) -> None:
    settings.CONFIRMED_EMAIL_FOR_PROJECTS = True
    waiting = attach(alice)
    settings.CONFIRMED_EMAIL_FOR_PROJECTS = False
    Project.objects.update(is_active=False)
    catalogue.forget()
    idle = attach(alice, "attic")
    for computer, beginning in ((waiting, "Dieser Computer bekommt Projekte,"), (idle, "Für diesen Computer gibt es")):
        with translation.override("de"):
            newest = read_contacts(host_of(computer), {}).lines[0]
        assert [message.startswith(beginning) for message in newest.messages] == [True]


def test_what_a_client_met_is_told_beside(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    url = f"<url>{projects[0].master_url}</url>".encode()
    met = url + b"<sched_req_no_work>{names}</sched_req_no_work><nrpc_failures>5</nrpc_failures>"
    message = computer.request(time.time()).replace(b"<nrpc_failures>0</nrpc_failures>", b"").replace(url, met)
    post(message)
    assert set(lines_of(computer, projects)[0][2]) == {"No work for the {names} at Alpha", "Requests to Alpha fail"}


def test_a_project_that_is_gone_is_still_named(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    assert "(deleted)" in lines_of(computer, [])[0][1][0]


@pytest.mark.parametrize(
    ("ids", "several"),
    [("", False), ("a", False), ("aaa", False), ("ab", False), ("aabbcc", False), ("aba", True), ("abcb", True)],
)
def test_an_id_that_comes_back_is_another_machines(ids: str, several: bool) -> None:
    assert are_two_clients(list(ids)) is several


def test_an_empty_id_says_nothing() -> None:
    assert not are_two_clients(["a", "", "a", ""])


def test_two_machines_that_report_as_one_are_told_of(client: Client, alice: User, projects: list[Project]) -> None:
    """The same name, processor and system, attached with the same account: recognised as one computer."""
    one = attach(alice, "node")
    other = attach(alice, "node")
    other.cpid = "f" * 32
    for computer in (one, other, one):
        hours_pass(computer, 10)
        sync(computer)
    assert host_of(one) == host_of(other)
    client.force_login(alice)
    page = page_of(client, f"/computers/{host_of(one).pk}/").words
    assert "Two computers seem to be reporting as this one" in page


def test_one_client_that_got_a_new_id_is_one_machine(client: Client, alice: User, projects: list[Project]) -> None:
    computer = attach(alice, "node")
    hours_pass(computer, 10)
    sync(computer)
    computer = replace(computer, cpid="f" * 32)
    for _ in range(2):
        hours_pass(computer, 10)
        sync(computer)
    client.force_login(alice)
    page = page_of(client, f"/computers/{host_of(computer).pk}/").words
    assert "Recent syncs" in page and "Two computers" not in page


def test_contacts_of_a_merged_record_are_listed_on_the_one_that_stays(alice: User, projects: list[Project]) -> None:
    old = attach(alice, "node")
    host = host_of(old)
    # The old record came to its end a day before BOINC was reinstalled.
    a_day = dt.timedelta(days=1)
    Host.objects.filter(pk=host.pk).update(
        created_at=F("created_at") - a_day, last_contact_at=F("last_contact_at") - a_day, domain_name="node-old"
    )
    HostLedger.objects.filter(host=host).update(last_at=F("last_at") - a_day)
    Answer.objects.filter(host=host).update(at=F("at") - a_day)
    new = attach(alice, "node", cpid="e" * 32)
    assert host_of(new) != host
    stays = merge(alice.pk, host.pk, host_of(new).pk)
    lines = read_contacts(stays, {project.pk: project for project in projects}).lines
    assert [line.orders[0].split()[0] for line in lines] == ["Attach", "Attach"]
    assert lines[0].last_at - lines[1].last_at >= a_day


def test_the_page_costs_the_same_whatever_there_is_to_tell(
    client: Client, alice: User, projects: list[Project]
) -> None:
    computer = attach(alice)
    client.force_login(alice)

    address = f"/computers/{host_of(computer).pk}/"
    before = statements(lambda: client.get(address))
    for wanted in (True, False) * 10:
        HostProject.objects.filter(project=projects[0]).update(no_new_work=wanted)
        sync(computer)
    assert Answer.objects.count() > 20
    assert statements(lambda: client.get(address)) == before
