"""check_ledger finds each way in which the books can be wrong, and nothing in sound ones."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounting.account_data import erasure
from accounting.engine.amounts import KINDS
from accounting.ledger import rollup
from accounting.models import AccountTotal, Day, HostLedger, HostProject, Project, ProjectDay
from portal.models import Host, User
from portal.people.deletion import GRACE, ask_deletion
from tests.support.accounting_factories import granted, make_host
from tests.support.am_rpc import HOUR, START, call, host_of, make_computer, work


@pytest.fixture
def host(alice: User, projects: list[Project]) -> Host:
    """A computer with credit at a project, rolled up two days later."""
    computer = make_computer(alice)
    call(computer, START)
    work(computer, projects[0], 5)
    call(computer, START + 10 * HOUR)
    rollup.roll_up(START + 58 * HOUR)
    return host_of(computer)


def check() -> tuple[int, str]:
    """Exit code and output of the command."""
    output = io.StringIO()
    try:
        call_command("check_ledger", stdout=output)
    except CommandError as error:
        return error.returncode, output.getvalue()
    return 0, output.getvalue()


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        assert cursor.rowcount > 0


def test_sound_books_pass(host: Host) -> None:
    assert check() == (0, "The ledger is consistent.\n")


def test_empty_books_pass(db: None) -> None:
    assert check()[0] == 0


def test_an_erased_account_leaves_sound_books_and_the_sums_of_projects(host: Host, alice: User) -> None:
    before = list(ProjectDay.objects.order_by("project", "day").values("project", "day", *KINDS))
    ask_deletion(alice)
    assert erasure.erase_due(timezone.now() + GRACE + HOUR) == 1
    assert check() == (0, "The ledger is consistent.\n")
    # Also if the days are read again, from the first one on.
    rollup.roll_up(START + 60 * HOUR, START.date())
    assert list(ProjectDay.objects.order_by("project", "day").values("project", "day", *KINDS)) == before
    assert before and check()[0] == 0


def _other_owner(host: Host) -> None:
    """Of its days: the other rows of a computer name nobody."""
    bob = User.objects.create_user("bob@example.org", "bob's secret")
    Day.objects.filter(host=host).update(user=bob)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _: execute("UPDATE accounting_hostproject SET credited[3] = credited[3] + 1 WHERE listed"), "credited"),
        (lambda _: execute("UPDATE accounting_day SET cpu_ec = cpu_ec - 1 WHERE cpu_ec > 0"), "credited"),
        (lambda _: execute("UPDATE accounting_day SET njobs_error = njobs_error + 1"), "credited"),
        (lambda _: execute("DELETE FROM accounting_day"), "credited"),
        (lambda _: execute("DELETE FROM accounting_hostproject"), "credited"),
        (lambda _: execute("UPDATE accounting_hostproject SET pending[1] = -1"), "negative"),
        (lambda _: execute("UPDATE accounting_hostproject SET dropped[6] = -1"), "negative"),
        (
            lambda _: execute("UPDATE accounting_hostproject SET reported[2] = -1 WHERE reported IS NOT NULL"),
            "negative",
        ),
        (lambda _: execute("UPDATE accounting_hostledger SET level[1] = -1"), "allowance"),
        (_other_owner, "belong to user"),
        (lambda _: execute("UPDATE accounting_projectday SET cpu_time = cpu_time + 1"), "roll-up"),
        (lambda _: execute("DELETE FROM accounting_projectday WHERE cpu_time > 0"), "roll-up"),
    ],
)
def test_each_corruption_is_a_line_and_the_exit_code_is_1(
    spoil: Callable[[Host], None], words: str, host: Host
) -> None:
    # Something is rolled up later, so that a missing day is no matter of the task's being late.
    ProjectDay.objects.create(
        project=Project.objects.get(name="Beta"), day=(START + 48 * HOUR).date(), rolled_up_at=START + 58 * HOUR
    )
    spoil(host)
    code, output = check()
    assert code == 1
    assert words in output
    for line in output.splitlines():
        assert f"host {host.pk}" in line or "roll-up" in line


def test_the_numbers_that_differ_are_told(host: Host, projects: list[Project]) -> None:
    HostProject.objects.filter(host=host, project=projects[0]).update(credited=[1, 0, 0, 0, 0, 0])
    day = Day.objects.get(host=host)
    assert f"credited [1, 0, 0, 0, 0, 0], but the days' sum is [{day.cpu_ec}, 0, {day.cpu_time}, 0, 0, 0]" in check()[1]
    assert HostLedger.objects.count() == 1


def test_a_record_at_a_project_is_one_computers(host: Host, bob: User, projects: list[Project]) -> None:
    granted(host, projects[1], 7, {"2024-03-01": 1})
    with pytest.raises(IntegrityError, match="grantedtotal_once"), transaction.atomic():
        granted(make_host(bob, "other"), projects[1], 7, {"2024-03-01": 1})


def test_an_account_at_a_project_is_one_volunteers(alice: User, bob: User, projects: list[Project]) -> None:
    same = {"project": projects[1], "project_user_id": 7, "total_credit": 0, "avg_at": START, "as_of": START}
    AccountTotal.objects.create(user=alice, **same)
    with pytest.raises(IntegrityError, match="accounttotal_once"), transaction.atomic():
        AccountTotal.objects.create(user=bob, **same)
