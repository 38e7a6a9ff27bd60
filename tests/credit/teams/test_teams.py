"""Teams: their members, their founder, and their credit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from accounting.account_data.erasure import erase_due
from credit.export import consent
from credit.models import Membership, Team, UserCredit
from credit.teams import reads
from credit.teams.membership import TeamRefused, found, hand_on, join, leave
from portal.databases.params import psycopg_params
from portal.models import User
from portal.people.deletion import GRACE
from portal.sign_in.throttle import NEW_TEAMS_PER_DAY
from tests.support.wait import wait_until


@pytest.fixture
def peaks(alice: User) -> Team:
    """Alice's team, which she founded when she had 100 credits."""
    UserCredit.objects.create(user=alice, total_credit=100)
    return found(alice, Team(name="Peaks"))


def total(team: Team) -> float:
    return reads.sums([team])[team.pk].total_credit


def grant(user: User, credit: float) -> None:
    UserCredit.objects.update_or_create(user=user, defaults={"total_credit": credit})


def test_credit_counts_from_joining_on(peaks: Team, alice: User, bob: User) -> None:
    grant(alice, 130)
    grant(bob, 1000)
    join(bob, peaks.pk)
    grant(bob, 1005)
    assert total(peaks) == 30 + 5


def test_a_team_keeps_the_credit_of_who_leaves(peaks: Team, alice: User) -> None:
    grant(alice, 130)
    leave(alice)
    grant(alice, 200)
    assert total(peaks) == 30 and reads.team_of(alice) is None
    join(alice, peaks.pk)
    grant(alice, 201)
    assert total(peaks) == 31


def test_who_joins_another_team_leaves_the_first(peaks: Team, alice: User, bob: User) -> None:
    valleys = found(bob, Team(name="Valleys"))
    grant(alice, 130)
    join(alice, valleys.pk)
    assert total(peaks) == 30 and total(valleys) == 0
    assert reads.team_of(alice) == valleys and Membership.objects.count() == 2


def test_joining_again_changes_nothing(peaks: Team, alice: User) -> None:
    grant(alice, 130)
    join(alice, peaks.pk)
    assert Membership.objects.get(user=alice).credit_before == 100 and total(peaks) == 30


def test_a_name_is_one_teams_whatever_its_case(peaks: Team, bob: User) -> None:
    with pytest.raises(TeamRefused, match="already"):
        found(bob, Team(name="pEaks"))
    assert reads.team_of(bob) is None


def test_nobody_founds_teams_without_end(bob: User) -> None:
    for number in range(NEW_TEAMS_PER_DAY):
        found(bob, Team(name=f"Team {number}"))
    with pytest.raises(TeamRefused, match="tomorrow"):
        found(bob, Team(name="One more"))


def test_a_founder_hands_on_to_a_member_only(peaks: Team, alice: User, bob: User) -> None:
    with pytest.raises(TeamRefused):
        hand_on(alice, bob.pk)
    join(bob, peaks.pk)
    publish(bob)
    with pytest.raises(TeamRefused):
        hand_on(bob, bob.pk)
    assert hand_on(alice, bob.pk).founder == bob


def test_who_joins_a_team_without_founder_becomes_it(peaks: Team, alice: User, bob: User) -> None:
    leave(alice)
    assert Team.objects.get().founder is None
    join(bob, peaks.pk)
    assert Team.objects.get().founder == bob


def publish(user: User) -> None:
    consent.save(user, exports_statistics=True, shows_hosts=False, now=timezone.now())


def test_a_founder_learns_nothing_of_members_who_are_not_published(
    peaks: Team, alice: User, bob: User, signed_in: Client
) -> None:
    join(bob, peaks.pk)
    address = f"/project/teams/{peaks.pk}/"
    assert "Bob" not in signed_in.get(address).content.decode()
    stranger = User.objects.create_user("carol@example.org", name="Carol")
    answers = []
    for number in (bob.pk, stranger.pk):
        with pytest.raises(TeamRefused) as refused:
            hand_on(alice, number)
        answers.append(str(refused.value))
    assert answers[0] == answers[1]
    publish(bob)
    assert "Bob" in signed_in.get(address).content.decode()


@pytest.mark.django_db(transaction=True)
def test_credit_is_granted_before_or_after_somebody_leaves(peaks: Team, alice: User) -> None:
    """Between the two it would be nobody's, and the team's total would fall."""
    with psycopg.connect(**psycopg_params()) as granting, transaction.atomic():
        leave(alice)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            granting.execute("SELECT FROM credit_usercredit FOR NO KEY UPDATE NOWAIT")


@pytest.mark.django_db(transaction=True)
def test_a_member_who_leaves_as_the_team_is_handed_on_to_them_is_not_stuck(peaks: Team, alice: User, bob: User) -> None:
    """Both lock the membership first."""
    join(bob, peaks.pk)
    publish(bob)

    def hand() -> None:
        try:
            hand_on(alice, bob.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid() FROM credit_membership WHERE user_id = %s FOR UPDATE", [bob.pk])
            (own,) = cursor.fetchone()
            handing = other.submit(hand)

            def is_waiting() -> bool:
                cursor.execute("SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [own])
                return cursor.fetchone() is not None

            wait_until(is_waiting, "the founder to wait for the membership", 30)
            cursor.execute("SELECT FROM credit_team FOR NO KEY UPDATE NOWAIT")
            leave(bob)
        with pytest.raises(TeamRefused):
            handing.result()
    assert Team.objects.get().founder == alice


Execute = Callable[[str, Any, bool, dict[str, Any]], Any]


def after_leaving(act: Callable[[], object]) -> Callable[..., Any]:
    """Has something done when a membership has just ended, within the transaction that changes the team."""

    def wrapper(execute: Execute, statement: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        result = execute(statement, params, many, context)
        if "DELETE FROM credit_membership" in statement:
            act()
        return result

    return wrapper


@pytest.mark.django_db(transaction=True)
def test_the_first_grant_during_a_change_of_team_belongs_to_a_team(alice: User, bob: User) -> None:
    """There is no row yet that could be locked against it."""
    peaks, valleys = found(alice, Team(name="Peaks")), found(bob, Team(name="Valleys"))

    def grant_first() -> None:
        with psycopg.connect(**psycopg_params(), autocommit=True) as other:
            row = "INSERT INTO credit_usercredit (user_id, total_credit, expavg_credit) VALUES (%s, 10, 0)"
            other.execute(row, [alice.pk])

    with connection.execute_wrapper(after_leaving(grant_first)):
        join(alice, valleys.pk)
    assert (total(peaks), total(valleys)) == (0, 10)


@pytest.mark.django_db(transaction=True)
def test_two_leaderless_teams_may_swap_members(alice: User, bob: User) -> None:
    peaks, valleys = found(alice, Team(name="Peaks")), found(bob, Team(name="Valleys"))
    Team.objects.update(founder=None)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (own,) = cursor.fetchone()

    def swap() -> None:
        try:
            join(bob, peaks.pk)
        finally:
            connection.close()

    def is_waiting() -> bool:
        with psycopg.connect(**psycopg_params(), autocommit=True) as third:
            blocked = third.execute("SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [own])
            return blocked.fetchone() is not None

    with ThreadPoolExecutor(1) as other:
        swapping = []

        def begin() -> None:
            swapping.append(other.submit(swap))
            wait_until(is_waiting, "the other volunteer to wait for a team", 30)

        with connection.execute_wrapper(after_leaving(begin)):
            join(alice, valleys.pk)
        swapping[0].result(30)
    assert {m.user: m.team for m in Membership.objects.all()} == {alice: valleys, bob: peaks}
    assert {team.founder for team in Team.objects.all()} == {alice, bob}


def test_a_team_keeps_the_credit_of_an_erased_account(peaks: Team, alice: User) -> None:
    grant(alice, 130)
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=timezone.now() - GRACE)
    erase_due(timezone.now())
    assert not User.objects.filter(pk=alice.pk).exists()
    assert total(peaks) == 30 and Team.objects.get().founder is None
