"""Signature images: off until wanted, revoked at once, drawn at most hourly."""

from __future__ import annotations

import datetime as dt
import io

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from PIL import Image
from pytest_django import Settings

from accounting.models import UserProject
from extras.signature_image import links, texts
from extras.signature_image.forms import SignatureImageForm
from extras.signature_image.models import SignatureImage
from extras.signature_image.picture import WIDTH, draw
from extras.signature_image.reads import ImageFacts, read_facts
from portal.models import User
from tests.support.accounting_factories import make_project

pytestmark = pytest.mark.django_db
CREDIT = 1_000_000
PAGE = "/account/signature-image/"


@pytest.fixture
def owner(client: Client, alice: User) -> Client:
    cache.clear()
    now = timezone.now()
    for name, total in (("Alpha", 1000), ("Beta", 3000), ("Gamma", 10), ("Delta", 20)):
        UserProject.objects.create(
            user=alice, project=make_project(name), total_ec=total * CREDIT, avg_ec=8.0, avg_at=now
        )
    client.force_login(alice)
    return client


def path(alice: User) -> str:
    return f"/signature/{SignatureImage.objects.get(user=alice).token}.png"


def test_there_is_none_until_it_is_wanted(owner: Client, alice: User) -> None:
    assert owner.get(PAGE).status_code == 200
    assert not SignatureImage.objects.exists()


def test_strangers_see_the_picture_and_may_keep_it_for_a_while(owner: Client, alice: User) -> None:
    owner.post(PAGE, {"shown_name": "Mara", "shows_total": "on"})
    answer = Client().get(path(alice))
    picture = Image.open(io.BytesIO(answer.content))
    assert (picture.format, picture.width) == ("PNG", WIDTH)
    assert answer.headers["Cache-Control"] == "public, max-age=600"
    again = Client().get(path(alice), headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_it_says_only_what_was_chosen(owner: Client, alice: User) -> None:
    image = SignatureImage(user=alice, shows_total=True, shows_average=False, shows_projects=True)
    facts = read_facts(image, timezone.now())
    assert facts == ImageFacts("", 4030, None, [("Beta", 3000), ("Alpha", 1000), ("Delta", 20)], None)
    assert texts.lines(facts)[0] == "Estimated credit 4\u202f030"


def test_the_average_halves_in_a_week_without_work(owner: Client, alice: User) -> None:
    image = SignatureImage(user=alice)
    # Four projects with 8 credits a day each
    assert read_facts(image, timezone.now()).average in (31, 32)
    assert read_facts(image, timezone.now() + dt.timedelta(days=7)).average in (15, 16)


def test_it_is_not_drawn_anew_until_its_owner_changes_it(owner: Client, alice: User) -> None:
    owner.post(PAGE, {"shown_name": "Mara", "shows_total": "on"})
    first = Client().get(path(alice)).content
    UserProject.objects.filter(user=alice).update(total_ec=9_999 * CREDIT)
    with CaptureQueriesContext(connection) as asked:
        assert Client().get(path(alice)).content == first
    assert not [query for query in asked if "userproject" in query["sql"]]
    owner.post(PAGE, {"shown_name": "Mara R.", "shows_total": "on"})
    assert Client().get(path(alice)).content != first


def test_it_is_in_the_language_of_its_owner_whoever_looks_first(
    owner: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.filter(pk=alice.pk).update(language="de")
    owner.post(PAGE, {"shown_name": "Mara", "shows_total": "on"})
    drawn: list[str] = []

    def draw_nothing(facts: ImageFacts) -> bytes:
        drawn.extend(texts.lines(facts))
        return b""

    monkeypatch.setattr(links, "draw", draw_nothing)
    Client().get(path(alice), headers={"Accept-Language": "en"})
    assert drawn == ["Geschätzte Credits: 4\u202f030"]


@pytest.mark.parametrize("what", ["renew", "revoke"])
def test_a_link_that_was_replaced_or_revoked_shows_nothing_at_once(owner: Client, alice: User, what: str) -> None:
    owner.post(PAGE, {"shows_total": "on"})
    old = path(alice)
    assert Client().get(old).status_code == 200
    owner.post(PAGE, {what: ""})
    assert Client().get(old).status_code == 404
    if what == "renew":
        assert Client().get(path(alice)).status_code == 200


@pytest.mark.parametrize("change", [{"is_active": False}, {"deletion_asked_at": timezone.now()}])
def test_that_of_a_closed_account_shows_nothing(owner: Client, alice: User, change: dict[str, object]) -> None:
    owner.post(PAGE, {"shows_total": "on"})
    User.objects.filter(pk=alice.pk).update(**change)
    assert Client().get(path(alice)).status_code == 404


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "Choose at least one item"),
        ({"shown_name": "שלום"}, "cannot contain these characters"),
        ({"shown_name": "a\u202eb"}, "invisible character"),
        ({"shown_name": "x" * 61}, "at most 60 characters"),
    ],
)
def test_what_cannot_be_shown_is_said(owner: Client, wrong: dict[str, str], said: str) -> None:
    assert said in owner.post(PAGE, wrong).content.decode()
    assert not SignatureImage.objects.exists()


def test_what_is_too_long_or_too_large_still_makes_a_picture() -> None:
    facts = ImageFacts("W" * 60, 10**18, 10**12, [("name " * 20, 10**15), ("مشروع", 1)], 10**6)
    assert Image.open(io.BytesIO(draw(facts))).width == WIDTH


def test_without_badges_none_are_offered_or_counted(alice: User, settings: Settings) -> None:
    now = timezone.now()
    image = SignatureImage.objects.create(user=alice, token="t", shown_name="Alice", shows_badges=True)
    assert "shows_badges" in SignatureImageForm().fields and read_facts(image, now).nbadges == 0
    settings.EXTRAS = [extra for extra in settings.EXTRAS if extra != "badges"]
    assert "shows_badges" not in SignatureImageForm().fields and read_facts(image, now).nbadges is None
