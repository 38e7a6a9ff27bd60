"""Tokens of the REST API: shown once, kept as hashes, revoked for good; and their page."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from portal.models import ApiToken, User
from portal.ops import housekeeping
from portal.people import api_tokens
from portal.wire import credentials
from tests.support.page_reader import Page

YEAR = dt.timedelta(days=365)
DAY = dt.timedelta(days=1)


def issue(user: User, *scopes: str, lifetime: dt.timedelta | None = YEAR) -> str:
    return api_tokens.issue_token(user, name="sheet", scopes=scopes or ["read:hosts"], lifetime=lifetime)


def test_a_token_is_recognised_until_it_is_revoked(alice: User) -> None:
    token = issue(alice)
    found = api_tokens.find_valid_token(token)
    assert found is not None and found.user == alice and found.scopes == ["read:hosts"]
    assert api_tokens.revoke_token(alice, found.pk) == found
    assert api_tokens.find_valid_token(token) is None


def test_only_a_hash_of_it_is_kept(alice: User) -> None:
    token = issue(alice)
    row = ApiToken.objects.get()
    assert bytes(row.token_hash) == credentials.key_hash(token)
    assert token[10:] not in str(vars(row))


def test_a_token_ends_with_its_time_and_with_its_account(alice: User) -> None:
    token = issue(alice)
    ApiToken.objects.update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    assert api_tokens.find_valid_token(token) is None
    endless = issue(alice, lifetime=None)
    assert api_tokens.find_valid_token(endless) is not None
    User.objects.update(is_active=False)
    assert api_tokens.find_valid_token(endless) is None


@pytest.mark.parametrize("text", ["", "cobble_", "x" * 10_000, "\0", "cobble_ü"])
def test_anything_else_is_no_token(db: None, text: str) -> None:
    assert api_tokens.find_valid_token(text) is None


def test_its_use_is_noted_once_an_hour(alice: User) -> None:
    token = issue(alice)
    api_tokens.find_valid_token(token)
    first = ApiToken.objects.get().last_used_at
    api_tokens.find_valid_token(token)
    assert first is not None and ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - dt.timedelta(hours=2))
    api_tokens.find_valid_token(token)
    later = ApiToken.objects.get().last_used_at
    assert later is not None and later >= first


def test_there_is_a_limit_and_a_revoked_token_makes_room(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tokens, "MAX_TOKENS_PER_USER", 2)
    issue(alice)
    issue(alice)
    with pytest.raises(api_tokens.TooManyTokens):
        issue(alice)
    api_tokens.revoke_token(alice, ApiToken.objects.earliest("pk").pk)
    issue(alice)


def test_what_ended_long_ago_is_tidied(alice: User) -> None:
    for _ in range(3):
        issue(alice)
    old, revoked, kept = ApiToken.objects.order_by("pk")
    long_ago = timezone.now() - dt.timedelta(days=91)
    ApiToken.objects.filter(pk=old.pk).update(expires_at=long_ago)
    ApiToken.objects.filter(pk=revoked.pk).update(revoked_at=long_ago)
    housekeeping.remove_expired()
    assert list(ApiToken.objects.all()) == [kept]


def test_the_page_shows_a_new_token_once(signed_in: Client, alice: User) -> None:
    made = signed_in.post("/account/tokens/", {"name": "sheet", "scopes": ["read:history", "read:notes"], "days": "30"})
    token = Page(made.content.decode()).one("code", id="new-token").text
    row = ApiToken.objects.get()
    assert bytes(row.token_hash) == credentials.key_hash(token)
    assert row.scopes == ["read:history", "read:notes"]
    assert row.expires_at is not None and dt.timedelta(days=29) < row.expires_at - timezone.now() < YEAR
    assert "no-store" in made.headers["Cache-Control"]
    again = signed_in.get("/account/tokens/").content.decode()
    assert token not in again and token[:10] in again
    assert "access to daily history and its totals, notes on reports" in Page(again).words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "x"}, "Choose at least one thing"),
        ({"name": "", "scopes": "read:hosts"}, "This field is required"),
        ({"name": "x", "scopes": "write:all"}, "write:all is not one of the available choices"),
        ({"name": "x", "scopes": "read:hosts", "days": "99999"}, "99999 is not one of the available choices"),
        ({"name": "x\0", "scopes": "read:hosts"}, "Null characters are not allowed"),
        ({"name": "x" * 101, "scopes": "read:hosts"}, "at most 100 characters"),
    ],
)
def test_a_wrong_wish_makes_no_token(signed_in: Client, fields: dict[str, str], words: str) -> None:
    reply = signed_in.post("/account/tokens/", fields)
    assert reply.status_code == 422
    assert words in Page(reply.content.decode()).words
    assert not ApiToken.objects.exists()


def test_a_click_revokes_ones_own(signed_in: Client, alice: User) -> None:
    token = issue(alice)
    reply = signed_in.post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/", follow=True)
    assert "The token “sheet” is revoked." in reply.content.decode()
    assert api_tokens.find_valid_token(token) is None


@pytest.mark.parametrize(
    ("who", "statuses"), [("bob", [200, 404]), ("operator", [200, 404]), ("anonymous", [302, 302])]
)
def test_nobody_else_sees_or_revokes_it(
    request: pytest.FixtureRequest, client: Client, alice: User, who: str, statuses: list[int]
) -> None:
    token = issue(alice)
    if who != "anonymous":
        client.force_login(request.getfixturevalue(who))
    replies = [client.get("/account/tokens/"), client.post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/")]
    assert [reply.status_code for reply in replies] == statuses
    assert token[:10] not in replies[0].content.decode()
    assert api_tokens.find_valid_token(token) is not None


def test_a_token_is_replaced_by_one_with_the_same_access(signed_in: Client, alice: User) -> None:
    token = issue(alice, "read:hosts", "read:notes", lifetime=dt.timedelta(days=30))
    ApiToken.objects.update(created_at=timezone.now() - dt.timedelta(days=20), expires_at=F("expires_at") - 20 * DAY)
    old = ApiToken.objects.get()
    page = signed_in.post(f"/account/tokens/{old.pk}/replace/")
    fresh = Page(page.content.decode()).one("code", id="new-token").text
    assert page.headers["Cache-Control"] == "no-store"
    # The form for another one does not go to the address of the one that is revoked.
    assert b'method="post" action="/account/tokens/"' in page.content
    assert api_tokens.find_valid_token(token) is None
    found = api_tokens.find_valid_token(fresh)
    assert found is not None and (found.name, found.scopes) == ("sheet", ["read:hosts", "read:notes"])
    # For as long again as the old one was made for.
    assert found.expires_at is not None and abs(found.expires_at - timezone.now() - 30 * DAY) < dt.timedelta(minutes=1)
    # Once: what is revoked has no successor.
    assert signed_in.post(f"/account/tokens/{old.pk}/replace/").status_code == 404
    assert ApiToken.objects.count() == 2
