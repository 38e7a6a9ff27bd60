"""The projects page: choosing with shares, and what it says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from accounting.models import Project, UserProject
from portal.models import User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.page_text import text_of

CREDIT, HOUR = 1_000_000, 3_600_000_000


@pytest.fixture
def three(db: None) -> list[Project]:
    key = "k" * 32
    return [
        make_project("Alps", account_key=key, summary="How fast do glaciers melt?"),
        make_project("Bees", account_key=key),
        make_project("Comets", account_key=key, default_share=50),
    ]


def ticked(body: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'name="p(\d+)-chosen"[^>]* checked', body)]


def save(client: Client, **fields: Any) -> Any:
    return client.post(reverse("projects"), fields, follow=True)


def test_without_a_choice_the_page_says_that_all_work(signed_in: Client, three: list[Project]) -> None:
    answer = signed_in.get(reverse("projects"))
    text = text_of(answer)
    assert "You have not chosen projects by hand, so each computer gets suitable ones" in text
    # 100 of 250, 100 of 250, 50 of 250
    assert re.findall(r"(\d+) % of the work", text) == ["40", "40", "20"]
    assert ticked(answer.content.decode()) == []
    assert "How fast do glaciers melt?" in text


def test_a_stranger_reads_what_the_projects_are_about(client: Client, three: list[Project]) -> None:
    text = text_of(client.get(reverse("projects")))
    assert "Alps How fast do glaciers melt?" in text and "Comets" in text
    assert "Create an account" in text and "Current share" not in text


def test_choosing_two_with_shares(signed_in: Client, alice: User, three: list[Project]) -> None:
    a, b, c = (f"p{project.pk}" for project in three)
    answer = save(signed_in, **{f"{a}-chosen": "on", f"{a}-share": "150", f"{c}-chosen": "on", f"{b}-share": "7"})
    text = text_of(answer)
    assert "Saved. Your computers work for the 2 projects that you chose." in text
    # 150 and the default of 50: 75 % and 25 %; the third gets nothing
    assert re.findall(r"Current share (\d+ %|no work)", text) == ["75 %", "no work", "25 %"]
    assert ticked(answer.content.decode()) == [three[0].pk, three[2].pk]
    rows = UserProject.objects.filter(user=alice, is_chosen=True).order_by("project__name")
    assert [(row.project.name, row.resource_share) for row in rows] == [("Alps", 150), ("Comets", None)]


def test_a_share_for_a_project_without_its_tick_is_kept_for_later(
    signed_in: Client, alice: User, three: list[Project]
) -> None:
    a, b = (f"p{project.pk}" for project in three[:2])
    text = text_of(save(signed_in, **{f"{a}-chosen": "on", f"{b}-share": "7"}))
    assert "Saved. Your computers work for the project that you chose." in text
    row = UserProject.objects.get(user=alice, project=three[1])
    assert (row.is_chosen, row.resource_share) == (False, 7)
    save(signed_in, **{f"{a}-chosen": "on", f"{b}-share": ""})
    row.refresh_from_db()
    assert (row.is_chosen, row.resource_share) == (False, None)


def test_one_button_goes_back_to_all_whatever_is_in_the_form(signed_in: Client, three: list[Project]) -> None:
    name = f"p{three[0].pk}"
    save(signed_in, **{f"{name}-chosen": "on", f"{name}-share": "150"})
    answer = save(signed_in, **{f"{name}-chosen": "on", f"{name}-share": "nonsense", "all": "1"})
    assert "Your subjects decide which projects your computers work for." in text_of(answer)
    assert not UserProject.objects.filter(is_chosen=True).exists()


def test_saving_with_nothing_ticked_goes_back_to_all(signed_in: Client, three: list[Project]) -> None:
    save(signed_in, **{f"p{three[0].pk}-chosen": "on"})
    assert "You have not chosen" in text_of(save(signed_in))


@pytest.mark.parametrize(
    ("share", "says"),
    [
        ("-1", "The smallest share is 0."),
        ("1000001", "The largest share is 1 000 000."),
        ("1e304", "The largest share is 1 000 000."),
        ("nan", "Enter a number from 0 to 1 000 000"),
        ("inf", "Enter a number from 0 to 1 000 000"),
        ("ten", "Enter a number from 0 to 1 000 000"),
        ("9" * 5000, "Enter a number from 0 to 1 000 000"),
    ],
)
def test_a_share_that_cannot_be_is_told_beside_it_and_nothing_is_saved(
    signed_in: Client, three: list[Project], share: str, says: str
) -> None:
    name = f"p{three[0].pk}"
    answer = save(signed_in, **{f"{name}-chosen": "on", f"{name}-share": share, f"p{three[1].pk}-chosen": "on"})
    text = text_of(answer)
    assert "Nothing was saved. Please correct the share below." in text and says in text
    assert ticked(answer.content.decode()) == [three[0].pk, three[1].pk]
    assert not UserProject.objects.exists()


def test_the_page_says_when_computers_learn_of_it(signed_in: Client, three: list[Project], settings: Settings) -> None:
    settings.AM_REPEAT_SECS = 2 * 3600
    text = text_of(signed_in.get(reverse("projects")))
    assert "about every 2 h" in text and "boinccmd --acct_mgr sync" in text


def test_ones_part_at_each_project(signed_in: Client, alice: User, bob: User, three: list[Project]) -> None:
    for name in ("one", "two"):
        credit(make_host(alice, name), three[0], "2026-01-05", (200 * CREDIT, 50 * CREDIT, 2 * HOUR, HOUR, 3, 1))
    credit(make_host(bob, "bobs"), three[1], "2026-01-05", (10**12, 0, HOUR, 0, 3, 1))
    text = text_of(signed_in.get(reverse("projects")))
    # two computers, each with 200 + 50 credits, 2 + 1 hours, 3 + 1 tasks
    assert "Your contribution 500 credits 6 h , 8 tasks" in text
    assert text.count("nothing yet") == 2


def test_a_project_without_an_account_is_said_to_get_no_work(signed_in: Client, three: list[Project]) -> None:
    make_project("Quasars", account_mode=Project.Account.PER_USER)
    text = text_of(signed_in.get(reverse("projects")))
    assert "Quasars no account yet" in text and "Current share no work" in text


def test_a_choice_that_cannot_take_effect_is_said_to_have_none(signed_in: Client, three: list[Project]) -> None:
    quasars = make_project("Quasars", account_mode=Project.Account.PER_USER)
    text = text_of(save(signed_in, **{f"p{quasars.pk}-chosen": "on"}))
    assert "None of the projects you chose can use your computers at present" in text
    assert "You have not chosen" not in text
    assert re.findall(r"Current share (\d+ %|no work)", text) == ["40 %", "40 %", "20 %", "no work"]


def test_a_project_that_ended_keeps_its_totals_and_cannot_be_chosen(
    signed_in: Client, alice: User, three: list[Project]
) -> None:
    credit(make_host(alice, "one"), three[0], "2026-01-05", (200 * CREDIT, 0, 0, 0, 0, 0))
    Project.objects.filter(pk=three[0].pk).update(is_active=False)
    answer = save(signed_in, **{f"p{three[0].pk}-chosen": "on", f"p{three[1].pk}-chosen": "on"})
    assert "Projects that no longer accept computers" in text_of(answer) and "Alps 200" in text_of(answer)
    assert [row.project.name for row in UserProject.objects.filter(is_chosen=True)] == ["Bees"]


def test_no_project_yet(signed_in: Client) -> None:
    assert "There is no project yet" in text_of(signed_in.get(reverse("projects")))


def test_a_choice_needs_a_csrf_token(alice: User, three: list[Project]) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post(reverse("projects"), {f"p{three[0].pk}-chosen": "on"}).status_code == 403
    assert not UserProject.objects.exists()
