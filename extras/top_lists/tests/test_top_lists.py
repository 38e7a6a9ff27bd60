"""Top lists: only volunteers who agreed are in them, until they withdraw; by credit; with a fixed number of
statements.
"""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from credit.models import App, Result, Team, UserCredit, ValidateState
from credit.teams import membership
from extras.top_lists import consent, count, reads, sql
from extras.top_lists.models import ListedAppCredit, ListedVolunteer
from extras.top_lists.reads import Choice
from portal.models import User
from scheduler.models import ArchivedTask, ArchivedWorkunit
from tests.support.credit_factories import make_app, make_result, make_success, make_workunit
from tests.support.page_text import text_of
from tools.benchmarks.export import fill

pytestmark = pytest.mark.django_db

TOP = "/project/top/"
TOP_TEAMS = "/project/top/teams/"
CHOICE = "/project/top/choice/"


def grant(user: User, total: float, recent: float = 0, at: dt.datetime | None = None) -> None:
    UserCredit.objects.update_or_create(
        user=user, defaults={"total_credit": total, "expavg_credit": recent, "expavg_at": at or timezone.now()}
    )


def listed(by: str = "total", app: App | None = None, page: int = 1) -> list[tuple[str | None, float]]:
    rows = reads.volunteers(Choice(by=by, app=app, page=page)).rows
    return [(row.name, round(row.total_credit, 3)) for row in rows]


def agree(user: User, name: str = "") -> None:
    consent.give(user, name, timezone.now())


def test_nobody_is_listed_who_did_not_agree(alice: User, bob: User, client: Client) -> None:
    grant(alice, 100)
    grant(bob, 50)
    count.count()
    assert listed() == [] and "Nobody is listed" in text_of(client.get(TOP))
    agree(bob)
    assert listed() == [("Bob", 50)]


def test_who_withdraws_is_gone_at_once(alice: User, bob: User, signed_in: Client, client: Client) -> None:
    for user in (alice, bob):
        grant(user, 10)
        agree(user)
    team = membership.found(alice, Team(name="Peaks"))
    address = f"/project/teams/{team.pk}/"
    assert "Alice" in text_of(Client().get(TOP)) and "Alice" in text_of(Client().get(address))
    signed_in.post(CHOICE, {})
    assert listed() == [("Bob", 10)]
    assert "Alice" not in text_of(Client().get(TOP)) and "Alice" not in text_of(Client().get(address))
    count.count()
    count.count_apps()
    assert listed() == [("Bob", 10)] and not ListedVolunteer.objects.filter(user=alice).exists()


def test_agreeing_on_the_page_lists_under_the_chosen_name(alice: User, signed_in: Client) -> None:
    grant(alice, 12)
    assert "checked" not in signed_in.get(CHOICE).content.decode()
    signed_in.post(CHOICE, {"is_shown": "on", "shown_name": "  North   wind "})
    assert listed() == [("North wind", 12)]
    signed_in.post(CHOICE, {"is_shown": "on", "shown_name": ""})
    assert listed() == [("Alice", 12)]
    too_long = signed_in.post(CHOICE, {"is_shown": "on", "shown_name": "x" * 101})
    assert too_long.status_code == 422 and listed() == [("Alice", 12)]


def test_an_address_is_never_a_name(alice: User, client: Client) -> None:
    User.objects.filter(pk=alice.pk).update(name="")
    grant(alice, 1)
    agree(alice)
    list_text = text_of(client.get(TOP))
    assert "Anonymous" in list_text and "alice" not in list_text.lower()


def test_this_consent_and_the_one_to_the_export_are_independent(alice: User, signed_in: Client) -> None:
    grant(alice, 1)
    signed_in.post("/project/statistics/", {"exports_statistics": "on"})
    assert listed() == []
    signed_in.post(CHOICE, {"is_shown": "on"})
    signed_in.post("/project/statistics/", {})
    assert listed() == [("Alice", 1)]


@pytest.mark.parametrize("change", [{"deletion_asked_at": timezone.now()}, {"is_active": False}])
def test_who_asked_to_be_deleted_or_is_blocked_is_not_shown(alice: User, change: dict[str, object]) -> None:
    grant(alice, 1)
    agree(alice)
    membership.found(alice, Team(name="Peaks"))
    User.objects.filter(pk=alice.pk).update(**change)
    team = Team.objects.get()
    assert listed() == [] and reads.members(team, Choice()).rows == [] and reads.founder(team) is None


def test_lists_are_by_total_or_by_the_recent_average_as_of_now(alice: User, bob: User) -> None:
    """Bob's average of 100 is two half-lives old, so it is 25 now, and Alice's 40 is more."""
    grant(alice, 10, recent=40)
    grant(bob, 20, recent=100, at=timezone.now() - dt.timedelta(days=14))
    for user in (alice, bob):
        agree(user)
    assert [name for name, _ in listed()] == ["Bob", "Alice"]
    assert [name for name, _ in listed("recent")] == ["Alice", "Bob"]
    rows = reads.volunteers(Choice(by="recent")).rows
    assert [round(row.recent_credit or 0, 2) for row in rows] == [40, 25]


def test_new_credit_is_counted_with_the_next_count(alice: User) -> None:
    grant(alice, 10)
    agree(alice)
    grant(alice, 11)
    assert listed() == [("Alice", 10)]
    count.count()
    assert listed() == [("Alice", 11)]


def test_an_apps_list_adds_up_its_results_archived_ones_too(alice: User, bob: User) -> None:
    """10 and 2 of the app, of which 2 partial, and 5 that were archived; 100 of another app."""
    app, other = make_app("alpine"), make_app("boreal")
    host = alice.hosts.create(domain_name="a")
    valid = {"granted_at": timezone.now(), "validate_state": ValidateState.VALID}
    make_success(make_workunit(app), host, granted_credit=10, **valid)
    make_result(make_workunit(app), host, partial_credit=2)
    make_success(make_workunit(other), host, granted_credit=100, **valid)
    workunit = ArchivedWorkunit.objects.create(
        id=9_000_000, app=app, name="old", error_mask=0, facts={}, archived_at=timezone.now()
    )
    for number, user in enumerate((alice, bob)):
        ArchivedTask.objects.create(
            id=9_000_000 + number, workunit=workunit, user=user, facts={"granted_credit": 5, "partial_credit": 1}
        )
    agree(alice)
    for _ in range(2):
        count.count_apps()
        assert listed(app=app) == [("Alice", 17)] and listed(app=other) == [("Alice", 100)]
    agree(bob)
    count.count_apps()
    assert listed(app=app) == [("Alice", 17), ("Bob", 5)]
    Result.objects.filter(app=other).update(granted_credit=0)
    count.count_apps()
    assert listed(app=app) == [("Alice", 17), ("Bob", 5)] and listed(app=other) == []
    consent.withdraw(alice, timezone.now())
    assert listed(app=app) == [("Bob", 5)] and ListedAppCredit.objects.count() == 1


def test_teams_are_listed_with_the_sums_of_all_their_members(alice: User, bob: User, client: Client) -> None:
    """Bob did not agree: the team has his credit, and nobody sees that he is in it."""
    for user in (alice, bob):
        grant(user, 100)
    team = membership.found(alice, Team(name="Peaks"))
    membership.join(bob, team.pk)
    membership.found(User.objects.create_user("carol@example.org"), Team(name="Without credit"))
    grant(alice, 130)
    grant(bob, 105)
    agree(alice, "A.")
    count.count()
    list_text = text_of(client.get(TOP_TEAMS))
    assert "1 Peaks 2 35" in list_text and "Without credit" not in list_text
    page = text_of(client.get(f"/project/teams/{team.pk}/"))
    assert "Founder A." in page and "Bob" not in page and "Sign in to join" in page
    assert [(row.name, row.total_credit) for row in reads.members(team, Choice()).rows] == [("A.", 30)]


def test_a_team_that_is_gone_is_in_no_list(alice: User) -> None:
    grant(alice, 1)
    team = membership.found(alice, Team(name="Peaks"))
    grant(alice, 5)
    count.count()
    assert len(reads.teams(Choice()).rows) == 1
    team.delete()
    assert reads.teams(Choice()).rows == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("by=name", "“name” is not an order"),
        ("app=none", "“none” is not an app"),
        ("app=%00", "is not an app"),
        ("page=0", "“0” is not a page from 1 to 200"),
        ("page=201", "“201” is not a page"),
        ("page=one", "“one” is not a page"),
        ("page=99999999999999999999", "is not a page"),
    ],
)
def test_what_an_address_says_wrongly_is_told(client: Client, query: str, told: str) -> None:
    response = client.get(f"{TOP}?{query}")
    assert response.status_code == 200 and told in text_of(response)


def test_pages_go_on_with_the_next_place(client: Client) -> None:
    many(120)
    first, last = reads.volunteers(Choice()), reads.volunteers(Choice(page=3))
    assert (first.rows[0].place, first.rows[-1].place, first.more) == (1, 50, True)
    assert (last.rows[0].place, len(last.rows), last.more) == (101, 20, False)
    totals = [row.total_credit for number in (1, 2, 3) for row in reads.volunteers(Choice(page=number)).rows]
    assert totals == sorted(totals, reverse=True) and len(set(totals)) == 120
    page = client.get(f"{TOP}?by=recent&page=2").content.decode()
    assert "?by=recent&amp;page=3" in page and "?by=recent&amp;page=1" in page
    assert "ends before this page" in text_of(client.get(f"{TOP}?page=7"))


def many(nusers: int) -> None:
    fill(nusers, hosts_each=0)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO top_lists_listedvolunteer SELECT 0, 0, now(), id, '', now() FROM portal_user")
    count.count()


@pytest.mark.parametrize("address", [TOP, f"{TOP}?by=recent&page=2", TOP_TEAMS])
def test_pages_take_as_many_statements_for_any_number(
    client: Client, address: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    many(60)
    with django_assert_max_num_queries(2):
        assert client.get(address).status_code == 200


@pytest.mark.parametrize("nusers", [10, 60])
def test_the_list_of_an_app_and_both_counts_take_as_many_statements_for_any_number(
    client: Client, nusers: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """The app, its list, the choice of apps; two statements count all, and four count the credit of apps, of which one
    reads the archive.
    """
    app = make_app("alpine")
    many(nusers)
    ListedAppCredit.objects.bulk_create(
        ListedAppCredit(volunteer=volunteer, app=app, total_credit=1) for volunteer in ListedVolunteer.objects.all()
    )
    with django_assert_max_num_queries(3):
        assert len(client.get(f"{TOP}?app=alpine").context["page"].rows) == min(nusers, 50)
    # Two savepoints each, which begin and end.
    with django_assert_max_num_queries(2 + 4):
        count.count()
    with django_assert_max_num_queries(4 + 4):
        count.count_apps()


@pytest.mark.parametrize("by", reads.ORDERS.values())
def test_a_page_is_read_by_an_index_without_sorting_everybody(by: str) -> None:
    """Of 2,000 listed volunteers a page reads 50; a sort, or a scan of the table, would read them all."""
    many(2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE top_lists_listedvolunteer, portal_user, credit_membership, credit_team")
        cursor.execute("EXPLAIN " + sql.VOLUNTEERS.format(by=by), {"limit": 51, "offset": 0})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert f"listedvolunteer_{by.split('_')[0]}" in plan and "Sort" not in plan, plan
