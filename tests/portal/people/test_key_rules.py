"""Which keys may end, and in which order: the states of a computer's keys."""

from __future__ import annotations

import datetime as dt

import pytest

from portal.people.key_rules import KeyFacts, KeyState, outdated, states_of, to_make_room

NOW = dt.datetime(2026, 11, 28, 12, tzinfo=dt.UTC)
REPEAT = dt.timedelta(hours=6)
IN_USE, UNUSED, REPLACED, OF_RETIRED = KeyState
DAY = dt.timedelta(days=1)


def keys_of(*rows: tuple[float, float | None]) -> list[KeyFacts]:
    """Keys, numbered from 1: days since each was made, and since it was last used."""
    return [
        KeyFacts(number, NOW - made * DAY, None if used is None else NOW - used * DAY)
        for number, (made, used) in enumerate(rows, start=1)
    ]


# Of a computer that was retired this many days ago, or not: days since each key was made and last used, and its state.
# A newer key has replaced an older one when it is 2 days and two intervals, here 2.5 days, old.
STATES: list[tuple[str, float | None, list[tuple[float, float | None]], list[KeyState]]] = [
    ("the only key, used today", None, [(300, 0)], [IN_USE]),
    ("the only key of a computer that was off for two years", None, [(900, 730)], [IN_USE]),
    ("the only key of a computer that was switched off after its first contact", None, [(300, None)], [IN_USE]),
    ("a first reply that was lost, just now", None, [(0.1, None), (0, None)], [IN_USE, IN_USE]),
    ("a first reply that was lost, two days ago", None, [(2, None), (1.9, 0)], [UNUSED, IN_USE]),
    ("attached again, a month ago", None, [(90, 31), (30, 0)], [REPLACED, IN_USE]),
    ("attached again, and the new key was never used", None, [(90, 31), (30, None)], [IN_USE, IN_USE]),
    ("attached again two days ago: the use of the old key may not be noted yet", None, [(90, 2.4), (2, 0)],
     [IN_USE, IN_USE]),
    ("two copies of a data folder, each with a key", None, [(90, 1), (30, 0)], [IN_USE, IN_USE]),
    ("a copy that came between, and is off since", None, [(90, 20), (30, 25), (10, 0)], [IN_USE, REPLACED, IN_USE]),
    ("attached at every start, daily", None, [(5, 4.1), (4, 3.1), (3, 2.1), (2, 1.1), (1, 0)],
     [REPLACED, REPLACED, IN_USE, IN_USE, IN_USE]),
    ("retired", 5, [(90, 20), (30, 6)], [OF_RETIRED, OF_RETIRED]),
    ("retired, and a key was made since", 5, [(90, 20), (1, None)], [OF_RETIRED, IN_USE]),
]  # fmt: skip


@pytest.mark.parametrize(("case", "retired", "rows", "states"), STATES, ids=[case for case, *_ in STATES])
def test_a_key_has_the_state(
    case: str, retired: float | None, rows: list[tuple[float, float | None]], states: list[KeyState]
) -> None:
    retired_at = None if retired is None else NOW - retired * DAY
    keys = keys_of(*rows)
    assert states_of(keys, retired_at, REPEAT, NOW) == {key.id: state for key, state in zip(keys, states, strict=True)}


def test_the_longer_clients_may_wait_the_later_a_key_counts_as_replaced() -> None:
    keys = keys_of((90, 10), (9, 0))
    assert states_of(keys, None, 3 * DAY, NOW)[1] is REPLACED
    # 2 days and twice 4 days are more than the 9 days since the newer key was made.
    assert states_of(keys, None, 4 * DAY, NOW)[1] is IN_USE


@pytest.mark.parametrize(
    ("most", "ended"), [(7, []), (6, [4]), (5, [4, 2]), (4, [4, 2, 1]), (3, [4, 2, 1, 3]), (2, None)]
)
def test_unused_keys_make_room_before_replaced_ones(most: int, ended: list[int] | None) -> None:
    # 1 and 3 were replaced by 5, 1 was used longer ago; 2 and 4 never came into use, and 4 is the older of them.
    keys = keys_of((99, 90), (60, None), (80, 70), (61, None), (50, 1), (40, 0))
    assert to_make_room(keys, states_of(keys, None, REPEAT, NOW), most) == ended


@pytest.mark.parametrize(
    ("retired", "ended"),
    [(None, [1]), (50, []), (101, [1, 2])],
    ids=["in use", "retired lately: its next contact takes it back", "retired for long"],
)
def test_keys_end_with_time(retired: float | None, ended: list[int]) -> None:
    keys = keys_of((300, 200), (190, 150))
    retired_at = None if retired is None else NOW - retired * DAY
    states = states_of(keys, retired_at, REPEAT, NOW)
    assert outdated(keys, states, retired_at, since=NOW - 100 * DAY) == ended
