"""The pages about computers: the list, one computer, what its owner can do, and who may see them."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounting.models import Day, HostLedger, HostProject, Project
from portal.languages.messages import Message
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_text import text_of

CREDIT, HOUR = 1_000_000, 3_600_000_000
TIMES = "\u00d7"


@pytest.fixture
def glaciers(db: None) -> Project:
    return make_project("Glaciers", account_key="k" * 32)


@pytest.fixture
def tower(alice: User) -> Host:
    """Alice's computer with a GPU, heard of a minute ago."""
    host = make_host(
        alice,
        "tower",
        p_fpops=5.1e9,
        p_model="Core(TM) i5 [Family 6 Model 1]",
        m_nbytes=32 * 2**30,
        d_total=512 * 2**30,
        client_version="8.0.2",
        coprocs=[{"type": "NVIDIA", "name": "GeForce RTX 3060", "count": 2, "peak_flops": 12.7e12}],
    )
    Host.objects.filter(pk=host.pk).update(last_contact_at=timezone.now() - dt.timedelta(minutes=1))
    host.refresh_from_db()
    return host


def page(client: Client, name: str, *args: object) -> str:
    """The page's text without tags, white space folded."""
    response = client.get(reverse(name, args=args))
    assert response.status_code == 200
    return text_of(response)


# --- the list -------------------------------------------------------------------------------------------


def test_the_list_shows_what_each_computer_is_and_did(signed_in: Client, tower: Host, glaciers: Project) -> None:
    today = timezone.now().date().isoformat()
    credit(tower, glaciers, "2026-01-05", (200 * CREDIT, 100 * CREDIT, 0, 0, 0, 0))
    credit(tower, glaciers, today, (40 * CREDIT, 2 * CREDIT, 0, 0, 0, 0))
    text = page(signed_in, "computers")
    # today 40 + 2, in all 200 + 100 + 40 + 2
    assert f"tower 1 min ago Linux Debian 4 {TIMES} Core i5 2 {TIMES} GeForce RTX 3060 1 min ago 42 342" in text


def test_retired_computers_are_folded_and_merged_ones_gone(signed_in: Client, alice: User, tower: Host) -> None:
    make_host(alice, "netbook", retired_at=timezone.now())
    make_host(alice, "tower before", merged_into=tower)
    text = page(signed_in, "computers")
    assert "1 retired computer Name" in text and "netbook" in text.split("1 retired computer")[1]
    assert "tower before" not in text


def test_an_empty_list_says_how_to_get_there(signed_in: Client) -> None:
    text = page(signed_in, "computers")
    assert "No computer is connected yet" in text and "Connect a computer" in text


def test_names_are_not_markup(signed_in: Client, alice: User) -> None:
    make_host(alice, "<script>alert(1)</script>")
    body = signed_in.get(reverse("computers")).content.decode()
    assert "<script>alert" not in body and "&lt;script&gt;alert" in body


# --- one computer ------------------------------------------------------------------------------------


def test_hardware_is_told_in_human_terms(signed_in: Client, tower: Host) -> None:
    text = page(signed_in, "host", tower.pk)
    assert "5.1 GFLOPS per processor, 20.4 GFLOPS in total" in text  # 4 times 5.1
    assert f"2 {TIMES} GeForce RTX 3060 12.7 TFLOPS peak each" in text
    assert "Memory 32 GiB" in text and "Disk 512 GiB" in text and "BOINC 8.0.2" in text


def test_a_speed_that_was_never_measured_is_said_to_be_so(signed_in: Client, alice: User) -> None:
    host = make_host(alice, "pc", p_fpops=1e9)
    text = page(signed_in, "host", host.pk)
    assert "the speed has never been measured" in text and "boinccmd --run_benchmarks" in text


def test_totals_per_project_and_what_waits(signed_in: Client, tower: Host, glaciers: Project) -> None:
    credit(tower, glaciers, "2026-01-05", (200 * CREDIT, 100 * CREDIT, 5 * HOUR, 3 * HOUR, 7, 1))
    HostProject.objects.update(pending=[8 * CREDIT, 0, 0, 0, 0, 0], listed=True)
    text = page(signed_in, "host", tower.pk)
    assert "Glaciers 100 % 0 300 8 5 h 3 h 7 1 attached" in text


def test_what_the_client_said_of_a_project(signed_in: Client, tower: Host, glaciers: Project) -> None:
    state = {"no_work": ["NVIDIA"], "failures": 3, "ended": True, "suspended": True, "by_owner": True}
    HostProject.objects.create(host=tower, project=glaciers, listed=True, state=state)
    text = page(signed_in, "host", tower.pk)
    assert (
        "no work for NVIDIA; 3 requests in a row failed; the project says that it has ended; suspended; "
        "attached by hand" in text
    )


def test_time_statistics_are_told_and_unknown_ones_left_out(signed_in: Client, tower: Host) -> None:
    contact = {
        "run_mode": "auto",
        "d_free": 100 * 2**30,
        "time_stats": {"on_frac": 0.93, "connected_frac": -1, "active_frac": 0.5, "gpu_active_frac": 0.25},
        "net_stats": {"bwup": 2**20, "bwdown": 3 * 2**20},
    }
    HostLedger.objects.filter(host=tower).update(contact=contact)
    text = page(signed_in, "host", tower.pk)
    assert "BOINC runs 93 % of the time May run tasks 50 % of that GPUs 25 %" in text
    assert "Network 3 MiB per second down 1 MiB per second up" in text
    assert "100 GiB free of 512 GiB" in text
    assert "Connected" not in text


@pytest.mark.parametrize("contact", [{}, {"time_stats": None}, {"time_stats": {"on_frac": "x"}, "d_free": None}])
def test_a_client_that_says_little_is_no_error(signed_in: Client, tower: Host, contact: dict[str, object]) -> None:
    HostLedger.objects.filter(host=tower).update(contact=contact)
    assert "BOINC client" in page(signed_in, "host", tower.pk)


def test_a_computer_without_any_description_has_a_page(signed_in: Client, alice: User) -> None:
    host = Host.objects.create(owner=alice)
    text = page(signed_in, "host", host.pk)
    assert f"computer {host.pk}" in text and "not reported yet" in text


def test_hardware_that_cannot_be_is_said_to_be_left_out(signed_in: Client, alice: User) -> None:
    host = make_host(alice, "pc", hardware_faults=[Message("reported_no_number", field="p_fpops", low=0.0, high=1e15)])
    assert "cannot be right and was ignored" in page(signed_in, "host", host.pk)
    assert "p_fpops is not a decimal number from 0 to 1e+15" in page(signed_in, "host", host.pk)


def test_notes_are_sentences(signed_in: Client, tower: Host, glaciers: Project) -> None:
    today = timezone.now().date().isoformat()
    make_note(tower, "ec_above_time", today, project=glaciers, detail="gpu_ec", amount=1_500 * CREDIT, count=2)
    text = page(signed_in, "host", tower.pk)
    assert "Glaciers claimed 1 500 credits for GPU work more than its run time allows" in text
    assert "2 times that day" in text


def test_a_silent_computer_says_what_to_do(signed_in: Client, alice: User) -> None:
    host = make_host(alice, "attic", "2026-01-01", "2026-02-01")
    text = page(signed_in, "host", host.pk)
    assert "This computer has not synced for a while" in text and "boinccmd --acct_mgr sync" in text


def test_a_merged_record_leads_to_the_one_in_use(signed_in: Client, alice: User, tower: Host) -> None:
    old = make_host(alice, "old tower", merged_into=tower)
    assert signed_in.get(reverse("host", args=[old.pk])).headers["Location"] == reverse("host", args=[tower.pk])
    assert "old tower" in page(signed_in, "host", tower.pk)
    signed_in.post(reverse("host_settings", args=[old.pk]), {"name": "Tower", "venue": ""})
    assert list(Host.objects.order_by("pk").values_list("given_name", flat=True)) == ["Tower", ""]


# --- what an owner does ---------------------------------------------------------------------------------


def test_rename_and_venue(signed_in: Client, tower: Host) -> None:
    answer = signed_in.post(
        reverse("host_settings", args=[tower.pk]), {"name": "  Big tower ", "venue": "home"}, follow=True
    )
    assert "Saved. This computer is now called Big tower." in text_of(answer)
    tower.refresh_from_db()
    assert (tower.given_name, tower.venue) == ("Big tower", "home")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"name": "x" * 101, "venue": ""}, "at most 100"),
        ({"name": "a\u202eb", "venue": ""}, "invisible character"),
        ({"name": "a\0b", "venue": ""}, "Null characters"),
        ({"name": "ok", "venue": "attic"}, "not one of the available choices"),
    ],
)
def test_a_name_or_venue_that_cannot_be_is_told_beside_the_field(
    signed_in: Client, tower: Host, data: dict[str, str], says: str
) -> None:
    answer = signed_in.post(reverse("host_settings", args=[tower.pk]), data)
    assert says in text_of(answer)
    tower.refresh_from_db()
    assert (tower.given_name, tower.venue) == ("", "")


def test_wishes_are_saved_and_shown_again(signed_in: Client, tower: Host, glaciers: Project) -> None:
    HostProject.objects.create(host=tower, project=glaciers, credited=[9] * 6, listed=True)
    name = f"p{glaciers.pk}"
    data = {f"{name}-no_new_work": "on", f"{name}-update_asked": "on", f"{name}-no_rsc": ["NVIDIA"]}
    answer = signed_in.post(reverse("host_wishes", args=[tower.pk]), data, follow=True)
    assert "takes effect at the next sync" in text_of(answer)
    row = HostProject.objects.get()
    assert (row.no_new_work, row.update_asked, row.no_rsc) == (True, True, ["NVIDIA"])
    assert (row.suspended, row.excluded, row.credited) == (False, False, [9] * 6)
    body = signed_in.get(reverse("host", args=[tower.pk])).content.decode()
    assert {m for m in re.findall(r'name="p\d+-(\w+)"[^>]* checked', body)} == {
        "no_new_work",
        "update_asked",
        "no_rsc",
    }


def test_a_kind_of_processor_that_the_computer_lacks_cannot_be_named(
    signed_in: Client, tower: Host, glaciers: Project
) -> None:
    answer = signed_in.post(reverse("host_wishes", args=[tower.pk]), {f"p{glaciers.pk}-no_rsc": ["quantum"]})
    assert "quantum is not one of the available choices" in text_of(answer)
    assert not HostProject.objects.exists()


def test_a_computer_is_retired_and_taken_back(signed_in: Client, tower: Host) -> None:
    answer = signed_in.post(reverse("host_retire", args=[tower.pk]), follow=True)
    assert "tower has been retired. Its history is kept." in text_of(answer)
    assert "Restore" in page(signed_in, "host", tower.pk)
    signed_in.post(reverse("host_unretire", args=[tower.pk]))
    tower.refresh_from_db()
    assert tower.retired_at is None


def test_merging_shows_what_it_would_do_then_does_it(signed_in: Client, alice: User, glaciers: Project) -> None:
    old = make_host(alice, "pc", "2026-01-01", "2026-02-01", given_name="Old pc")
    new = make_host(alice, "pc", "2026-02-02", "2026-03-01")
    credit(old, glaciers, "2026-01-05", (200 * CREDIT, 0, 5 * HOUR, 0, 7, 1))
    assert "Old pc" in page(signed_in, "host_merge", new.pk)
    shown = text_of(signed_in.get(reverse("host_merge", args=[new.pk]), {"with": old.pk}))
    assert "Removed: Old pc" in shown and "Kept: pc" in shown and "Credit 200 Run time 5 h Tasks 8 Days 1" in shown
    assert Day.objects.get().host == old
    answer = signed_in.post(reverse("host_merge", args=[new.pk]), {"with": old.pk}, follow=True)
    assert answer.redirect_chain == [(reverse("host", args=[new.pk]), 302)]
    assert "Merged. Old pc now has the history of both." in text_of(answer)
    assert Day.objects.get().host == new


def test_a_merge_that_cannot_be_is_explained(signed_in: Client, alice: User) -> None:
    one = make_host(alice, "one", "2026-01-01", "2026-02-01")
    other = make_host(alice, "other", "2026-01-15", "2026-03-01")
    for answer in (
        signed_in.get(reverse("host_merge", args=[one.pk]), {"with": other.pk}),
        signed_in.post(reverse("host_merge", args=[one.pk]), {"with": other.pk}),
    ):
        assert "one from 1 Jan 2026, 00:00 UTC to 1 Feb 2026, 00:00 UTC" in text_of(answer)
        assert "Nothing was changed." in text_of(answer)
    assert "None of your other computers can be merged" in page(signed_in, "host_merge", one.pk)
    assert not Host.objects.exclude(merged_into=None).exists()


# --- who may --------------------------------------------------------------------------------------------

# Each address with its way in: what it answers to its owner.
ADDRESSES = [
    ("computers", "get", 200),
    ("host", "get", 200),
    ("host_settings", "post", 200),  # with an empty form: the mistake is shown
    ("host_wishes", "post", 302),
    ("host_retire", "post", 302),
    ("host_unretire", "post", 302),
    ("host_merge", "get", 200),
    ("host_merge_with", "get", 200),
    ("host_merge_with", "post", 200),  # refused: they were in contact at the same time
    ("projects", "get", 200),
    ("projects", "post", 302),
]


def ask(client: Client, name: str, method: str, mine: Host, other: Host) -> Any:
    if name in ("computers", "projects"):
        return getattr(client, method)(reverse(name))
    data = {"with": other.pk} if name == "host_merge_with" else {"venue": "nowhere"}
    return getattr(client, method)(reverse(name.removesuffix("_with"), args=[mine.pk]), data)


@pytest.mark.parametrize("who", ["alice", "bob", "operator", "anonymous"])
@pytest.mark.parametrize(("name", "method", "to_owner"), ADDRESSES)
def test_a_computer_is_there_for_its_owner_alone(
    request: pytest.FixtureRequest,
    client: Client,
    tower: Host,
    glaciers: Project,
    who: str,
    name: str,
    method: str,
    to_owner: int,
) -> None:
    other = make_host(tower.owner, "other", "2026-01-01", "2026-12-01")
    before = list(Host.objects.order_by("pk").values())
    if who != "anonymous":
        client.force_login(request.getfixturevalue(who))
    answer = ask(client, name, method, tower, other)
    if who == "anonymous" and (name, method) == ("projects", "get"):
        assert answer.status_code == 200
    elif who == "anonymous":
        assert answer.status_code == 302 and answer.headers["Location"].startswith("/account/login/")
    elif who == "alice" or name in ("computers", "projects"):
        assert answer.status_code == to_owner
    else:
        assert answer.status_code == 404
    if who != "alice":
        assert "tower" not in answer.content.decode()
        assert list(Host.objects.order_by("pk").values()) == before


def test_one_cannot_merge_with_somebody_elses_computer(signed_in: Client, bob: User, tower: Host) -> None:
    bobs = make_host(bob, "bobs", "2025-01-01", "2025-02-01")
    for method in (signed_in.get, signed_in.post):
        assert method(reverse("host_merge", args=[tower.pk]), {"with": bobs.pk}).status_code == 404
    for nonsense in ("x", "-1", "9" * 30, "", "1e3", "٣"):
        answer = signed_in.get(reverse("host_merge", args=[tower.pk]), {"with": nonsense})
        assert answer.status_code == 404


def test_numbers_beyond_any_record_are_not_found(signed_in: Client) -> None:
    assert signed_in.get(f"/computers/{10**30}/").status_code == 404
    assert signed_in.get("/computers/0/").status_code == 404


@pytest.mark.parametrize("name", ["host_settings", "host_wishes", "host_retire", "host_unretire"])
def test_changes_need_a_post_with_a_csrf_token(alice: User, tower: Host, name: str) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    address = reverse(name, args=[tower.pk])
    assert strict.get(address).status_code == 405
    assert strict.post(address).status_code == 403
    tower.refresh_from_db()
    assert tower.retired_at is None


# --- as many as there are -------------------------------------------------------------------------------
