"""Months that are closed, reopened, archived and brought back, in many orders of the statements with all they meet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounting.account_data.erasure import erase_due
from accounting.certificates import registry
from accounting.certificates.facts import SHOWN, CertificateRequest, read_scopes
from accounting.computers.merge import merge
from accounting.ledger import rollup
from accounting.ledger.archive import erase, moves, store
from accounting.ledger.partitions import MonthIsArchived
from accounting.models import (
    ArchivedMonth,
    ArchiveErasure,
    ArchivePart,
    BestDay,
    Certificate,
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
from portal.databases import short_waits
from portal.models import Host, User
from tests.support.accounting_factories import credit
from tests.support.archived_books import archive_in
from tests.support.interleavings import Scene, Work, try_all
from tests.support.ledger_scenes import books_are_right, computer_of, confirmed, report, secs_of, volunteer
from tests.support.simulated.clients import Computer

pytestmark = pytest.mark.django_db(transaction=True)
JANUARY = dt.date(2024, 1, 1)
FEBRUARY = dt.date(2024, 2, 1)
THEN = dt.datetime(2024, 3, 3, tzinfo=dt.UTC)
"""Sums are brought up to date until then: to close all months since would be many statements."""
AMOUNTS = (40_000_000, 0, 7_000_000, 0, 1, 0)


@pytest.fixture(autouse=True)
def _archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An archive of its own. Archiving waits for locks for half a second, and half a second more: no scene needs that,
    but it must give up before PostgreSQL looks for a deadlock, as it does outside scenes.
    """
    monkeypatch.setattr(short_waits, "WAIT", "15ms")
    monkeypatch.setattr(short_waits, "PAUSE_SECS", 0)
    with archive_in(tmp_path / "archive"):
        yield


def forget_earlier_scenes() -> None:
    for model in (
        ArchiveErasure, ArchivePart, ArchivedMonth, ClosedMonths, Month, BestDay, ProjectDay, ErasedDay, GrantedDay,
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


def archived(projects: list[Project], nusers: int = 1, nhosts: int = 1) -> list[Computer]:
    computers = summed_up(projects, nusers, nhosts)
    assert archive() == "done"
    return computers


def archive() -> object:
    try:
        list(moves.archive_before(FEBRUARY, timezone.now().date()))
    except moves.ArchiveRefused as refused:
        return str(refused)
    return "done"


def restore() -> object:
    try:
        list(moves.restore_before(FEBRUARY))
    except moves.ArchiveRefused as refused:
        return str(refused)
    return "done"


def sum_up_anew() -> object:
    try:
        return rollup.roll_up(THEN, since=JANUARY)
    except MonthIsArchived as refused:
        return str(refused)


def to_be_erased(user_id: int) -> None:
    User.objects.filter(pk=user_id).update(deletion_asked_at=timezone.now() - dt.timedelta(days=15))


def erased_by_and_by(user_id: int) -> None:
    """An account that could not be erased is erased the next time, and leaves the archive."""
    erase_due(timezone.now())
    erase.remove_erased()
    assert not User.objects.filter(pk=user_id).exists()
    assert not ArchiveErasure.objects.exists()


def nothing_is_lost(credit_of_all: int) -> None:
    """The books are right with January in the database or in the archive, and can be moved as often as one likes."""
    books_are_right()
    for move in (archive, restore):
        assert move() == "done"
        books_are_right()
    day = ProjectDay.objects.filter(day=dt.date(2024, 1, 20)).values_list("cpu_ec", flat=True)
    assert sum(day) == credit_of_all
    erased = sum(ErasedDay.objects.values_list("cpu_ec", flat=True))
    assert sum(Day.objects.filter(day__lt=FEBRUARY).values_list("cpu_ec", flat=True)) + erased == credit_of_all
    assert not (set(store.storage().listdir("2024-01")[1]) if ArchivePart.objects.exists() else set())


@pytest.mark.parametrize("move", [archive, restore, sum_up_anew])
def test_a_report_while_a_month_moves(projects: list[Project], move: Work) -> None:
    def make() -> Scene:
        (computer,) = (archived if move is restore else summed_up)(projects)

        def check(outcomes: list[Any]) -> None:
            assert outcomes[0] in ("done", True), outcomes
            assert confirmed(outcomes) == [False, True]
            assert secs_of(computer.owner)["Project 1"] == 40
            books_are_right()

        return Scene([move, report(computer, 40)], check)

    try_all(make)


@pytest.mark.parametrize(
    ("moves_", "is_archived"),
    [
        ((archive, archive), False),
        ((restore, restore), True),
        ((archive, restore), False),
        ((restore, archive), True),
        ((archive, sum_up_anew), False),
        ((restore, sum_up_anew), True),
        ((sum_up_anew, sum_up_anew), False),
        ((archive, restore, sum_up_anew), False),
    ],
)
def test_moves_of_a_month_against_each_other(
    projects: list[Project], moves_: tuple[Work, ...], is_archived: bool
) -> None:
    def make() -> Scene:
        (archived if is_archived else summed_up)(projects)

        def check(outcomes: list[Any]) -> None:
            assert any(each in ("done", True) for each in outcomes), outcomes
            nothing_is_lost(AMOUNTS[0])

        return Scene(moves_, check)

    try_all(make)


def test_two_runs_close_a_month(projects: list[Project]) -> None:
    def make() -> Scene:
        history(projects)

        def check(_: list[Any]) -> None:
            rollup.roll_up(THEN)
            nothing_is_lost(AMOUNTS[0])

        return Scene([lambda: rollup.roll_up(THEN)] * 2, check)

    try_all(make)


@pytest.mark.parametrize("move", [archive, restore])
def test_an_account_is_erased_while_a_month_moves(projects: list[Project], move: Work) -> None:
    def make() -> Scene:
        gone, _ = (archived if move is restore else summed_up)(projects, nusers=2)
        to_be_erased(gone.owner)

        def check(outcomes: list[Any]) -> None:
            assert outcomes[0] in ("done", True), outcomes
            erased_by_and_by(gone.owner)
            nothing_is_lost(2 * AMOUNTS[0])

        return Scene([move, lambda: erase_due(timezone.now())], check)

    try_all(make)


@pytest.mark.parametrize("move", [erase.remove_erased, restore, archive])
def test_an_erased_account_leaves_the_archive_meanwhile(projects: list[Project], move: Work) -> None:
    def make() -> Scene:
        gone, _ = archived(projects, nusers=2)
        to_be_erased(gone.owner)
        assert erase_due(timezone.now()) == 1

        def check(outcomes: list[Any]) -> None:
            assert not [each for each in outcomes if isinstance(each, store.ArchiveUnreadable)], outcomes
            erased_by_and_by(gone.owner)
            restore()
            nothing_is_lost(2 * AMOUNTS[0])

        return Scene([erase.remove_erased, move], check)

    try_all(make)


def test_an_account_is_erased_while_another_one_leaves_the_archive(projects: list[Project]) -> None:
    def make() -> Scene:
        first, second, _ = archived(projects, nusers=3)
        to_be_erased(first.owner)
        assert erase_due(timezone.now()) == 1
        to_be_erased(second.owner)

        def check(_: list[Any]) -> None:
            erased_by_and_by(second.owner)
            restore()
            nothing_is_lost(3 * AMOUNTS[0])

        return Scene([erase.remove_erased, lambda: erase_due(timezone.now())], check)

    try_all(make)


@pytest.mark.parametrize("move", [archive, restore, sum_up_anew])
def test_computers_are_merged_while_a_month_moves(projects: list[Project], move: Work) -> None:
    def make() -> Scene:
        older, newer = (archived if move is restore else summed_up)(projects, nhosts=2)

        def check(outcomes: list[Any]) -> None:
            assert outcomes[0] in ("done", True), outcomes
            assert isinstance(outcomes[1], Host), outcomes
            nothing_is_lost(2 * AMOUNTS[0])
            assert set(Month.objects.values_list("host_id", flat=True)) == {newer.id}

        return Scene([move, lambda: merge(older.owner, older.id, newer.id)], check)

    try_all(make)


@pytest.mark.parametrize("move", [archive, restore, sum_up_anew])
def test_a_certificate_is_issued_while_a_month_moves(projects: list[Project], move: Work) -> None:
    def make() -> Scene:
        (computer,) = (archived if move is restore else summed_up)(projects)
        user = User.objects.get(pk=computer.owner)
        wanted = CertificateRequest(JANUARY, dt.date(2024, 3, 31), "all", SHOWN)

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[1], Certificate), outcomes
            facts = outcomes[1].statement["facts"]
            assert (facts["estimated_credits"], facts["computers"]) == (40, 1), facts

        return Scene([move, lambda: registry.issue(user, wanted, read_scopes(user), timezone.now())], check)

    try_all(make)
