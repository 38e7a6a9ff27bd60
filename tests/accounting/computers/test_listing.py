"""The list of computers: search, filters, order and groups, all of them in the address."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from accounting.computers.merge import merge
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_reader import Page, page_of
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet(alice: User) -> dict[str, Host]:
    """Five computers: two report, one with trouble; one is silent, one retired, one of a farm."""
    now = timezone.now()
    today, old = str(now.date()), str((now - dt.timedelta(days=20)).date())
    hosts = {
        "studio": make_host(alice, "Studio", last=today, os_name="Linux", groups=["home"]),
        "farm-1": make_host(alice, "farm-1", last=today, os_name="Windows", groups=["farm", "loud"]),
        "farm-2": make_host(alice, "farm-2", last=old, os_name="Linux", groups=["farm"]),
        "attic": make_host(alice, "attic", last=old, os_name="Darwin"),
        "laptop": make_host(alice, "laptop", last=old, retired_at=now),
    }
    Host.objects.filter(domain_name__in=("Studio", "farm-1")).update(last_contact_at=now)
    Host.objects.filter(domain_name="farm-1").update(last_contact_at=now - dt.timedelta(minutes=5))
    make_note(hosts["studio"], "dropped", today, detail="cpu_ec", amount=5_000_000)
    alpha = make_project("Alpha")
    credit(hosts["farm-1"], alpha, today, (9_000_000, 0, 0, 0, 0, 0))
    credit(hosts["studio"], alpha, today, (3_000_000, 0, 0, 0, 0, 0))
    return hosts


def page(signed_in: Client, query: str = "") -> Page:
    return page_of(signed_in, f"/computers/{query}")


def names(listing: Page) -> list[str]:
    links = listing.all("a", within="tbody")
    return [
        link.text for link in links if link.attributes["href"].count("/") == 3 and "?" not in link.attributes["href"]
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # farm-2 is silent, which needs attention.
        ("?q=FARM", ["farm-2", "farm-1"]),
        ("?q=FARM&sort=contact", ["farm-1", "farm-2"]),
        ("?q=home", ["Studio"]),
        ("?group=farm", ["farm-2", "farm-1"]),
        ("?problem=silent", ["farm-2", "attic"]),
        ("?problem=not+all+counts", ["Studio"]),
        ("?group=farm&status=active", ["farm-1"]),
        ("?status=silent", ["farm-2", "attic"]),
        ("?status=trouble&q=studio", ["Studio"]),
        ("?status=retired", ["laptop"]),
        ("?sort=name&status=silent", ["attic", "farm-2"]),
        ("?sort=-name&q=farm", ["farm-2", "farm-1"]),
        ("?sort=recent&status=active", ["farm-1", "Studio"]),
        ("?sort=-recent&status=active", ["Studio", "farm-1"]),
        ("?sort=system&q=t", ["attic", "Studio", "laptop"]),
        ("?status=active", ["Studio", "farm-1"]),
        ("?status=active&sort=-contact", ["farm-1", "Studio"]),
    ],
)
def test_the_address_says_which_computers_and_in_which_order(
    signed_in: Client, fleet: dict[str, Host], query: str, expected: list[str]
) -> None:
    assert names(page(signed_in, query)) == expected


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?status=broken", "“broken” is not available in this list"),
        ("?sort=--name", "“--name” is not available in this list"),
        ("?sort=colour", "“colour” is not available in this list"),
        ("?group=cellar", "None of your computers is in the group “cellar”"),
        (f"?q={'x' * 101}", "at most 100 characters"),
        ("?grup=farm", "There is no parameter “grup”. There are: q, status, group,"),
    ],
)
def test_a_wrong_filter_says_so(signed_in: Client, fleet: dict[str, Host], query: str, words: str) -> None:
    assert words in page(signed_in, query).words


def test_a_wrong_order_turns_nothing_round(signed_in: Client, fleet: dict[str, Host]) -> None:
    assert names(page(signed_in, "?sort=--name")) == names(page(signed_in, ""))


def test_where_nothing_fits_the_page_says_so(signed_in: Client, fleet: dict[str, Host]) -> None:
    assert "None of your 5 computers matches." in page(signed_in, "?q=nothing").words


def test_a_head_leads_to_the_other_way_round_and_keeps_the_filter(signed_in: Client, fleet: dict[str, Host]) -> None:
    listing = page(signed_in, "?q=farm&sort=name")
    (head,) = listing.all("th", aria_sort="ascending")
    assert head.text.split()[0] == "Name"
    assert "?q=farm&sort=-name" in [
        link.attributes["href"].replace("&amp;", "&") for link in listing.all("a", within="thead")
    ]


def test_all_shown_computers_join_a_group_and_leave_it(signed_in: Client, fleet: dict[str, Host]) -> None:
    signed_in.post("/computers/change/", {"q": "farm", "name": " rack   a ", "action": "join", "scope": "all"})
    assert names(page(signed_in, "?group=rack a&sort=name")) == ["farm-1", "farm-2"]
    signed_in.post("/computers/change/", {"q": "farm-1", "name": "rack a", "action": "leave", "scope": "all"})
    assert names(page(signed_in, "?group=rack a")) == ["farm-2"]


@pytest.mark.parametrize("field", [{"group": "long gone"}, {"status": "broken"}, {"q": "x" * 101}, {"grup": "farm"}])
def test_a_filter_that_is_wrong_by_now_changes_no_computer(
    signed_in: Client, fleet: dict[str, Host], field: dict[str, str]
) -> None:
    """The list had that filter when it was opened; meanwhile, in another window, the group went. Or it is misspelt."""
    reply = signed_in.post(
        "/computers/change/", {**field, "name": "rack a", "action": "join", "scope": "all"}, follow=True
    )
    assert "Nothing was changed." in reply.content.decode()
    assert not Host.objects.filter(groups__contains=["rack a"]).exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "Give the group a name."),
        ("a,b", "no commas and no invisible characters"),
        ("a\u202eb", "no commas and no invisible characters"),
        ("x" * 31, "at most 30 characters"),
    ],
)
def test_a_name_that_cannot_be_is_refused(signed_in: Client, fleet: dict[str, Host], name: str, words: str) -> None:
    reply = signed_in.post("/computers/change/", {"name": name, "action": "join", "scope": "all"}, follow=True)
    assert words in Page(reply.content.decode()).words
    assert not Host.objects.filter(groups__contains=[name]).exists()


def test_nobody_changes_the_groups_of_others(signed_in: Client, bob: User, fleet: dict[str, Host]) -> None:
    theirs = make_host(bob, "farm-9")
    signed_in.post("/computers/change/", {"q": "farm", "name": "mine", "action": "join", "scope": "all"})
    theirs.refresh_from_db()
    assert theirs.groups == []


def test_no_computer_is_in_more_than_eight_groups(signed_in: Client, fleet: dict[str, Host]) -> None:
    full = ",".join(f"g{number}" for number in range(8))
    signed_in.post(f"/computers/{fleet['attic'].pk}/settings/", {"name": "", "venue": "", "groups": full})
    reply = signed_in.post("/computers/change/", {"name": "one more", "action": "join", "scope": "all"}, follow=True)
    assert "attic is in 8 groups already" in reply.content.decode()
    assert not Host.objects.filter(groups__contains=["one more"]).exists()
    more = signed_in.post(f"/computers/{fleet['attic'].pk}/settings/", {"name": "", "venue": "", "groups": full + ",z"})
    assert "at most 8 groups" in more.content.decode()


def test_a_merged_computer_is_in_the_groups_of_both_records(signed_in: Client, alice: User) -> None:
    older = make_host(alice, "old", first="2026-01-01", last="2026-01-10", groups=["loud", "home"])
    newer = make_host(alice, "new", first="2026-02-01", last="2026-02-10", groups=["home", "cellar"])
    assert merge(alice.pk, older.pk, newer.pk).groups == ["home", "cellar", "loud"]


def test_sixty_computers_cost_what_five_do(signed_in: Client, alice: User, fleet: dict[str, Host]) -> None:
    few = statements(lambda: page(signed_in, "?q=node&sort=name"))
    for number in range(60):
        make_host(alice, f"node-{number:02}", groups=["rack"])
    assert statements(lambda: page(signed_in, "?q=node&sort=name")) == few
    assert names(page(signed_in, "?group=rack&sort=name")) == [f"node-{number:02}" for number in range(60)]
