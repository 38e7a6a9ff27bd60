"""Months that are closed and summed up again, in many orders of the statements with all they meet."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from accounting.account_data.erasure import erase_due
from accounting.computers.merge import merge
from accounting.ledger import rollup
from accounting.models import (
    BestDay,
    ClosedMonths,
    Day,
    ErasedDay,
    GrantedDay,
    HostLedger,
    HostProject,
    Month,
    Project,
    ProjectDay,
)
from extras.certificates import registry
from extras.certificates.facts import SHOWN, CertificateRequest, read_scopes
from extras.certificates.models import Certificate
from portal.models import Host, User
from tests.support.accounting_factories import credit
from tests.support.interleavings import Scene, try_all
from tests.support.ledger_scenes import books_are_right, computer_of, confirmed, report, secs_of, volunteer
from tests.support.simulated.clients import Computer

pytestmark = pytest.mark.django_db(transaction=True)
JANUARY = dt.date(2024, 1, 1)
FEBRUARY = dt.date(2024, 2, 1)
THEN = dt.datetime(2024, 3, 3, tzinfo=dt.UTC)
"""Sums are brought up to date until then: to close all months since would be many statements."""
AMOUNTS = (40_000_000, 0, 7_000_000, 0, 1, 0)


def forget_earlier_scenes() -> None:
    for model in (
        ClosedMonths, Month, BestDay, ProjectDay, ErasedDay, GrantedDay,
        Day, HostProject, HostLedger,
    ):  # fmt: skip
        model._default_manager.all().delete()
    User.objects.update(deletion_asked_at=None)


def history(projects: list[Project], nusers: int = 1, nhosts: int = 1) -> list[Computer]:
    """Computers with a day in January 2024, which nobody has summed up yet; one person's after the other's."""
    forget_earlier_scenes()
    found = []
    for _ in range(nusers):
        user = volunteer()
        for number in range(nhosts):
            made = dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=number * 10)
            seen = made + dt.timedelta(days=5)
            computer = computer_of(user, projects, created_at=made, last_contact_at=seen)
            credit(Host.objects.get(pk=computer.id), projects[0], "2024-01-20", AMOUNTS)
            found.append(computer)
    return found


def summed_up(projects: list[Project], nusers: int = 1, nhosts: int = 1) -> list[Computer]:
    computers = history(projects, nusers, nhosts)
    assert rollup.roll_up(THEN)
    return computers


def sum_up_again() -> bool:
    return rollup.roll_up(THEN, since=JANUARY)


def nothing_is_lost(credit_of_all: int) -> None:
    books_are_right()
    sums = ProjectDay.objects.filter(day=dt.date(2024, 1, 20)).values_list("cpu_ec", flat=True)
    assert sum(sums) == credit_of_all
    erased = sum(ErasedDay.objects.values_list("cpu_ec", flat=True))
    assert sum(Day.objects.filter(day__lt=FEBRUARY).values_list("cpu_ec", flat=True)) + erased == credit_of_all


def to_be_erased(user_id: int) -> None:
    User.objects.filter(pk=user_id).update(deletion_asked_at=timezone.now() - dt.timedelta(days=15))


def test_a_report_while_a_month_is_summed_up_again(projects: list[Project]) -> None:
    def make() -> Scene:
        (computer,) = summed_up(projects)

        def check(outcomes: list[Any]) -> None:
            assert outcomes[0] is True, outcomes
            assert confirmed(outcomes) == [False, True]
            assert secs_of(computer.owner)["Project 1"] == 40
            books_are_right()

        return Scene([sum_up_again, report(computer, 40)], check)

    try_all(make)


def test_two_runs_sum_a_month_up_again(projects: list[Project]) -> None:
    def make() -> Scene:
        summed_up(projects)

        def check(outcomes: list[Any]) -> None:
            assert True in outcomes, outcomes
            nothing_is_lost(AMOUNTS[0])

        return Scene([sum_up_again] * 2, check)

    try_all(make)


def test_two_runs_close_a_month(projects: list[Project]) -> None:
    def make() -> Scene:
        history(projects)

        def check(_: list[Any]) -> None:
            rollup.roll_up(THEN)
            nothing_is_lost(AMOUNTS[0])

        return Scene([lambda: rollup.roll_up(THEN)] * 2, check)

    try_all(make)


def test_an_account_is_erased_while_a_month_is_summed_up_again(projects: list[Project]) -> None:
    def make() -> Scene:
        gone, _ = summed_up(projects, nusers=2)
        to_be_erased(gone.owner)

        def check(outcomes: list[Any]) -> None:
            assert outcomes[0] is True, outcomes
            erase_due(timezone.now())
            assert not User.objects.filter(pk=gone.owner).exists()
            nothing_is_lost(2 * AMOUNTS[0])

        return Scene([sum_up_again, lambda: erase_due(timezone.now())], check)

    try_all(make)


def test_computers_are_merged_while_a_month_is_summed_up_again(projects: list[Project]) -> None:
    def make() -> Scene:
        older, newer = summed_up(projects, nhosts=2)

        def check(outcomes: list[Any]) -> None:
            assert outcomes[0] is True, outcomes
            assert isinstance(outcomes[1], Host), outcomes
            nothing_is_lost(2 * AMOUNTS[0])
            assert set(Month.objects.values_list("host_id", flat=True)) == {newer.id}

        return Scene([sum_up_again, lambda: merge(older.owner, older.id, newer.id)], check)

    try_all(make)


def test_a_certificate_is_issued_while_a_month_is_summed_up_again(projects: list[Project]) -> None:
    def make() -> Scene:
        (computer,) = summed_up(projects)
        user = User.objects.get(pk=computer.owner)
        wanted = CertificateRequest(JANUARY, dt.date(2024, 3, 31), "all", SHOWN)

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[1], Certificate), outcomes
            facts = outcomes[1].statement["facts"]
            assert (facts["estimated_credits"], facts["computers"]) == (40, 1), facts

        return Scene([sum_up_again, lambda: registry.issue(user, wanted, read_scopes(user), timezone.now())], check)

    try_all(make)
