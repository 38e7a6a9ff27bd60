"""What is done to several computers at once, and the list of a thousand."""

from __future__ import annotations

import datetime as dt
import time
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from accounting.models import HostLedger, HostProject, Project
from portal.models import ClientKey, Host, User
from tests.support.accounting_factories import make_host
from tests.support.am_rpc import attach, host_of, post, sync
from tests.support.page_reader import Page, page_of
from tests.support.page_text import text_of
from tools.benchmarks.harness.statements import statements

CHANGE = "/computers/change/"


def change(browser: Client, action: str, hosts: list[Host] | None = None, **fields: str) -> str:
    """Apply the action to these computers, or to all of the list; what the page says then."""
    scope = {"scope": "all"} if hosts is None else {"scope": "chosen", "host": [str(host.pk) for host in hosts]}
    return text_of(browser.post(CHANGE, {"action": action, **scope, **fields}, follow=True))


# The action, and what a client is then told of each project
TOLD: list[tuple[str, str, str | None]] = [
    ("suspend", "suspend", "1"),
    ("no_new_work", "dont_request_more_work", "1"),
    ("update", "update", "1"),
    ("exclude", "detach_when_done", "1"),
]


@pytest.mark.parametrize(("action", "tag", "text"), TOLD)
def test_the_chosen_computers_are_told_at_their_next_sync(
    action: str, tag: str, text: str, signed_in: Client, alice: User, projects: list[Project]
) -> None:
    one, two, other = (attach(alice, name) for name in ("pc-1", "pc-2", "pc-3"))
    for computer in (one, two, other):
        sync(computer)
    said = change(signed_in, action, [host_of(one), host_of(two)])
    assert "2 computers were changed. Clients follow at their next sync." in said
    for computer, is_told in ((one, True), (two, True), (other, False)):
        told = [account.findtext(tag) or ("1" if account.find(tag) is not None else None)
                for account in post(computer.request(time.time())).accounts.values()]  # fmt: skip
        assert [value == text for value in told] == [is_told] * len(projects)


def test_a_wish_for_one_project_reaches_also_computers_that_do_not_have_it_yet(
    signed_in: Client, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    hosts = [make_host(alice, f"pc-{number}") for number in range(3)]
    HostProject.objects.create(host=hosts[0], project=alpha, listed=True, no_new_work=True)
    change(signed_in, "exclude", project=str(alpha.pk))
    rows = HostProject.objects.filter(project=alpha).order_by("host_id")
    assert [(row.host_id, row.excluded, row.no_new_work) for row in rows] == [
        (hosts[0].pk, True, True),
        (hosts[1].pk, True, False),
        (hosts[2].pk, True, False),
    ]
    assert HostLedger.objects.count() == 3
    change(signed_in, "include", hosts[1:], project=str(alpha.pk))
    assert [row.excluded for row in rows.all()] == [True, False, False]
    assert not HostProject.objects.exclude(project=alpha).exists()


def test_what_is_resumed_everywhere_is_suspended_nowhere(
    signed_in: Client, alice: User, projects: list[Project]
) -> None:
    host = make_host(alice, "pc")
    for number, project in enumerate(projects):
        HostProject.objects.create(host=host, project=project, listed=bool(number), suspended=True, excluded=True)
    HostLedger.objects.get_or_create(host=host)
    change(signed_in, "resume")
    assert not HostProject.objects.filter(suspended=True).exists()
    assert HostProject.objects.filter(excluded=True).count() == len(projects)


def test_computers_get_a_place_retire_and_come_back_together(signed_in: Client, alice: User) -> None:
    hosts = [make_host(alice, f"pc-{number}") for number in range(3)]
    rows = Host.objects.order_by("pk")
    change(signed_in, "place_school", hosts[:2])
    assert [host.venue for host in rows.all()] == ["school", "school", ""]
    assert "2 computers were changed." in change(signed_in, "retire", hosts[:2])
    assert [host.retired_at is not None for host in rows.all()] == [True, True, False]
    assert "2 computers were changed." in change(signed_in, "restore", status="retired")
    assert not rows.exclude(retired_at=None).exists()


def test_all_means_all_that_match_the_filters_on_whatever_page(
    signed_in: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounting.computers.reads.HOSTS_A_PAGE", 2)
    for number in range(5):
        make_host(alice, f"pc-{number}", groups=["lab"] if number else [])
    assert "4 computers were changed." in change(signed_in, "retire", group="lab")
    assert Host.objects.get(retired_at=None).name == "pc-0"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"action": "suspend"}, "Select computers first"),
        ({"action": "dance", "host": "{own}"}, "Choose what to do."),
        ({"host": "{own}"}, "Choose what to do."),
        ({"action": "join", "host": "{own}", "name": ""}, "Give the group a name."),
        ({"action": "suspend", "host": "{own}", "project": "999999"}, "There is no such project."),
        ({"action": "suspend", "host": "{own}", "project": "x"}, "There is no such project."),
        ({"action": "retire", "host": "x"}, "0 computers were changed."),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    fields: dict[str, str], words: str, signed_in: Client, alice: User, projects: list[Project]
) -> None:
    host = make_host(alice, "pc")
    filled = {name: value.format(own=host.pk) for name, value in fields.items()}
    assert words in text_of(signed_in.post(CHANGE, filled, follow=True))
    host.refresh_from_db()
    assert (host.retired_at, host.groups, HostProject.objects.count()) == (None, [], 0)


@pytest.mark.parametrize("action", ["suspend", "place_home", "retire", "join"])
def test_nobody_changes_computers_of_others(action: str, signed_in: Client, bob: User, projects: list[Project]) -> None:
    theirs = make_host(bob, "pc")
    HostProject.objects.create(host=theirs, project=projects[0], listed=True)
    HostLedger.objects.get_or_create(host=theirs)
    change(signed_in, action, [theirs], name="mine")
    theirs.refresh_from_db()
    assert (theirs.venue, theirs.retired_at, theirs.groups) == ("", None, [])
    assert not HostProject.objects.filter(suspended=True).exists()


def test_a_revoked_key_comes_first_and_says_what_to_do(signed_in: Client, alice: User, projects: list[Project]) -> None:
    computers = [attach(alice, f"pc-{number}") for number in range(4)]
    ClientKey.objects.filter(host=host_of(computers[2])).update(revoked_at=timezone.now())
    Host.objects.filter(pk=host_of(computers[1]).pk).update(last_contact_at=timezone.now() - dt.timedelta(days=9))
    page = signed_in.get("/computers/")
    text = text_of(page)
    assert "Needs attention: key revoked: 1 silent: 1" in text
    links = [link.text for link in Page(page.content.decode()).all("a", within="tbody")]
    assert [name for name in links if name.startswith("pc-")] == ["pc-2", "pc-1", "pc-3", "pc-0"]
    own = text_of(signed_in.get(f"/computers/{host_of(computers[2]).pk}/"))
    assert "In BOINC, stop using this site, then add it again" in own
    # Attached again, it is in order.
    computers[2].authenticator = ""
    sync(computers[2])
    assert "key revoked" not in text_of(signed_in.get("/computers/"))


def test_each_group_shows_its_state(signed_in: Client, alice: User) -> None:
    now = timezone.now()
    for number in range(6):
        is_late = number < 2
        make_host(alice, f"pc-{number}", groups=["room 1" if number < 4 else "room 2"])
        Host.objects.filter(domain_name=f"pc-{number}").update(
            last_contact_at=now - dt.timedelta(days=9 if is_late else 0), retired_at=now if number == 5 else None
        )
    text = text_of(signed_in.get("/computers/"))
    assert "room 1 4 2 2 2 0" in text and "room 2 1 1 0 0 0" in text


def test_a_thousand_computers_cost_the_statements_of_ten(
    signed_in: Client, alice: User, projects: list[Project]
) -> None:
    def costs() -> list[int]:
        # It shows the messages of the changes before.
        signed_in.get("/computers/")
        one = {"project": str(projects[0].pk)}
        changes = [{"action": "suspend"}, {"action": "suspend", **one}, {"action": "resume"}, {"action": "retire"},
                   {"action": "restore", "status": "retired"}, {"action": "join", "name": "lab"}]  # fmt: skip
        return [
            statements(lambda: page_of(signed_in, "/computers/")),
            statements(lambda: page_of(signed_in, "/computers/?sort=name&status=trouble")),
            *(statements(partial(signed_in.post, CHANGE, {"scope": "all", **data})) for data in changes),
        ]

    def add(first: int, last: int) -> None:
        hosts = Host.objects.bulk_create(
            Host(owner=alice, domain_name=f"pc-{number}", groups=[f"room {number % 30}"])
            for number in range(first, last)
        )
        HostLedger.objects.bulk_create(HostLedger(host=host) for host in hosts)
        HostProject.objects.bulk_create(
            HostProject(host=host, project=project, listed=True) for host in hosts for project in projects
        )

    add(0, 10)
    few = costs()
    add(10, 1000)
    assert costs() == few
    # 1,000 computers with three projects
    assert HostProject.objects.filter(host__owner=alice).count() == 3000
