"""Loaders that check the owner: what belongs to somebody else is not found."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import Http404

from portal.models import ClientKey, Host, User
from portal.people.access import get_own_host, get_own_key, own_hosts


@pytest.fixture
def key(studio: Host) -> ClientKey:
    return ClientKey.objects.create(user=studio.owner, host=studio, origin="attach", key_hash=b"k" * 32)


def test_an_owner_gets_the_computer_and_the_key(alice: User, studio: Host, key: ClientKey) -> None:
    assert get_own_host(alice, studio.pk) == studio
    assert get_own_key(alice, key.pk) == key
    assert list(own_hosts(alice)) == [studio]


@pytest.mark.parametrize("who", ["bob", "operator", "anonymous"])
def test_nobody_else_does(who: str, request: pytest.FixtureRequest, studio: Host, key: ClientKey) -> None:
    visitor = AnonymousUser() if who == "anonymous" else request.getfixturevalue(who)
    with pytest.raises(Http404):
        get_own_host(visitor, studio.pk)
    with pytest.raises(Http404):
        get_own_key(visitor, key.pk)
    assert list(own_hosts(visitor)) == []


def test_a_merged_record_is_not_listed_but_still_found(alice: User, studio: Host) -> None:
    old = Host.objects.create(owner=alice, domain_name="old studio", merged_into=studio)
    assert list(own_hosts(alice)) == [studio]
    assert get_own_host(alice, old.pk) == old
