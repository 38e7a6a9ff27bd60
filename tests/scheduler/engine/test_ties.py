"""Ties: which two accounts may be one person's."""

from __future__ import annotations

import pytest

from scheduler.engine.choice.ties import NEW_KEY, NEW_KEY_SECS, network_of, ties_of

OLD_SECS = NEW_KEY_SECS


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("81.2.69.142", "81.2.69.0/24"),
        ("81.2.70.142", "81.2.70.0/24"),
        ("::ffff:81.2.69.7", "81.2.69.0/24"),
        ("2a00:1450:4001:83f::200e", "2a00:1450:4001:800::/56"),
        ("2a00:1450:4001:9ff::1", "2a00:1450:4001:900::/56"),
        ("127.0.0.1", ""),
        ("192.168.1.20", ""),
        ("fd00::1", ""),
        ("203.0.113.7", ""),
        ("unix:", ""),
        ("", ""),
    ],
)
def test_a_network_is_the_block_of_one_customer_and_private_addresses_say_nothing(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("one", "other", "is_tied"),
    [
        ((1, "81.2.69.1", "a" * 32, OLD_SECS), (2, "81.2.69.200", "b" * 32, OLD_SECS), True),
        ((1, "81.2.69.1", "a" * 32, OLD_SECS), (2, "81.2.70.1", "b" * 32, OLD_SECS), False),
        ((1, "81.2.69.1", "a" * 32, OLD_SECS), (2, "81.2.70.1", "a" * 32, OLD_SECS), True),
        ((1, "81.2.69.1", "a" * 32, OLD_SECS), (1, "81.2.70.1", "b" * 32, OLD_SECS), True),
        ((1, "81.2.69.1", "a" * 32, 60.0), (2, "81.2.70.1", "b" * 32, 7200.0), True),
        ((1, "81.2.69.1", "a" * 32, 60.0), (2, "81.2.70.1", "b" * 32, OLD_SECS), False),
        ((1, "", "", OLD_SECS), (2, "", "", OLD_SECS), False),
        ((1, "10.0.0.1", "", OLD_SECS), (2, "10.0.0.1", "", OLD_SECS), False),
    ],
    ids=["network", "nothing", "machine", "owner", "both keys new", "one key new", "nothing known", "private network"],
)
def test_what_two_accounts_share_ties_them(
    one: tuple[int, str, str, float], other: tuple[int, str, str, float], is_tied: bool
) -> None:
    assert bool(set(ties_of(*one, "secret")) & set(ties_of(*other, "secret"))) == is_tied


def test_what_is_stored_names_neither_network_nor_machine() -> None:
    user, *others = ties_of(7, "81.2.69.1", "a" * 32, 0.0, "secret")
    assert user == 7
    assert others[-1] == NEW_KEY
    assert all(-(2**62) - 2 < tie < NEW_KEY for tie in others[:-1])
    assert not set(others[:-1]) & set(ties_of(7, "81.2.69.1", "a" * 32, 0.0, "another secret"))
