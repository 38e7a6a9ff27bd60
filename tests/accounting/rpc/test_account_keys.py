"""A stored account key is read in its own row, for its own server, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounting.models import Project
from accounting.rpc import account_keys
from accounting.rpc.account_keys import UnreadableAccountKey

KEY = "7_77aa6d2754819a30f128656675a452bb"
HTTPS = "https://alpha.example.org/"
Place = tuple[int, int, str]
"""Whose row, which project's, and the project's master URL."""


def shared(place: Place, there: Place) -> str | None:
    sealed = account_keys.seal_shared(Project(pk=place[1], master_url=place[2]), KEY)
    return account_keys.shared(Project(pk=there[1], master_url=there[2], shared_account_key=sealed))


def own(place: Place, there: Place) -> str:
    sealed = account_keys.seal_own(place[0], Project(pk=place[1], master_url=place[2]), KEY)
    return account_keys.own(*there, sealed)


def reported(place: Place, there: Place) -> str:
    sealed = account_keys.seal_reported(*place, KEY)
    return account_keys.reported(there[0], Project(pk=there[1], master_url=there[2]), sealed)


@pytest.mark.parametrize("move", [shared, own, reported])
@pytest.mark.parametrize(
    ("there", "is_read"),
    [
        ((1, 2, HTTPS), True),
        ((1, 2, HTTPS + "another/path/"), True),
        ((1, 3, HTTPS), False),
        ((1, 2, "https://beta.example.org/"), False),
        ((1, 2, "https://alpha.example.org:8443/"), False),
        ((1, 2, "http://alpha.example.org/"), False),
    ],
)
def test_a_key_follows_no_other_project_or_server(move: Callable[..., Any], there: Place, is_read: bool) -> None:
    if is_read:
        assert move((1, 2, HTTPS), there) == KEY
        return
    with pytest.raises(UnreadableAccountKey):
        move((1, 2, HTTPS), there)


@pytest.mark.parametrize("move", [own, reported])
def test_a_key_follows_no_other_volunteer_or_computer(move: Callable[..., Any]) -> None:
    with pytest.raises(UnreadableAccountKey):
        move((1, 2, HTTPS), (4, 2, HTTPS))
