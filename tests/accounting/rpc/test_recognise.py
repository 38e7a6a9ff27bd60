"""Computers that look alike, and clients that report with one id: each is credited once, in the right record."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F

from accounting.computers.merge import merge
from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import HostClient, HostProject, Project
from accounting.rpc.recognise import FORGOTTEN_AFTER, MAX_CLIENTS, forget_old, split
from portal.computers.identify import SAME_NAME_AFTER
from portal.models import Host, User
from portal.wire.credentials import client_password_hash
from tests.support.am_machines import ONE, OTHER, THIRD, Machine, clone_of, jobs_of, machine
from tests.support.am_rpc import (
    HOUR,
    START,
    answer,
    call,
    credited,
    hours_credited,
    kinds_noted,
    post,
    row_of,
)
from tests.support.cases import FOLDER


def test_two_clients_with_one_name_and_different_ids_are_two_computers(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    pair = [machine(alice, ONE), machine(alice, OTHER)]
    for each in pair:
        each.report(START)
    # Not by its name, as the first one has just reported.
    assert pair[0].host != pair[1].host
    # 20 jobs and 21 jobs, by turns, of which 14 were credited to the one record that they had
    for hour in range(1, 21):
        for number, each in enumerate(pair):
            each.did(alpha, 0.5, 1 + (number == 1 and hour == 20))
            each.report(START + hour * HOUR + number * HOUR / 2)
    assert pair[0].host != pair[1].host
    assert jobs_of(*pair) == 41
    assert [hours_credited(each.computer, alpha) for each in pair] == [10, 10]
    assert [kinds_noted(each.computer) for each in pair] == [[], []]


class TestOneIdAndTwoNames:
    """A copied disk gives two computers one id; a computer that is renamed keeps it."""

    def first_contact(self, alice: User, case: str, old: str = "", new: str = "") -> Host:
        login = {
            "@LOGIN@": alice.email,
            "@HASH@": client_password_hash("alice's secret", alice.email),
            old or "\0": new,
        }
        text = (FOLDER / f"{case}.xml").read_text()
        for mark, value in login.items():
            text = text.replace(mark, value)
        reply = post(text.encode())
        assert reply.error == (0, "")
        return Host.objects.get(token=reply.text("opaque/host"))

    def test_are_two_computers(self, alice: User, projects: list[Project]) -> None:
        kitchen = self.first_contact(alice, "same-cpid-kitchen")
        studio = self.first_contact(alice, "same-cpid-studio")
        assert kitchen != studio
        # Attached again, each is the one that it was.
        assert self.first_contact(alice, "same-cpid-kitchen") == kitchen
        assert self.first_contact(alice, "same-cpid-studio") == studio

    def test_are_one_that_was_renamed_if_it_had_this_id_at_its_last_contact(
        self, alice: User, projects: list[Project]
    ) -> None:
        kitchen = self.first_contact(alice, "same-cpid-kitchen")
        cpid = f"<previous_host_cpid>{kitchen.host_cpid}</previous_host_cpid>"
        assert self.first_contact(alice, "same-cpid-studio", "<client_version>", f"{cpid}<client_version>") == kitchen

    @pytest.mark.parametrize(("number", "is_same"), [(4711, True), (4712, False)])
    def test_are_one_that_was_renamed_if_it_has_its_number_at_a_project(
        self, number: int, is_same: bool, alice: User, projects: list[Project]
    ) -> None:
        kitchen = self.first_contact(alice, "same-cpid-kitchen")
        HostProject.objects.filter(host=kitchen, project=projects[0]).update(state={"hostid": 4711})
        listed = f"<project><url>{projects[0].master_url}</url><hostid>{number}</hostid></project>"
        studio = self.first_contact(alice, "same-cpid-studio", "<host_info>", f"{listed}<host_info>")
        assert (studio == kitchen) is is_same


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


@pytest.mark.parametrize("has_new_cpid", [True, False])
def test_a_late_duplicate_from_before_a_change_of_id_splits_nobody(
    has_new_cpid: bool, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 2, 2)
    early = one.computer.request((START + HOUR).timestamp())
    one.report(START + HOUR)
    if not has_new_cpid:
        one.computer.projects[alpha.master_url].hostid = 2
    one.did(alpha, 1, 1)
    one.report(START + HOUR * 1.5, cpid=OTHER if has_new_cpid else ONE)
    # It comes through a slow proxy a second time, and is answered.
    before = one.host
    assert answer(early, START + HOUR * 1.75).error[0] == 0
    assert one.host == before
    for hour in (2, 3):
        one.did(alpha, 1, 1)
        one.report(START + hour * HOUR)
    assert Host.objects.count() == 1
    assert hours_credited(one.computer, alpha) == jobs_of(one) == 5
    assert kinds_noted(one.computer) == []


def test_a_number_that_comes_back_to_a_single_client_with_a_new_attachment_counts_nothing_twice(
    alice: User, projects: list[Project]
) -> None:
    """It was attached under one account of the project, under another one, and under the first again."""
    alpha = projects[0]
    one = machine(alice, ONE, version="8.3.1")
    one.report(START)
    record = one.host
    for hour, number in ((1, 1), (3, 2), (5, 1), (7, 2)):
        # Since 8.3 it goes on from what the reply hands back.
        one.computer.projects[alpha.master_url].hostid = number
        one.did(alpha, 2, 2)
        one.report(START + hour * HOUR)
        del one.computer.projects[alpha.master_url]
        one.report(START + (hour + 1) * HOUR)
    assert one.host == record
    assert hours_credited(one.computer, alpha) == jobs_of(one) == 8
    assert Host.objects.count() == 1


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


def test_each_client_goes_on_with_its_own_totals_from_before_a_reset(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]

    def hours_before_resets(each: Machine) -> list[int]:
        return [int(totals[2]) // (3600 * MICRO) for totals in row_of(each.computer, alpha).earlier]

    def is_reset(each: Machine, now: dt.datetime) -> None:
        each.computer.projects[alpha.master_url].totals = [0] * 6
        each.report(now)

    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 8, 8)
    one.report(START + 4 * HOUR)
    is_reset(one, START + 5 * HOUR)
    clone = clone_of(one, OTHER)
    clone.did(alpha, 3, 3)
    clone.report(START + 6 * HOUR)
    is_reset(clone, START + 7 * HOUR)
    assert hours_before_resets(one) == [3, 8]
    one.report(START + 8 * HOUR)
    assert hours_before_resets(one) == [8]
    # Which of them are its own nobody knows.
    clone.report(START + 9 * HOUR)
    assert hours_before_resets(clone) == []


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
