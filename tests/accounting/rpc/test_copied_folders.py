"""Copies of one client's folder: what each of them reports is booked once, in the right record."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import HostProject, Project
from portal.models import Host, User
from tests.support.am_machines import ONE, OTHER, THIRD, clone_of, jobs_of, machine
from tests.support.am_rpc import (
    HOUR,
    START,
    hours_credited,
    kinds_noted,
)


# The first client works 4 h and 2 jobs in each of ten hours, after 4 h and 4 jobs in the first one; its copy 2 h and 1
# job. The four processors of a record can do 4 h in an hour. What came before the copy was told apart is in the record
# that both had.
@pytest.mark.parametrize(
    ("copy_id", "number", "copy_minutes", "is_copy_the_older", "hours", "waiting", "jobs"),
    [
        # 4 + 10 x 4 h and 10 x 2 h: 2 h of the copy are in the other record, and more than that can do in 11 h; jobs
        # 4 + 10 x 2 and 10, of which one is there.
        pytest.param(
            OTHER, 1, -30, False, (44, 18), 2, (24 + 1, 10 - 1), id="the copy made an id and the first client kept its"
        ),
        # The project has heard from the copy first, so it gave the other a new number. That client is in the same
        # folder as before and on the same machine: its new id is its old one. The copy keeps the record, as it does at
        # the project: 4 + 10 x 2 h and 4 + 10 jobs, and the 4 h and 2 jobs that came first; the rest of 10 x 4 h and
        # 10 x 2 jobs is the other's.
        pytest.param(
            ONE, 2, 30, True, (40 - 4, 24 + 4), 0, (20 - 2, 14 + 2), id="both have one id and the project a new number"
        ),
    ],
)
def test_both_clients_of_a_copied_folder_are_credited_once_each_in_its_own_record(
    copy_id: str,
    number: int,
    copy_minutes: int,
    is_copy_the_older: bool,
    hours: tuple[float, float],
    waiting: int,
    jobs: tuple[int, int],
    alice: User,
    projects: list[Project],
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 4, 4)
    one.report(START + HOUR)
    record, clone = one.host, clone_of(one, copy_id)
    one.computer.projects[alpha.master_url].hostid = number
    for hour in range(2, 12):
        one.did(alpha, 4, 2)
        clone.did(alpha, 2, 1)
        for minutes, client in sorted(((0, one), (copy_minutes, clone)), key=lambda turn: turn[0]):
            client.report(START + hour * HOUR + minutes * HOUR / 60)
    keeps, gets_another = (clone, one) if is_copy_the_older else (one, clone)
    assert keeps.host == record != gets_another.host
    assert (hours_credited(one.computer, alpha), hours_credited(clone.computer, alpha)) == hours
    assert (jobs_of(one), jobs_of(clone)) == jobs
    one.report(START + 12 * HOUR)
    assert hours_credited(one.computer, alpha) == hours[0] + waiting
    assert kinds_noted(one.computer) == kinds_noted(clone.computer) == []
    assert list(check.differences()) == []


@pytest.mark.parametrize(
    ("clients", "hours"),
    [
        (["hers", "a copy", "a copy"], 8),
        # Two on one machine, a copy of the first one's folder, and somebody else's on a machine that looks the same.
        (["hers", "hers", "his", "a copy"], 12),
        (["hers", *["a copy"] * 29], 2),
    ],
    ids=["three of one folder", "four of two people", "a room of copies"],
)
def test_clients_that_look_the_same_are_booked_once_each_in_a_record_of_its_own(
    clients: list[str], hours: int, alice: User, bob: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    User.objects.filter(pk=alice.pk).update(new_hosts_per_day=100)
    originals = {
        number: machine(bob if whose == "his" else alice, f"{number:032x}")
        for number, whose in enumerate(clients, 1)
        if whose != "a copy"
    }
    for original in originals.values():
        original.report(START)
    record = originals[1].host
    several = [
        originals.get(number) or clone_of(originals[1], f"{number:032x}") for number in range(1, len(clients) + 1)
    ]
    for hour in range(1, hours + 1):
        for number, client in enumerate(several):
            client.did(alpha, 0.5, 1)
            client.report(START + hour * HOUR + number * HOUR / len(clients))
    assert len({client.host.pk for client in several}) == Host.objects.count() == len(clients)
    # The client that was here first keeps the record.
    assert several[0].host == record
    assert [client.host.owner for client in several] == [bob if whose == "his" else alice for whose in clients]
    # All but the first job of each copy: when it came, its totals were those that the first client had just reported.
    expected = [hours - (whose == "a copy") for whose in clients]
    assert [jobs_of(client) for client in several] == expected
    assert [hours_credited(client.computer, alpha) for client in several] == [0.5 * jobs for jobs in expected]
    assert list(check.differences()) == []


def test_a_client_that_attaches_again_beside_a_copy_with_its_id_gets_its_own_record(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    clone = clone_of(one, ONE)
    clone.computer.projects[alpha.master_url].hostid = 2
    for hour in range(1, 5):
        for each, minutes in ((one, 0), (clone, 30)):
            each.did(alpha, 1, 1)
            each.report(START + hour * HOUR + minutes * HOUR / 60)
    record = one.host
    assert clone.host != record
    one.stop_using()
    one.report(START + 5 * HOUR)
    one.did(alpha, 1, 1)
    one.report(START + 6 * HOUR)
    assert one.host == record
    assert Host.objects.count() == 2
    # Four hours and jobs of each, and one more of the first. The copy's first were not above what the record had.
    assert jobs_of(one, clone) == 4 + 3 + 1
    assert hours_credited(one.computer, alpha) + hours_credited(clone.computer, alpha) == 4 + 3 + 1


def test_a_copy_that_the_own_project_told_apart_gets_the_record_that_the_project_made(
    alice: User, projects: list[Project]
) -> None:
    alpha, own = projects[:2]
    Project.objects.filter(pk=own.pk).update(is_own=True)
    one = machine(alice, ONE)
    one.report(START)
    record = one.host
    one.computer.projects[own.master_url].hostid = record.pk
    one.report(START + HOUR)
    clone = clone_of(one, ONE)
    made = Host.objects.create(owner=alice, host_cpid=OTHER, domain_name="node")
    clone.computer.projects[own.master_url].hostid = made.pk
    for hour in (2, 3):
        for each, cpid in ((clone, OTHER), (one, ONE)):
            each.did(alpha, 1, 1)
            each.report(START + hour * HOUR, cpid=cpid)
    # At its first report, so that nothing of it is in the other record
    assert (one.host, clone.host) == (record, made)
    assert [hours_credited(each.computer, alpha) for each in (one, clone)] == [2, 2]
    assert Host.objects.count() == 2


def test_a_number_at_the_own_project_that_did_not_change_moves_nobody(alice: User, projects: list[Project]) -> None:
    alpha, own = projects[:2]
    Project.objects.filter(pk=own.pk).update(is_own=True)
    one = machine(alice, ONE)
    one.report(START)
    record = one.host
    older = Host.objects.create(owner=alice, host_cpid=THIRD, domain_name="node")
    one.computer.projects[own.master_url].hostid = older.pk
    for hour, cpid in ((1, ONE), (2, ONE), (3, OTHER)):
        one.did(alpha, 1, 1)
        one.report(START + hour * HOUR, cpid=cpid)
    assert one.host == record
    assert hours_credited(one.computer, alpha) == 3


def test_a_client_whose_number_was_that_of_another_is_not_refused(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    clone = clone_of(one, ONE)
    clone.computer.projects[alpha.master_url].hostid = 2
    for hour in (2, 4):
        one.report(START + hour * HOUR)
        clone.report(START + (hour + 1) * HOUR)
    third = clone_of(one, OTHER)
    for hour, (cpid, number) in enumerate(((OTHER, 2), (ONE, 2), (ONE, 3), (ONE, 3)), start=6):
        third.computer.projects[alpha.master_url].hostid = number
        third.report(START + hour * HOUR, cpid=cpid)


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


@pytest.mark.parametrize("older_hours", [None, 0.0, 1.0])
def test_a_folder_that_comes_back_after_an_older_one_without_a_project_counts_once(
    older_hours: float | None, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = machine(alice, ONE)
    one.report(START)
    one.did(alpha, 8, 8)
    one.report(START + 4 * HOUR)
    older = clone_of(one, ONE)
    del older.computer.projects[alpha.master_url]
    older.report(START + 5 * HOUR)
    if older_hours is not None:
        # It was attached to the project by the reply, and starts from zero.
        older.did(alpha, older_hours, 1)
        older.report(START + 6 * HOUR)
    # The newer folder is put back. It was 16 h.
    one.report(START + 7 * HOUR)
    assert hours_credited(one.computer, alpha) == 8 + (older_hours or 0)
    one.did(alpha, 2, 2)
    one.report(START + 8 * HOUR)
    assert hours_credited(one.computer, alpha) == 10 + (older_hours or 0)
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
