"""The display name: changed by its owner, and told to BOINC clients."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.models import User
from tests.support.page_reader import Page, page_of

pytestmark = pytest.mark.django_db
PAGE = "/account/profile/"


def test_a_name_is_saved_without_blanks_around_it(signed_in: Client, alice: User) -> None:
    shown = page_of(signed_in, PAGE)
    assert [e.attributes["value"] for e in shown.all("input", name="name")] == ["Alice"]
    reply = signed_in.post(PAGE, {"name": "  Alice   of Glasgow "}, follow=True)
    assert "Your name is now Alice of Glasgow" in Page(reply.content.decode()).words
    alice.refresh_from_db()
    assert alice.name == "Alice of Glasgow"


def test_without_a_name_the_address_has_one(signed_in: Client, alice: User) -> None:
    signed_in.post(PAGE, {"name": ""})
    alice.refresh_from_db()
    assert (alice.name, alice.display_name) == ("", "alice")


@pytest.mark.parametrize("name", ["x" * 101, "a\x00b", "\u202eecila"])
def test_a_name_that_cannot_be_shown_is_refused(signed_in: Client, alice: User, name: str) -> None:
    assert signed_in.post(PAGE, {"name": name}).status_code == 422
    alice.refresh_from_db()
    assert alice.name == "Alice"


def test_nobody_else_is_renamed(signed_in: Client, bob: User) -> None:
    signed_in.post(PAGE, {"name": "Eve", "user": str(bob.pk), "pk": str(bob.pk)})
    bob.refresh_from_db()
    assert bob.name == "Bob"


def test_forms_speak_of_e_mail_addresses_and_repeat_nothing_in_placeholders(client: Client, signed_in: Client) -> None:
    for address in ("/account/login/", "/account/signup/", "/account/password/reset/"):
        shown = Page(Client().get(address).content.decode())
        assert "E-mail address" in shown.words and "Email" not in shown.words, address
        assert [e for e in shown.all("input") if "placeholder" in e.attributes] == [], address
    words = page_of(signed_in, "/account/password/change/").words
    assert "Current password" in words and "New password again" in words
