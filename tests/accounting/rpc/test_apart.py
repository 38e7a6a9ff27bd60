"""Computers that look alike, and clients that report with one id: each is credited once, in the right record."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest

from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import HostClient, HostProject, Project
from accounting.rpc.apart import split
from accounting.simulation.client import SimulatedComputer
from portal.computers.identify import SAME_NAME_AFTER
from portal.models import Host, User
from tests.support.am_rpc import (
    HOUR,
    START,
    call,
    copy_of,
    credited,
    host_of,
    hours_credited,
    kinds_noted,
    make_computer,
    work,
)

ONE, OTHER, THIRD = "1" * 32, "2" * 32, "3" * 32


@dataclasses.dataclass
class Machine:
    """A client that says at each report which id it had at the one before, as BOINC does."""

    computer: SimulatedComputer

    def report(self, now: dt.datetime, cpid: str = "") -> None:
        before = self.computer.previous_cpid
        self.computer.cpid = cpid or self.computer.cpid
        assert call(self.computer, now).error[0] == 0
        assert before != "" or self.computer.previous_cpid

    def did(self, project: Project, hours: float, jobs: int = 0) -> None:
        work(self.computer, project, hours, jobs)

    @property
    def host(self) -> Host:
        return host_of(self.computer)


def machine(alice: User, cpid: str, **fields: object) -> Machine:
    return Machine(make_computer(alice, "node", cpid=cpid, **fields))


def clone_of(one: Machine, cpid: str) -> Machine:
    """Another machine with a copy of the folder; it starts under its own id."""
    return Machine(copy_of(one.computer, cpid=cpid))


def jobs_of(*machines: Machine) -> int:
    hosts = {each.host.pk for each in machines}
    return sum(sum(row.credited[4:]) for row in HostProject.objects.filter(host__in=hosts))


def test_two_clients_with_one_name_and_different_ids_are_two_computers(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    pair = [machine(alice, ONE), machine(alice, OTHER)]
    for each in pair:
        each.report(START)
    # 20 jobs and 21 jobs, by turns, of which 14 were credited to the one record that they had
    for hour in range(1, 21):
        for number, each in enumerate(pair):
            each.did(alpha, 0.5, 1 + (number == 1 and hour == 20))
            each.report(START + hour * HOUR + number * HOUR / 2)
    assert pair[0].host != pair[1].host
    assert jobs_of(*pair) == 41
    assert [hours_credited(each.computer, alpha) for each in pair] == [10, 10]
    assert [kinds_noted(each.computer) for each in pair] == [[], []]


def test_a_room_of_equal_machines_has_a_record_for_each(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    room = [machine(alice, f"{number:032x}") for number in range(1, 9)]
    for hour in range(4):
        for number, each in enumerate(room):
            if hour:
                each.did(alpha, 1, 1)
            each.report(START + hour * HOUR + number * dt.timedelta(minutes=1))
    assert len({each.host.pk for each in room}) == len(room)
    assert jobs_of(*room) == 3 * len(room)
    assert {hours_credited(each.computer, alpha) for each in room} == {3}


def test_a_client_that_was_installed_again_is_known_once_its_record_is_silent(
    alice: User, projects: list[Project]
) -> None:
    old = machine(alice, ONE)
    old.report(START)
    soon, late = machine(alice, OTHER), machine(alice, THIRD)
    soon.report(START + dt.timedelta(days=1))
    assert soon.host != old.host
    late.report(START + dt.timedelta(days=1) + SAME_NAME_AFTER + HOUR)
    assert late.host == soon.host


def test_both_clients_of_a_copied_folder_are_credited_once_each_in_its_own_record(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 4, 4)
    one.report(START + HOUR)
    clone = clone_of(one, OTHER)
    record = one.host
    for hour in range(2, 12):
        one.did(alpha, 4, 2)
        clone.did(alpha, 2, 1)
        clone.report(START + hour * HOUR - HOUR / 2)
        one.report(START + hour * HOUR)
    assert (one.host, clone.host) == (record, Host.objects.get(host_cpid=OTHER))
    assert one.host != clone.host
    # 4 + 10 x 4 h and 10 x 2 h; 4 + 10 x 2 and 10 jobs. The clone's first 2 h were credited before it was known.
    assert hours_credited(one.computer, alpha) == 44 + 2
    assert hours_credited(clone.computer, alpha) == 18
    assert jobs_of(one, clone) == 24 + 10
    assert kinds_noted(one.computer) == kinds_noted(clone.computer) == []
    assert list(check.differences()) == []


def test_three_clients_of_one_folder_get_three_records(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    several = [one, clone_of(one, OTHER), clone_of(one, THIRD)]
    for hour in range(1, 9):
        for number, each in enumerate(several):
            each.did(alpha, 1, 1)
            each.report(START + hour * HOUR + number * dt.timedelta(minutes=9))
    assert len({each.host.pk for each in several}) == 3
    # All but the first job of each copy: when it came, its totals were those that the first client had just reported.
    assert jobs_of(*several) == 3 * 8 - 2
    assert sum(hours_credited(each.computer, alpha) for each in several) == 3 * 8 - 2


def test_a_client_whose_id_changes_once_keeps_its_record(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    record = one.host
    for hour in range(1, 9):
        one.did(alpha, 2, 1)
        one.report(START + hour * HOUR, cpid=OTHER if hour > 3 else ONE)
    assert one.host == record
    assert hours_credited(one.computer, alpha) == 16
    assert Host.objects.count() == 1


def test_a_single_client_whose_id_changes_back_and_forth_keeps_its_record(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    for hour in range(1, 9):
        one.did(alpha, 2, 1)
        one.report(START + hour * HOUR, cpid=OTHER if hour % 2 else ONE)
    assert Host.objects.count() == 1
    assert hours_credited(one.computer, alpha) == 16


def test_a_client_that_was_taken_for_one_that_was_switched_off_is_told_apart_when_that_is_back(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, other = machine(alice, ONE), machine(alice, OTHER)
    one.report(START)
    one.did(alpha, 3, 3)
    one.report(START + HOUR)
    later = START + HOUR + SAME_NAME_AFTER + HOUR
    for hour in range(3):
        other.report(later + hour * HOUR)
        other.did(alpha, 2, 2)
    assert other.host == one.host
    # The first is back with 5 h that it did before it was switched off. The other one reports after it.
    one.did(alpha, 5, 5)
    one.report(later + 3 * HOUR)
    other.report(later + 4 * HOUR)
    assert other.host != one.host
    assert jobs_of(one, other) == 3 + 5 + 6
    assert hours_credited(one.computer, alpha) + hours_credited(other.computer, alpha) == 3 + 5 + 6


def test_the_owner_can_split_a_wrong_join(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    clone = clone_of(one, OTHER)
    one.did(alpha, 4, 1)
    one.report(START + HOUR)
    clone.did(alpha, 4, 1)
    clone.report(START + 2 * HOUR)
    record = clone.host
    assert split(alice.pk, record.pk, ONE, START + 2 * HOUR)
    assert not split(alice.pk, record.pk, ONE, START + 2 * HOUR)
    one.did(alpha, 4, 1)
    one.report(START + 3 * HOUR)
    assert one.host != record == clone.host
    assert credited(one.computer, alpha)[2] == 4 * 3600 * MICRO
    assert HostClient.objects.get().record == one.host


def test_nobody_else_can_split_a_computer(alice: User, bob: User, projects: list[Project]) -> None:
    one = machine(alice, ONE)
    one.report(START)
    one.report(START + HOUR, cpid=OTHER)
    assert not split(bob.pk, one.host.pk, ONE, START + HOUR)
    assert not HostClient.objects.filter(told_apart_at__isnull=False).exists()


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_client_that_was_told_apart_is_known_however_often_it_comes_with_the_old_id(
    is_lost: bool, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    clone = clone_of(one, OTHER)
    for hour in (1, 3):
        clone.report(START + hour * HOUR)
        one.report(START + (hour + 1) * HOUR)
    for hour in range(5, 9):
        clone.did(alpha, 1, 1)
        call(clone.computer, START + hour * HOUR, is_lost=is_lost)
    record = Host.objects.get(host_cpid=OTHER)
    assert Host.objects.count() == 2
    assert HostProject.objects.get(host=record, project=alpha).credited[2] == 4 * 3600 * MICRO
