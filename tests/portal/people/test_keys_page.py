"""The page of the client keys: seeing and revoking one's own."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from portal.models import ClientKey, Host, User
from portal.people.accounts import issue_client_key
from portal.wire import credentials


def valid(user: User) -> int:
    return ClientKey.objects.filter(user=user, revoked_at=None).count()


def test_keys_are_listed_by_their_beginning_never_whole(signed_in: Client, alice: User, studio: Host) -> None:
    key = issue_client_key(alice, ClientKey.Origin.ATTACH, studio)
    body = signed_in.get(reverse("keys")).content.decode()
    assert f"{key[:6]}…" in body and "studio" in body and "computer attached" in body and "never used" in body
    assert key not in body and credentials.key_hash(key).hex() not in body


def test_revoking_one_leaves_the_others(signed_in: Client, alice: User, studio: Host) -> None:
    keep = issue_client_key(alice, ClientKey.Origin.ATTACH, studio)
    drop = issue_client_key(alice, ClientKey.Origin.LOOKUP)
    row = ClientKey.objects.get(key_hash=credentials.key_hash(drop))
    answer = signed_in.post(reverse("revoke_key", args=[row.pk]), follow=True)
    assert f"The key {drop[:6]}… is revoked." in answer.content.decode()
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert ClientKey.objects.get(revoked_at=None).key_hash == credentials.key_hash(keep)
    assert "Revoked in the last 90 days" in answer.content.decode()


def test_revoking_again_keeps_the_first_moment(signed_in: Client, alice: User) -> None:
    issue_client_key(alice, ClientKey.Origin.LOOKUP)
    row = ClientKey.objects.get()
    signed_in.post(reverse("revoke_key", args=[row.pk]))
    row.refresh_from_db()
    first = row.revoked_at
    assert signed_in.post(reverse("revoke_key", args=[row.pk])).status_code == 302
    row.refresh_from_db()
    assert row.revoked_at == first


def test_revoking_all_is_for_ones_own(signed_in: Client, alice: User, bob: User) -> None:
    for user in (alice, alice, bob):
        issue_client_key(user, ClientKey.Origin.LOOKUP)
    answer = signed_in.post(reverse("revoke_keys"), follow=True)
    assert "2 keys are revoked." in answer.content.decode()
    assert (valid(alice), valid(bob)) == (0, 1)
    assert "No valid keys" in answer.content.decode()


def test_the_page_says_what_revoking_does_and_how_to_come_back(signed_in: Client, alice: User) -> None:
    issue_client_key(alice, ClientKey.Origin.LOOKUP)
    body = signed_in.get(reverse("keys")).content.decode()
    assert "is logged out" in body
    # A client refuses to attach to a manager that it is attached to by a key.
    detach, attach = "boinccmd --acct_mgr detach", "How to connect a computer"
    assert 0 < body.index(detach) < body.index(attach)


@pytest.mark.parametrize("who", ["bob", "operator", "anonymous"])
def test_nobody_else_sees_or_revokes_a_key(
    request: pytest.FixtureRequest, client: Client, alice: User, who: str
) -> None:
    key = issue_client_key(alice, ClientKey.Origin.LOOKUP)
    row = ClientKey.objects.get()
    if who != "anonymous":
        client.force_login(request.getfixturevalue(who))
    answers = [
        client.get(reverse("keys")),
        client.post(reverse("revoke_key", args=[row.pk])),
        client.post(reverse("revoke_keys")),
    ]
    assert [a.status_code for a in answers] == ([302, 302, 302] if who == "anonymous" else [200, 404, 302])
    assert key[:6] not in answers[0].content.decode()
    assert valid(alice) == 1


def test_changes_need_a_post_with_a_csrf_token(alice: User) -> None:
    issue_client_key(alice, ClientKey.Origin.LOOKUP)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    for address in (reverse("revoke_keys"), reverse("revoke_key", args=[ClientKey.objects.get().pk])):
        assert strict.get(address).status_code == 405
        assert strict.post(address).status_code == 403
    assert valid(alice) == 1


def test_hundreds_of_keys_are_on_several_pages(signed_in: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.people.pages.views.KEYS_A_PAGE", 2)
    hints = [issue_client_key(alice, ClientKey.Origin.LOOKUP)[:6] for _ in range(3)]
    first, second = (signed_in.get(f"{reverse('keys')}?page={number}").content.decode() for number in (1, 2))
    assert [hint in first for hint in hints] == [False, True, True]
    assert [hint in second for hint in hints] == [True, False, False]
    assert "Revoke all 3 keys" in first
