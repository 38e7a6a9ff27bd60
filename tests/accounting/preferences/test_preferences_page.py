"""Computing preferences: complete sets, presets, places; and what a client hears of them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounting.engine.preferences import PREFERENCES, PRESETS, complete, faults, own_venues
from accounting.models import AccountSettings, Project
from accounting.preferences.save import forget_set, read_saved, save_set
from accounting.preferences.texts import GROUPS, PRESET_WORDS
from portal.models import Host, User
from tests.support.accounting_factories import make_host
from tests.support.am_rpc import attach, host_of, sync
from tests.support.page_reader import Page, page_of

PAGE = "/account/preferences/"


def read_sets(user: User) -> dict[str, dict[str, float]]:
    """The saved sets by venue, each complete, without the days."""
    return {venue: saved.values for venue, saved in read_saved(user).items()}


def sent_set(element: ElementTree.Element) -> dict[str, float]:
    """A set as the reply has it, without time and places."""
    return {child.tag: float(child.text or "") for child in element if child.tag in PREFERENCES}


def form_data(**changed: float) -> dict[str, str]:
    """What the page's form sends: numbers as text, and the switches that are on."""
    values = complete({}) | changed
    switches = {name for name, limits in PREFERENCES.items() if limits[1:] == (0, 1)}
    return {name: f"{value:g}" for name, value in values.items() if value or name not in switches}


def test_every_preference_has_words_and_stands_once_on_the_page() -> None:
    form_page = [name for group in GROUPS.values() for name in group]
    assert sorted(form_page) == sorted(PREFERENCES)
    labels = [words.label for group in GROUPS.values() for words in group.values()]
    assert len(set(labels)) == len(labels)  # each tells its field apart
    assert set(PRESET_WORDS) == set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_within_the_limits_and_complete(name: str) -> None:
    assert faults(PRESETS[name]) == []
    whole = complete(PRESETS[name])
    assert set(whole) == set(PREFERENCES)
    assert {key: whole[key] for key in PRESETS[name]} == PRESETS[name]


def test_places_are_checked_like_everywhere() -> None:
    assert faults({"venues": {"home": {"max_ncpus_pct": 50}}}) == []
    wrong = {"venues": {"home": {"max_ncpus_pct": 500}, "moon": {}, "work": 3, "school": {"venues": {}}}}
    assert faults(wrong) == [
        "moon is no place that clients know",
        "home: max_ncpus_pct must be from 1 to 100",
        "work must be a set of preferences",
        "school must be a set of preferences",
    ]
    assert faults({"venues": 3}) == ["venues must be sets of preferences by place"]
    assert own_venues({"venues": 3}) == {} and list(own_venues(wrong)) == ["home", "school"]


def test_the_next_reply_carries_complete_sets(signed_in: Client, alice: User, projects: list[Project]) -> None:
    studio = attach(alice)
    assert sync(studio).root.find("global_preferences") is None
    signed_in.post(PAGE, form_data(max_ncpus_pct=75.0, run_on_batteries=1))
    signed_in.post(f"{PAGE}?place=work", {"preset": "office"})
    Host.objects.filter(pk=host_of(studio).pk).update(venue="work")
    reply = sync(studio)
    sent = reply.root.find("global_preferences")
    assert sent is not None and reply.text("host_venue") == "work"
    assert sent_set(sent) == complete({"max_ncpus_pct": 75, "run_on_batteries": 1})
    (work,) = sent.findall("venue")
    assert work.get("name") == "work"
    assert sent_set(work) == complete(PRESETS["office"])
    saved_at = AccountSettings.objects.get(user=alice).preferences_at
    assert saved_at is not None and sent.findtext("mod_time") == str(int(saved_at.timestamp()))


def test_what_is_forgotten_is_sent_no_more(signed_in: Client, alice: User, projects: list[Project]) -> None:
    studio = attach(alice)
    signed_in.post(PAGE, {"preset": "everything"})
    signed_in.post(f"{PAGE}?place=home", {"preset": "office"})
    signed_in.post(f"{PAGE}?place=home", {"forget": "1"})
    sent = sync(studio).root.find("global_preferences")
    assert sent is not None and sent.find("venue") is None
    assert sent_set(sent) == complete(PRESETS["everything"])
    signed_in.post(PAGE, {"forget": "1"})
    assert sync(studio).root.find("global_preferences") is None


def test_the_form_shows_what_is_saved(signed_in: Client) -> None:
    signed_in.post(PAGE, form_data(work_buf_min_days=0.25, max_bytes_sec_up=250, run_if_user_active=0))
    form_page = page_of(signed_in, PAGE)
    fields = {
        e.attributes["name"]: e.attributes for e in form_page.all("input") if e.attributes.get("name") in PREFERENCES
    }
    assert set(fields) == set(PREFERENCES)
    assert fields["work_buf_min_days"]["value"] == "0.25"
    # The client's bytes are the page's kilobytes.
    assert fields["max_bytes_sec_up"]["value"] == "250"
    assert "checked" not in fields["run_if_user_active"]
    again = {name: field.get("value", "") for name, field in fields.items() if field["type"] in ("number", "text")}
    again |= {name: "on" for name, field in fields.items() if "checked" in field}
    before = AccountSettings.objects.get().preferences
    signed_in.post(PAGE, again)
    assert before["max_bytes_sec_up"] == 250_000
    assert AccountSettings.objects.get().preferences == before


def test_a_place_follows_everywhere_until_it_has_its_own(signed_in: Client, alice: User) -> None:
    assert "Nothing is saved for this place" in page_of(signed_in, f"{PAGE}?place=home").words
    signed_in.post(PAGE, {"preset": "usual"})
    assert "no preferences of its own" in page_of(signed_in, f"{PAGE}?place=home").words
    signed_in.post(f"{PAGE}?place=home", {"preset": "office"})
    assert read_sets(alice) == {"": complete({}), "home": complete(PRESETS["office"])}
    # Saving for everywhere leaves the place as it is.
    signed_in.post(PAGE, {"preset": "everything"})
    assert read_sets(alice) == {"": complete(PRESETS["everything"]), "home": complete(PRESETS["office"])}


def test_a_place_alone_can_have_preferences(signed_in: Client, alice: User, projects: list[Project]) -> None:
    office, studio = attach(alice, "office"), attach(alice, "studio")
    Host.objects.filter(pk=host_of(office).pk).update(venue="work")
    form_page = page_of(signed_in, f"{PAGE}?place=work")
    assert "Save for “Work”" in form_page.words
    assert signed_in.post(f"{PAGE}?place=work", {"preset": "office"}).status_code == 302
    assert read_sets(alice) == {"work": complete(PRESETS["office"])}
    sent = sync(office).root.find("global_preferences")
    assert sent is not None and sent_set(sent) == complete(PRESETS["office"])
    assert [venue.get("name") for venue in sent.findall("venue")] == ["work"]
    # A computer elsewhere keeps its own.
    assert sync(studio).root.find("global_preferences") is None
    signed_in.post(f"{PAGE}?place=work", {"forget": "1"})
    assert sync(office).root.find("global_preferences") is None
    assert AccountSettings.objects.get(user=alice).preferences_at is None


def test_a_place_keeps_its_preferences_when_those_for_everywhere_are_removed(signed_in: Client, alice: User) -> None:
    signed_in.post(PAGE, {"preset": "usual"})
    signed_in.post(f"{PAGE}?place=home", {"preset": "office"})
    signed_in.post(PAGE, {"forget": "1"})
    assert read_sets(alice) == {"home": complete(PRESETS["office"])}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max_ncpus_pct", "101"),
        ("max_ncpus_pct", "0"),
        ("start_hour", "-1"),
        ("work_buf_min_days", "nan"),
        ("work_buf_min_days", "inf"),
        ("disk_max_used_gb", "1e304"),
        ("idle_time_to_run", ""),
        ("idle_time_to_run", "ten"),
    ],
)
def test_a_number_that_cannot_be_saves_nothing(signed_in: Client, name: str, text: str) -> None:
    reply = signed_in.post(PAGE, form_data() | {name: text})
    form_page = Page(reply.content.decode())
    assert reply.status_code == 422
    assert "Nothing was saved" in form_page.words
    assert [e.attributes["id"] for e in form_page.all("ul", **{"class": "errorlist"})] == [f"id_{name}_error"]
    assert not AccountSettings.objects.exists()


def test_saving_keeps_the_keywords(alice: User) -> None:
    AccountSettings.objects.create(user=alice, keywords_yes=[1, 2], keywords_no=[3])
    save_set(alice, "", {})
    forget_set(alice, "")
    saved = AccountSettings.objects.get()
    assert (saved.keywords_yes, saved.keywords_no, saved.preferences) == ([1, 2], [3], {})


def test_a_place_that_nobody_knows_is_named_and_never_saved_to(signed_in: Client, alice: User) -> None:
    assert "“moon” is not a place." in signed_in.get(f"{PAGE}?place=moon").content.decode()
    assert signed_in.post(f"{PAGE}?place=moon", {}).status_code == 404
    with pytest.raises(ValueError, match="moon"):
        save_set(alice, "moon", {})


def test_preferences_are_ones_own(signed_in: Client, alice: User, bob: User, operator: User) -> None:
    signed_in.post(PAGE, {"preset": "office"})
    for visitor in (bob, operator):
        assert read_sets(visitor) == {}
        signed_in.force_login(visitor)
        assert "Nothing is saved here" in page_of(signed_in, PAGE).words
        signed_in.post(PAGE, {"forget": "1"})
    assert read_sets(alice) == {"": complete(PRESETS["office"])}
    assert Client().get(PAGE).status_code == 302
    assert Client(enforce_csrf_checks=True).post(PAGE, {"preset": "usual"}).status_code == 403


def test_the_page_counts_the_computers_of_a_place_at_no_cost(
    signed_in: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    # Session, user; preferences, what BOINC shows, computers by place; whether the address is confirmed.
    for _ in range(2):
        with django_assert_num_queries(6):
            signed_in.get(PAGE)
        for number in range(3):
            make_host(alice, f"node-{number}", venue="home")
    signed_in.post(PAGE, {"preset": "usual"})
    signed_in.post(f"{PAGE}?place=home", {"preset": "usual"})
    words = page_of(signed_in, f"{PAGE}?place=home").words
    assert "6 computers follow these" in words.replace("\u00a0", " ")
    assert "0 computers follow these" in page_of(signed_in, PAGE).words.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("typed", "hours", "displayed"),
    [
        ("22:30", 22.5, "22:30"),
        ("22:20", 22 + 1 / 3, "22:20"),
        ("7", 7.0, "7:00"),
        ("07:05", 7 + 5 / 60, "7:05"),
        ("22.5", 22.5, "22:30"),
        ("22,5", 22.5, "22:30"),
        ("24:00", 24.0, "24:00"),
    ],
)
def test_a_time_of_day_is_taken_as_people_write_it(signed_in: Client, typed: str, hours: float, displayed: str) -> None:
    assert signed_in.post(PAGE, form_data() | {"start_hour": typed}).status_code == 302
    assert AccountSettings.objects.get().preferences["start_hour"] == pytest.approx(hours)
    (field,) = page_of(signed_in, PAGE).all("input", name="start_hour")
    assert field.attributes["value"] == displayed


@pytest.mark.parametrize("typed", ["22.30", "24:01", "22:60", "half past ten", "25"])
def test_a_time_that_cannot_be_is_told_with_an_example(signed_in: Client, typed: str) -> None:
    reply = signed_in.post(PAGE, form_data() | {"start_hour": typed})
    form_page = Page(reply.content.decode())
    assert reply.status_code == 422 and "enter a time from 0:00 to 24:00, such as 22:30" in form_page.words
    (field,) = form_page.all("input", name="start_hour")
    assert field.attributes["value"] == typed


def test_groups_are_folded_unless_they_are_main_or_something_in_them_differs(signed_in: Client) -> None:
    """Two of five are open on wide pages, and are folded on phones unless something in them differs."""

    def states(page: str) -> tuple[int, int]:
        groups = re.findall('<details class="card fold preferences"([^>]*)>', page)[:5]
        return sum(" open" in group for group in groups), sum("data-folds" in group for group in groups)

    def form_page() -> tuple[int, int]:
        return states(signed_in.get(PAGE).content.decode())

    assert form_page() == (2, 2)
    signed_in.post(PAGE, form_data(vm_max_used_pct=50))
    assert form_page() == (3, 2)
    signed_in.post(PAGE, form_data(vm_max_used_pct=50, max_ncpus_pct=50))
    assert form_page() == (3, 1)
    wrong = signed_in.post(PAGE, form_data() | {"disk_min_free_gb": "-1", "vm_max_used_pct": "75"})
    assert states(wrong.content.decode()) == (3, 2)


def test_a_number_has_its_range_beside_it(signed_in: Client) -> None:
    words = page_of(signed_in, PAGE).words
    assert "Processors while I use it, at most (%, 1–100)" in words
