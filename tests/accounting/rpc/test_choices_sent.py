"""What an owner chose on the pages, as the computer's client hears it at its next contact."""

from __future__ import annotations

import time

from accounting.models import Project
from portal.computers.host_changes import rename_host, retire_host, set_venue
from portal.models import Host, User
from portal.people.accounts import revoke_all_client_keys
from portal.wire.boinc_errors import ERR_BAD_AUTHENTICATOR
from tests.support.am_rpc import HOUR, START, attach, call, host_of, make_computer, post, sync, work
from tools.simulation.client import SimulatedComputer


def attached(owner: User) -> SimulatedComputer:
    """A computer that is attached to all projects."""
    computer = make_computer(owner)
    call(computer, START)
    call(computer, START + HOUR)
    return computer


def test_a_retired_computer_comes_back_by_itself_when_it_reports(alice: User, projects: list[Project]) -> None:
    computer = attached(alice)
    assert retire_host(host_of(computer), START + 2 * HOUR)
    work(computer, projects[0], 1)
    call(computer, START + 3 * HOUR)
    assert host_of(computer).retired_at is None


def test_a_given_name_and_a_venue_outlast_reports(alice: User, projects: list[Project]) -> None:
    computer = attached(alice)
    rename_host(host_of(computer), "Studio tower")
    set_venue(host_of(computer), "work")
    assert call(computer, START + 2 * HOUR).text("host_venue") == "work"
    assert host_of(computer).name == "Studio tower"


def test_a_revoked_key_shuts_the_client_out_until_it_attaches_again(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    assert sync(computer).error[0] == 0
    revoke_all_client_keys(alice)
    number, sentence = post(computer.request(time.time())).error
    assert number == ERR_BAD_AUTHENTICATOR and "password" in sentence
    computer.authenticator = ""
    assert sync(computer).error[0] == 0
    assert Host.objects.count() == 1
