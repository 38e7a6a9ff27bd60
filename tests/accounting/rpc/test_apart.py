"""Computers that look alike, and clients that report with one id: each is credited once, in the right record."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools

import pytest
from django.db.models import F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounting.computers.merge import merge
from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import HostClient, HostProject, Project
from accounting.rpc.apart import FORGOTTEN_AFTER, MAX_CLIENTS, forget_old, split
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

    def report(self, now: dt.datetime, cpid: str = "", *, is_lost: bool = False) -> None:
        self.computer.cpid = cpid or self.computer.cpid
        assert call(self.computer, now, is_lost=is_lost).error[0] == 0

    def stop_using(self) -> None:
        """“Stop using”: the client keeps its projects and totals, and forgets the site, its id and its key."""
        computer = self.computer
        computer.authenticator = computer.opaque = computer.previous_cpid = ""
        computer.dynamic = False
        for attached in computer.projects.values():
            attached.managed = False

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
    # 4 + 10 x 4 h and 10 x 2 h; 4 + 10 x 2 and 10 jobs. The clone's first 2 h were credited before it was known. They
    # are more than one computer can do in 11 h, so 2 h wait.
    assert hours_credited(one.computer, alpha) == 44
    one.report(START + 12 * HOUR)
    assert hours_credited(one.computer, alpha) == 44 + 2
    assert hours_credited(clone.computer, alpha) == 18
    assert jobs_of(one, clone) == 24 + 10
    assert kinds_noted(one.computer) == kinds_noted(clone.computer) == []
    assert list(check.differences()) == []


def test_clients_of_a_copied_folder_with_one_id_are_told_apart_by_their_number_at_a_project(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 4, 4)
    one.report(START + HOUR)
    record = one.host
    clone = clone_of(one, ONE)
    # The project has heard from the copy first, so it gives the other client a new number. That client is in the same
    # folder as before and on the same machine: its new id is its old one.
    one.computer.projects[alpha.master_url].hostid = 2
    for hour in range(2, 12):
        one.did(alpha, 4, 2)
        one.report(START + hour * HOUR)
        clone.did(alpha, 2, 1)
        clone.report(START + hour * HOUR + HOUR / 2)
    # The copy keeps the record, as it does at the project. 4 + 10 x 2 h and 4 + 10 jobs; 10 x 4 h and 10 x 2 jobs, of
    # which the first 4 h and 2 jobs came before the copy was known and are in its record.
    assert clone.host == record != one.host
    assert hours_credited(clone.computer, alpha) == 24 + 4
    assert hours_credited(one.computer, alpha) == 40 - 4
    assert (jobs_of(clone), jobs_of(one)) == (14 + 2, 20 - 2)
    assert kinds_noted(one.computer) == kinds_noted(clone.computer) == []
    assert list(check.differences()) == []


def test_three_clients_of_one_folder_get_three_records(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    record = one.host
    several = [one, clone_of(one, OTHER), clone_of(one, THIRD)]
    for hour in range(1, 9):
        for number, each in enumerate(several):
            each.did(alpha, 1, 1)
            each.report(START + hour * HOUR + number * dt.timedelta(minutes=9))
    assert len({each.host.pk for each in several}) == 3
    # Whoever was here first keeps the record.
    assert one.host == record
    # All but the first job of each copy: when it came, its totals were those that the first client had just reported.
    assert jobs_of(*several) == 3 * 8 - 2
    assert sum(hours_credited(each.computer, alpha) for each in several) == 3 * 8 - 2


def test_four_clients_of_two_people_are_booked_once_each_in_a_record_of_its_own(
    alice: User, bob: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    # Two on one machine, a copy of the first one's folder, and somebody else's on a machine that looks the same.
    one, beside, his = machine(alice, ONE), machine(alice, OTHER), machine(bob, "4" * 32)
    for each in (one, beside, his):
        each.report(START)
    four = [one, beside, his, clone_of(one, THIRD)]
    for hour in range(1, 13):
        for number, each in enumerate(four):
            each.did(alpha, 0.5, 1)
            each.report(START + hour * HOUR + number * dt.timedelta(minutes=7))
    assert len({each.host.pk for each in four}) == 4
    assert [each.host.owner for each in four] == [alice, alice, bob, alice]
    # The copy's first totals were those that the first client had just reported: they show no work.
    assert [jobs_of(each) for each in four] == [12, 12, 12, 12 - 1]
    assert [hours_credited(each.computer, alpha) for each in four] == [6, 6, 6, 6 - 0.5]
    assert list(check.differences()) == []


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
    assert [hours_credited(each.computer, alpha) for each in (one, other)] == [3 + 5 + 4, 2]


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


# Attached again


def test_work_around_stop_using_counts_when_the_client_attaches_again(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 2, 2)
    one.report(START + HOUR)
    one.did(alpha, 3, 3)
    one.stop_using()
    # It sends no totals at first, as it does not know yet that it should.
    one.did(alpha, 1, 1)
    one.report(START + 3 * HOUR)
    one.did(alpha, 1, 1)
    one.report(START + 4 * HOUR)
    # 2 + 3 + 1 + 1 h. It was 2 h: what it reported next was taken for work from before.
    assert hours_credited(one.computer, alpha) == jobs_of(one) == 7
    assert kinds_noted(one.computer) == []


@pytest.mark.parametrize("is_proven", [False, True])
def test_totals_of_a_client_that_is_known_by_its_name_alone_are_where_it_starts(
    is_proven: bool, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 3, 3)
    one.report(START + HOUR)
    other = clone_of(one, OTHER)
    other.computer.opaque = other.computer.authenticator = ""
    other.computer.previous_cpid = ONE if is_proven else ""
    later = START + HOUR + SAME_NAME_AFTER + HOUR
    other.did(alpha, 500, 500)
    other.report(later)
    assert other.host == one.host
    other.did(alpha, 2, 2)
    other.report(later + HOUR)
    # 500 h in ten days fit into the allowance, but not even the folder needs to be a copy of the first client's.
    assert hours_credited(other.computer, alpha) == jobs_of(other) == 3 + (500 if is_proven else 0) + 2
    assert kinds_noted(other.computer) == ([] if is_proven else ["baseline"])


def test_a_client_known_by_its_name_alone_that_sends_no_totals_at_first_starts_from_those_it_sends_next(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    other = clone_of(one, OTHER)
    other.stop_using()
    other.did(alpha, 500, 500)
    later = START + SAME_NAME_AFTER + HOUR
    other.report(later)
    other.report(later + HOUR)
    other.did(alpha, 2, 2)
    other.report(later + 2 * HOUR)
    assert other.host == one.host
    assert hours_credited(other.computer, alpha) == jobs_of(other) == 2


def test_a_client_that_attaches_again_after_another_one_took_its_place_goes_on(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, other = machine(alice, ONE), machine(alice, OTHER)
    one.report(START)
    one.did(alpha, 3, 3)
    one.report(START + HOUR)
    record = one.host
    later = START + HOUR + SAME_NAME_AFTER + HOUR
    other.report(later)
    assert other.host == record
    one.stop_using()
    one.did(alpha, 5, 5)
    one.report(later + HOUR)
    one.did(alpha, 1, 1)
    one.report(later + 2 * HOUR)
    assert one.host == record
    assert hours_credited(one.computer, alpha) == jobs_of(one) == 3 + 5 + 1


def told_apart(alice: User, alpha: Project) -> tuple[Machine, Machine]:
    """A client, and a copy of its folder that will get a record of its own at its next report."""
    one = machine(alice, ONE)
    one.report(START)
    clone = clone_of(one, OTHER)
    for each in (clone, one):
        each.did(alpha, 1, 1)
        each.report(START + HOUR)
    return one, clone


def test_a_client_that_was_told_apart_and_attaches_again_before_its_first_report_goes_on(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, clone = told_apart(alice, alpha)
    clone.stop_using()
    clone.did(alpha, 2, 2)
    clone.report(START + 3 * HOUR)
    clone.did(alpha, 1, 1)
    clone.report(START + 4 * HOUR)
    assert Host.objects.count() == 2
    assert clone.host != one.host
    assert hours_credited(clone.computer, alpha) == 3


def test_a_client_that_was_told_apart_is_known_by_the_id_that_it_had_before(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, clone = told_apart(alice, alpha)
    clone.did(alpha, 2, 2)
    clone.report(START + 3 * HOUR, cpid=THIRD)
    assert clone.host != one.host
    assert hours_credited(clone.computer, alpha) == 2
    assert Host.objects.count() == 2


def test_a_newcomer_whose_id_changes_and_that_gets_no_reply_has_one_record(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, clone = told_apart(alice, alpha)
    for hour in range(3, 11):
        clone.did(alpha, 1, 1)
        clone.report(START + hour * HOUR, cpid=THIRD if hour % 2 else OTHER, is_lost=True)
        one.report(START + hour * HOUR + HOUR / 2)
    assert Host.objects.count() == 2
    record = Host.objects.exclude(pk=one.host.pk).get()
    assert HostProject.objects.get(host=record, project=alpha).credited[2] == 8 * 3600 * MICRO


def test_a_client_that_was_told_apart_goes_on_when_the_record_that_it_left_was_merged(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, clone = told_apart(alice, alpha)
    again = machine(alice, THIRD)
    again.report(START + 2 * HOUR)
    merge(alice.pk, one.host.pk, again.host.pk)
    clone.did(alpha, 2, 2)
    clone.report(START + 3 * HOUR)
    assert clone.host not in (one.host, again.host)
    assert hours_credited(clone.computer, alpha) == 2
    assert list(check.differences()) == []


def test_a_record_that_is_merged_with_the_one_that_it_left_is_one_computer_again(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one, clone = told_apart(alice, alpha)
    clone.report(START + 2 * HOUR)
    merge(alice.pk, one.host.pk, clone.host.pk)
    assert not HostClient.objects.filter(record__isnull=False).exists()
    clone.did(alpha, 1, 1)
    clone.report(START + 3 * HOUR)
    assert Host.objects.filter(merged_into=None).get() == clone.host


# What a record may be credited, and what is remembered


def test_clients_that_report_as_one_computer_share_its_allowance(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    now = START + 24 * HOUR
    for number in range(10):
        other = clone_of(one, f"{number + 2:032x}")
        for each in (other, one):
            each.did(alpha, 96, 1)
            each.report(now, is_lost=each is other)
            now += HOUR / 60
    # Four processors in a day and 20 minutes. It was 192 h, and more with more ids.
    assert 96 < hours_credited(one.computer, alpha) <= 4 * (24 + 20 / 60)
    assert list(check.differences()) == []


def test_old_totals_are_judged_by_the_time_since_the_clients_own_last_report(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 40, 4)
    one.report(START + 10 * HOUR)
    row = one.computer.projects[alpha.master_url]
    row.totals = [0] * 6
    one.report(START + 11 * HOUR)
    clone = clone_of(one, OTHER)
    clone.report(START + 15 * HOUR)
    one.did(alpha, 16, 1)
    one.report(START + 15 * HOUR + HOUR / 60)
    # 16 h in the 4 h since its own last report, though the record's was a minute ago. None of them are old ones.
    assert hours_credited(one.computer, alpha) == 56
    assert kinds_noted(one.computer) == ["reset"]


def test_a_computer_remembers_a_few_ids_only(alice: User, projects: list[Project]) -> None:
    one = machine(alice, ONE)
    for number in range(MAX_CLIENTS + 5):
        one.report(START + number * HOUR, cpid=f"{number:032x}")
    ids = set(HostClient.objects.values_list("cpid", flat=True))
    # All but the present one, the newest of them
    assert ids == {f"{number:032x}" for number in range(4, MAX_CLIENTS + 4)}


def test_ids_that_were_seen_long_ago_are_forgotten_each_night(alice: User, projects: list[Project]) -> None:
    one, _ = told_apart(alice, projects[0])
    other = machine(alice, THIRD)
    other.report(START)
    other.report(START + HOUR, cpid="4" * 32)
    HostClient.objects.exclude(cpid=OTHER).update(seen_at=F("seen_at") - HOUR * 24)
    assert set(HostClient.objects.values_list("cpid", flat=True)) == {ONE, OTHER, THIRD}
    newest = HostClient.objects.get(host=one.host, cpid=OTHER).seen_at
    assert forget_old(newest + FORGOTTEN_AFTER) == 1
    # The present client's row stays as long as another's does: it says who came first.
    assert set(HostClient.objects.values_list("cpid", flat=True)) == {ONE, OTHER}
    assert forget_old(newest + FORGOTTEN_AFTER + HOUR) == 2


# Real copies: they have one id until a project finds them


@pytest.mark.parametrize(("is_copy_last", "hours"), [(False, 14), (True, 15)])
def test_copies_with_one_id_count_the_higher_totals_and_are_told_apart_by_the_next_id(
    is_copy_last: bool, hours: int, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 4, 4)
    one.report(START + HOUR)
    clone = clone_of(one, ONE)
    for hour in range(2, 6):
        one.did(alpha, 2, 2)
        clone.did(alpha, 1, 1)
        clone.report(START + hour * HOUR - HOUR / 2)
        one.report(START + hour * HOUR)
    # Up to here they are one client whose totals fall and return: 12 h, the higher ones. The copy's 4 h are below.
    assert hours_credited(one.computer, alpha) == 12
    if is_copy_last:
        clone.report(START + 6 * HOUR)
    # A project gives the copy another id, and the first client reports again.
    clone.did(alpha, 1, 1)
    clone.report(START + 7 * HOUR, cpid=OTHER)
    one.did(alpha, 2, 2)
    one.report(START + 8 * HOUR)
    clone.did(alpha, 1, 1)
    clone.report(START + 9 * HOUR)
    assert clone.host != one.host
    # 12 + 2 h, and the copy's fifth hour if the record went on from the copy's totals; each goes on from its own.
    assert hours_credited(one.computer, alpha) == hours
    assert hours_credited(clone.computer, alpha) == 1
    for hour in range(10, 14):
        for each in (one, clone):
            each.did(alpha, 1, 1)
            each.report(START + hour * HOUR)
    assert [hours_credited(each.computer, alpha) for each in (one, clone)] == [hours + 4, 1 + 4]
    assert list(check.differences()) == []


# Whatever the order of the reports

_volunteers = itertools.count(1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.booleans()), min_size=4, max_size=12))
# No reply reaches them. The first copy says at its second report that it had the first client's id before, as then.
@example(sequence=[(1, 5, True), (2, 0, True), (0, 0, True), (1, 1, True)])
def test_several_clients_of_one_folder_are_never_booked_twice(
    sequence: list[tuple[int, int, bool]], projects: list[Project]
) -> None:
    alpha = projects[0]
    name = f"Copier{next(_volunteers)}"
    user = User.objects.create_user(f"{name}@example.org", f"{name.lower()}'s secret", name=name)
    one = machine(user, ONE)
    one.report(START)
    several = [one, clone_of(one, OTHER), clone_of(one, THIRD)]
    for number, (who, hours, is_lost) in enumerate(sequence, 1):
        several[who].did(alpha, hours, hours)
        several[who].report(START + number * HOUR, is_lost=is_lost)
    credited_jobs = sum(sum(row.credited[4:]) for row in HostProject.objects.filter(host__owner=user))
    assert credited_jobs <= sum(hours for _, hours, _ in sequence)
    # The record never gets more than its four processors can do.
    (record,) = HostProject.objects.filter(host=one.host, project=alpha)
    assert record.credited[2] <= 4 * len(sequence) * 3600 * MICRO
    assert list(check.differences()) == []
