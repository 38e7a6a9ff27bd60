"""What writes the account manager's books, in many orders of the statements: nothing is lost, nothing counts twice."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from accounting.account_data.erasure import erase_due
from accounting.computers.merge import merge
from accounting.ledger import rollup
from accounting.models import Day, HostClient, Project
from accounting.rpc.recognise import split
from portal.computers.host_changes import retire_host
from portal.models import Host, User
from portal.people.accounts import ClientAuthError
from tests.support.interleavings import Scene, try_all
from tests.support.ledger_scenes import (
    books_are_right,
    computer_of,
    confirmed,
    or_refusal,
    report,
    secs_of,
    volunteer,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("reports", [(10, 20), (10, 10), (10, 20, 20)])
def test_reports_of_one_computer(projects: list[Project], reports: tuple[int, ...]) -> None:
    def make() -> Scene:
        user = volunteer()
        computer = computer_of(user, projects)

        def check_(outcomes: list[Any]) -> None:
            assert all(confirmed(outcomes)), outcomes
            books_are_right()
            assert secs_of(user.pk) == {"Project 0": max(reports), "Project 1": max(reports)}

        return Scene([report(computer, secs) for secs in reports], check_)

    try_all(make)


def test_a_report_while_its_computer_is_merged_into_another(projects: list[Project]) -> None:
    def make() -> Scene:
        user = volunteer()
        now = timezone.now()
        older = computer_of(user, projects, created_at=now - dt.timedelta(days=9), last_contact_at=now)
        newer = computer_of(user, projects, created_at=now, last_contact_at=now)
        report(older, 100)()
        Host.objects.filter(pk=older.id).update(last_contact_at=now - dt.timedelta(days=1))

        def check_(outcomes: list[Any]) -> None:
            books_are_right()
            assert isinstance(outcomes[0], Host), outcomes[0]
            # The report is in the books if it was confirmed.
            assert secs_of(user.pk)["Project 0"] == 100 + 40 * isinstance(outcomes[1], bytes)
            assert secs_of(user.pk)["Project 0"] == 140 or isinstance(outcomes[1], ClientAuthError)

        return Scene([lambda: merge(user.pk, older.id, newer.id), report(newer, 40)], check_)

    try_all(make)


def test_a_report_while_its_clients_are_told_apart(projects: list[Project]) -> None:
    def make() -> Scene:
        user = volunteer()
        computer = computer_of(user, projects)
        other = HostClient.objects.create(host_id=computer.id, cpid="f" * 32, books={}, seen_at=timezone.now())

        def check_(outcomes: list[Any]) -> None:
            books_are_right()
            assert confirmed(outcomes) == [False, True]
            assert secs_of(user.pk)["Project 0"] == 40
            other.refresh_from_db()
            assert (outcomes[0], other.told_apart_at is not None) == (True, True)

        return Scene([lambda: split(user.pk, computer.id, "f" * 32, timezone.now()), report(computer, 40)], check_)

    try_all(make)


def test_a_report_while_its_computer_is_retired(projects: list[Project]) -> None:
    def make() -> Scene:
        user = volunteer()
        computer = computer_of(user, projects)
        host = Host.objects.get(pk=computer.id)

        def check_(outcomes: list[Any]) -> None:
            books_are_right()
            assert confirmed(outcomes) == [False, True]
            assert secs_of(user.pk)["Project 0"] == 40

        return Scene([lambda: retire_host(host, timezone.now()), report(computer, 40)], check_)

    try_all(make)


def test_a_report_while_its_account_is_erased(projects: list[Project]) -> None:
    def make() -> Scene:
        user = volunteer()
        computer = computer_of(user, projects)
        User.objects.update(deletion_asked_at=None)
        User.objects.filter(pk=user.pk).update(deletion_asked_at=timezone.now() - dt.timedelta(days=15))

        def check_(outcomes: list[Any]) -> None:
            books_are_right()
            assert outcomes[0] == 1, outcomes
            assert isinstance(outcomes[1], (bytes, ClientAuthError)), outcomes
            assert not User.objects.filter(pk=user.pk).exists()
            assert not Host.objects.filter(pk=computer.id).exists()
            assert not Day.objects.filter(host_id=computer.id).exists()

        return Scene([lambda: erase_due(timezone.now()), report(computer, 40)], check_)

    try_all(make)


def test_a_report_while_sums_are_rolled_up(projects: list[Project]) -> None:
    def make() -> Scene:
        user = volunteer()
        computer = computer_of(user, projects)
        report(computer, 10)()
        today = timezone.now().date()

        def check_(outcomes: list[Any]) -> None:
            assert confirmed(outcomes) == [False, True]
            assert secs_of(user.pk)["Project 0"] == 40
            # What came while it ran is in the next one's.
            rollup.roll_up(timezone.now(), today)
            books_are_right()

        return Scene([lambda: rollup.roll_up(timezone.now(), today), report(computer, 40)], check_)

    try_all(make)


def test_two_merges_that_have_a_computer_in_common(projects: list[Project]) -> None:
    def make() -> Scene:
        user = volunteer()
        now = timezone.now()
        first, second, third = (computer_of(user, projects, created_at=now - dt.timedelta(days=n)) for n in (20, 10, 0))
        for each in (first, second, third):
            report(each, 10)()
        for each, n in ((first, 15), (second, 5), (third, 0)):
            Host.objects.filter(pk=each.id).update(last_contact_at=now - dt.timedelta(days=n))

        def check_(_: list[Any]) -> None:
            books_are_right()
            assert secs_of(user.pk)["Project 0"] == 30
            ends = Host.objects.filter(pk__in=[first.id, second.id, third.id], merged_into=None)
            assert ends.count() in (1, 2)  # a merge may be refused once the other one is done
            for host in Host.objects.exclude(merged_into=None).select_related("merged_into"):
                assert host.merged_into is not None and host.merged_into.merged_into_id is None

        merges = [
            lambda: merge(user.pk, first.id, second.id),
            lambda: merge(user.pk, second.id, third.id),
        ]
        return Scene([or_refusal(each) for each in merges], check_)

    try_all(make)
