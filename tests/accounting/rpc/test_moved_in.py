"""Clients of an account manager that moved in here, at their first contacts: they go on as if nothing had happened."""

from __future__ import annotations

import datetime as dt
import hashlib

import pytest

from accounting.engine.amounts import MICRO
from accounting.models import HostLedger, HostProject, Project
from portal.models import ClientKey, Host, SecurityEvent, User, WaitingMail
from portal.people.accounts import ClientAuthError, issue_client_key
from portal.wire.credentials import key_hash
from tests.support.am_rpc import FPOPS, HOUR, START, call, host_of, make_computer, token_of
from tools.simulation.client import Attachment, SimulatedComputer

NUMBER = 4711
STRONG = "0123456789abcdef0123456789abcdef"


def moved_in(owner: User, number: int, name: str, projects: list[Project]) -> Host:
    """A computer as the import leaves it: 2 h of run time reported at each project, nothing credited here."""
    host = Host.objects.create(
        owner=owner, former_number=number, domain_name=name, host_cpid=f"{name.encode().hex():0<32}"[:32],
        ncpus=4, p_fpops=FPOPS, created_at=START - 900 * HOUR, last_contact_at=START - 12 * HOUR,
    )  # fmt: skip
    HostLedger.objects.create(host=host, last_at=START - 12 * HOUR)
    # 2 h at 0.01 credits a second are 72 credits.
    reported = [72 * MICRO, 0, 7200 * MICRO, 0, 2, 1]
    for project in projects:
        HostProject.objects.create(host=host, project=project, reported=reported, listed=True)
    return host


@pytest.fixture
def key(alice: User) -> ClientKey:
    return ClientKey.objects.create(
        user=alice, origin="imported", key_hash=key_hash(STRONG), hint=STRONG[:6], created_at=START - 900 * HOUR
    )


def client_of(owner: User, number: int, name: str, projects: list[Project], key: str = STRONG) -> SimulatedComputer:
    """The client: it has worked an hour more for the first project since its last report."""
    computer = make_computer(owner, name, authenticator=key, opaque=f"<host_id>{number}</host_id>", dynamic=True)
    for project in projects:
        attachment = Attachment(project.master_url, project.name, f"7_key_of_{project.name.lower()}")
        attachment.work(computer, 7200, 0, (2, 1))
        computer.projects[project.master_url] = attachment
    computer.projects[projects[0].master_url].work(computer, 3600, 0, (1, 0))
    return computer


def test_the_first_report_after_the_move_is_credited_exactly(
    alice: User, key: ClientKey, projects: list[Project]
) -> None:
    host = moved_in(alice, NUMBER, "studio", projects)
    computer = client_of(alice, NUMBER, "studio", projects)
    reply = call(computer, START)
    assert host_of(computer) == host
    rows = {row.project: row.credited for row in HostProject.objects.filter(host=host)}
    # An hour, 36 credits and one job; nothing of the 2 h before
    assert rows == {
        project: [36 * MICRO, 0, 3600 * MICRO, 0, 1, 0] if project == projects[0] else [0] * 6 for project in projects
    }
    assert not WaitingMail.objects.exists() and not SecurityEvent.objects.exists()
    assert reply.error == (0, "") and reply.messages == []


def test_nothing_is_detached_at_the_first_contact_even_if_the_choice_is_another_one(
    alice: User, key: ClientKey, projects: list[Project]
) -> None:
    moved_in(alice, NUMBER, "studio", projects)
    Project.objects.filter(pk=projects[1].pk).update(is_active=False)
    computer = client_of(alice, NUMBER, "studio", projects)
    first = call(computer, START)
    assert set(first.accounts) == {project.master_url for project in projects}
    assert not any(account.findall("detach_when_done") for account in first.accounts.values())
    # From then on, as for every computer
    second = call(computer, START + HOUR)
    assert second.account(projects[1]).find("detach_when_done") is not None


def test_each_client_is_given_a_key_of_its_own_and_the_shared_one_goes_on(
    alice: User, key: ClientKey, projects: list[Project]
) -> None:
    hosts = [moved_in(alice, number, name, projects) for number, name in ((1, "one"), (2, "two"))]
    computers = [client_of(alice, host.former_number or 0, host.domain_name, projects) for host in hosts]
    keys = set()
    for computer in computers:
        call(computer, START)
        keys.add(computer.authenticator)
    assert len(keys - {STRONG}) == 2
    assert [ClientKey.objects.get(key_hash=key_hash(c.authenticator)).host for c in computers] == hosts
    key.refresh_from_db()
    assert (key.host, key.last_used_at, key.revoked_at) == (None, START, None)


def test_a_lost_reply_costs_nothing(alice: User, key: ClientKey, projects: list[Project]) -> None:
    host = moved_in(alice, NUMBER, "studio", projects)
    computer = client_of(alice, NUMBER, "studio", projects)
    call(computer, START, is_lost=True)
    call(computer, START + dt.timedelta(minutes=10))
    assert (Host.objects.count(), token_of(computer)) == (1, host.token)
    # An hour once
    assert HostProject.objects.get(host=host, project=projects[0]).credited[2] == 3600 * MICRO


def test_the_weak_key_does_as_well(alice: User, projects: list[Project]) -> None:
    weak = f"{alice.pk}_{hashlib.md5(b'weak', usedforsecurity=False).hexdigest()}"
    ClientKey.objects.create(user=alice, origin="imported", key_hash=key_hash(weak), hint=weak[:6])
    host = moved_in(alice, NUMBER, "studio", projects)
    computer = client_of(alice, NUMBER, "studio", projects, weak)
    call(computer, START)
    assert host_of(computer) == host and "_" not in computer.authenticator


def test_a_number_leads_to_computers_of_the_same_owner_only(
    alice: User, bob: User, key: ClientKey, projects: list[Project]
) -> None:
    other = moved_in(bob, NUMBER, "studio", projects)
    computer = client_of(alice, NUMBER, "studio", projects)
    call(computer, START)
    assert host_of(computer).owner == alice
    assert HostProject.objects.get(host=other, project=projects[0]).credited == [0] * 6


def test_look_ups_do_not_end_the_shared_key(alice: User, key: ClientKey) -> None:
    for _ in range(30):
        issue_client_key(alice, ClientKey.Origin.LOOKUP)
    key.refresh_from_db()
    assert key.revoked_at is None


def test_a_key_of_a_blocked_account_is_refused(alice: User, key: ClientKey, projects: list[Project]) -> None:
    moved_in(alice, NUMBER, "studio", projects)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    with pytest.raises(ClientAuthError):
        call(client_of(alice, NUMBER, "studio", projects), START)
