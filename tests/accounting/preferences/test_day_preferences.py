"""Days of the week with hours of their own, what BOINC shows, and jobs to be dropped: from the page to the reply."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from django.test import Client

from accounting.engine.preferences import canonical, complete, days_of, faults
from accounting.models import AccountSettings, Project
from accounting.preferences.forms import DAYS, DaysForm
from accounting.preferences.save import read_saved, save_set
from portal.models import User
from tests.accounting.preferences.test_preferences_page import form_data
from tests.support.am_rpc import Reply, attach, host_of, hours_pass, sync
from tests.support.page_reader import Page, page_of

PAGE = "/account/preferences/"


def days_told(element: ElementTree.Element) -> dict[int, dict[str, float]]:
    """The days that a set in a reply has, as a client reads them."""
    return {
        int(day.findtext("day_of_week", "")): {
            child.tag: float(child.text or "") for child in day if child.tag != "day_of_week"
        }
        for day in element.findall("day_prefs")
    }


# --- sets -------------------------------------------------------------------------------------------------


def test_a_pair_of_hours_is_whole_and_within_its_limits() -> None:
    days = {"0": {"start_hour": 8, "end_hour": 99}, "1": {"start_hour": 8}, "7": {"start_hour": 1, "end_hour": 2}}
    assert days_of({"days": {**days, "2": {"net_start_hour": -1, "net_end_hour": "x"}, "3": 4}}) == {
        0: {"start_hour": 8, "end_hour": 24},
        2: {"net_start_hour": 0, "net_end_hour": 0},
    }
    assert days_of({"days": [1]}) == days_of({}) == {}


def test_a_set_without_days_is_stored_without_them() -> None:
    assert canonical({"days": {}}) == complete({})
    assert canonical({"days": {"6": {"start_hour": 1, "end_hour": 2}}})["days"] == {
        "6": {"start_hour": 1, "end_hour": 2}
    }


def test_faults_of_days_name_the_day() -> None:
    wrong = {"7": {}, "1": {"start_hour": 25, "end_hour": 1}, "2": {"start_hour": 1}, "3": {"max_ncpus_pct": 5}, "4": 1}
    assert faults({"days": wrong}) == [
        "7 is no day: 0 is Sunday, 6 is Saturday",
        "day 1: start_hour must be from 0 to 24",
        "day 2: start_hour and end_hour must be set together",
        "day 3: max_ncpus_pct is none of a day's hours",
        "day 4 must have hours",
    ]
    assert faults({"days": 1}) == ["days must be hours by the number of the day"]
    assert faults({"venues": {"home": {"days": {"1": {"start_hour": 1, "end_hour": 2}}}}}) == []


# --- the page -----------------------------------------------------------------------------------------------


def test_days_go_from_the_page_to_the_client(signed_in: Client, alice: User, projects: list[Project]) -> None:
    studio = attach(alice)
    sunday = {"d0_cpu": "all", "d0_net": "never"}
    monday = {"d1_cpu": "between", "d1_cpu_from": "22:30", "d1_cpu_until": "6"}
    signed_in.post(PAGE, form_data(start_hour=8.0, end_hour=17.0) | sunday | monday)
    signed_in.post(f"{PAGE}?place=home", form_data() | {"d6_cpu": "never"})
    sent = sync(studio).root.find("global_preferences")
    assert sent is not None
    assert days_told(sent) == {
        0: {"start_hour": 0, "end_hour": 24, "net_start_hour": 24, "net_end_hour": 0},
        1: {"start_hour": 22.5, "end_hour": 6},
    }
    home = sent.find("venue")
    assert home is not None and days_told(home) == {6: {"start_hour": 24, "end_hour": 0}}
    assert sent.findtext("start_hour") == "8"
    # Saved again for everywhere, without days, the place keeps its own.
    signed_in.post(PAGE, form_data())
    assert [each.days for each in read_saved(alice).values()] == [{}, {6: {"start_hour": 24, "end_hour": 0}}]


def test_the_form_shows_what_is_saved_and_saves_it_again(signed_in: Client, alice: User) -> None:
    days: dict[int, dict[str, float]] = {
        5: {"start_hour": 9.5, "end_hour": 17, "net_start_hour": 0, "net_end_hour": 24},
        0: {"net_start_hour": 24, "net_end_hour": 0},
    }
    save_set(alice, "", {}, days)
    form = DaysForm(days=read_saved(alice)[""].days)
    again = {field.html_name: str(field.value() or "") for field in form}
    assert {name: value for name, value in again.items() if value} == {
        "d5_cpu": "between",
        "d5_cpu_from": "9:30",
        "d5_cpu_until": "17:00",
        "d5_net": "all",
        "d0_net": "never",
    }
    signed_in.post(PAGE, form_data() | again)
    assert read_saved(alice)[""].days == days


@pytest.mark.parametrize(
    "hours",
    [
        ("", "5"),
        ("5", ""),
        ("25", "5"),
        ("-1", "5"),
        ("nan", "5"),
        ("inf", "5"),
        ("x", "5"),
        ("1e304", "5"),
        ("5", "5"),
    ],
)
def test_hours_that_cannot_be_save_nothing(signed_in: Client, hours: tuple[str, str]) -> None:
    start, end = hours
    given = {"d3_net": "between", "d3_net_from": start, "d3_net_until": end}
    form_page = Page(signed_in.post(PAGE, form_data() | given).content.decode())
    assert "Nothing was saved" in form_page.words and "Wednesday" in form_page.words
    assert form_page.all("ul", **{"class": "errorlist"})
    assert not AccountSettings.objects.exists()


def test_a_mode_that_there_is_not_saves_nothing(signed_in: Client) -> None:
    assert "Nothing was saved" in Page(signed_in.post(PAGE, form_data() | {"d3_cpu": "often"}).content.decode()).words


def test_every_day_is_on_the_page_monday_first(signed_in: Client) -> None:
    words = page_of(signed_in, PAGE).words
    assert list(DAYS) == [1, 2, 3, 4, 5, 6, 0]
    assert sorted(words.index(f"{name}: ") for name in DAYS.values()) == [words.index(f"{n}: ") for n in DAYS.values()]


# --- what BOINC shows -----------------------------------------------------------------------------------------


def test_a_team_and_no_notices_go_to_the_client(signed_in: Client, alice: User, projects: list[Project]) -> None:
    studio = attach(alice)
    before = sync(studio)
    assert (before.text("team_name"), before.root.find("no_project_notices")) == ("", None)
    signed_in.post(f"{PAGE}shown/", {"team_name": "Glaciers & <friends>", "no_project_notices": "on"})
    reply = sync(studio)
    assert reply.text("team_name") == "Glaciers & <friends>"
    assert reply.root.find("no_project_notices") is not None
    signed_in.post(f"{PAGE}shown/", {"team_name": ""})
    assert (sync(studio).text("team_name"), sync(studio).root.find("no_project_notices")) == ("", None)


def test_what_boinc_shows_is_kept_beside_preferences_and_subjects(signed_in: Client, alice: User) -> None:
    AccountSettings.objects.create(user=alice, keywords_yes=[1])
    save_set(alice, "", {})
    signed_in.post(f"{PAGE}shown/", {"team_name": "x" * 101})
    assert AccountSettings.objects.get().team_name == ""
    signed_in.post(f"{PAGE}shown/", {"team_name": "x" * 100})
    saved = AccountSettings.objects.get()
    assert (saved.team_name, saved.keywords_yes, saved.preferences != {}) == ("x" * 100, [1], True)


# --- jobs that have not begun -------------------------------------------------------------------------------


def drops(reply: Reply, project: Project) -> bool:
    return reply.account(project).find("abort_not_started") is not None


def test_waiting_jobs_are_dropped_only_where_no_new_ones_are_wanted(
    signed_in: Client, alice: User, projects: list[Project]
) -> None:
    studio = attach(alice)
    hours_pass(studio, 10)
    sync(studio)
    alpha = projects[0]
    page = f"/computers/{host_of(studio).pk}/projects/"
    signed_in.post(page, {f"p{alpha.pk}-drop_waiting": "on"})
    assert not drops(sync(studio), alpha)
    signed_in.post(page, {f"p{alpha.pk}-drop_waiting": "on", f"p{alpha.pk}-no_new_work": "on"})
    assert drops(sync(studio), alpha)
    signed_in.post(page, {f"p{alpha.pk}-drop_waiting": "on", f"p{alpha.pk}-excluded": "on"})
    leaving = sync(studio)
    assert drops(leaving, alpha) and leaving.account(alpha).find("detach_when_done") is not None
    words = page_of(signed_in, f"/computers/{host_of(studio).pk}/").words
    assert "Drop tasks of Alpha that have not started" in words
