"""Copies of a client's data folder are found, and no single client is taken for one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.copies import NO_REPEATS, Repeats, is_copy, repeated, seen

X, Y, Z = "x" * 32, "y" * 32, "z" * 32


@pytest.mark.parametrize(
    ("seqno", "cpid", "cpids", "knows_other_jobs", "expected"),
    [
        (6, X, [X], False, False),
        (6, X, [X], True, False),  # set up again
        (4, X, [X], False, True),
        (5, X, [X], False, False),  # sent twice
        (5, X, [X], True, False),  # sent twice, the second time after a crash
        (5, Y, [X], False, True),
        (5, Y, [], False, False),  # it was just given its number
        (5, "", [X], False, False),
        (6, Y, [X], False, False),  # another network adapter
        # The first of the two clients comes back; the other one goes when it comes again.
        (5, X, [X, Y], True, False),
        (4, X, [X, Y], False, False),
        (9, Y, [X, Y, X], False, True),
        (9, Z, [X, Y, X], False, False),
        (9, X, [X, Y, Z], False, False),
    ],
)
def test_a_copy_sends_a_number_again_or_its_cpid_alternates(
    seqno: int, cpid: str, cpids: Sequence[str], knows_other_jobs: bool, expected: bool
) -> None:
    assert is_copy(seqno, cpid, 5, cpids, knows_other_jobs=knows_other_jobs) is expected


def test_the_last_three_changes_are_kept() -> None:
    cpids: list[str] = []
    for cpid in (X, X, Y, "", Y, X, Z, Z):
        cpids = seen(cpids, cpid)
    assert cpids == [Y, X, Z]


@given(st.lists(st.sampled_from(["asks", "asks in vain", "asks again after a crash", "changes"]), max_size=60))
def test_a_single_client_is_never_taken_for_two(steps: list[str]) -> None:
    seqno = cpid = 0
    known, cpids = 0, seen([], "0")
    for step in steps:
        if step == "changes":
            cpid += 1
            continue
        repeats = step == "asks again after a crash" and cpids[-1] == str(cpid)
        seqno += 0 if repeats and seqno == known else 1
        if step == "asks in vain":
            continue
        # Of a crashed client the jobs are those that it had.
        assert not is_copy(seqno, str(cpid), known, cpids, knows_other_jobs=False)
        known, cpids = seqno, seen(cpids, str(cpid))


@given(st.permutations([True] * 8 + [False] * 8))
def test_two_clients_with_cpids_of_their_own_are_told_apart_in_any_order(turns: list[bool]) -> None:
    seqnos, known, cpids = {X: 5, Y: 5}, 5, [X]
    ncopies = 0
    for is_first in turns:
        cpid = X if is_first else Y
        if cpid not in seqnos:
            continue
        seqnos[cpid] += 1
        if is_copy(seqnos[cpid], cpid, known, cpids, knows_other_jobs=False):
            del seqnos[cpid]
            ncopies += 1
        else:
            known, cpids = seqnos[cpid], seen(cpids, cpid)
    assert ncopies == 1


@pytest.mark.parametrize(("seqno", "expected"), [(5, False), (6, True), (7, True), (8, False)])
def test_other_jobs_tell_a_copy_when_a_number_comes_twice_for_the_third_time_soon(seqno: int, expected: bool) -> None:
    assert is_copy(seqno, X, seqno, [X], Repeats(5, 2), knows_other_jobs=True) is expected
    assert not is_copy(seqno, X, seqno, [X], Repeats(5, 2), knows_other_jobs=False)
    assert not is_copy(seqno, X, seqno, [X], Repeats(5, 1), knows_other_jobs=True)


def test_a_number_is_noted_that_comes_twice_with_other_jobs_or_soon_after_such_a_one() -> None:
    assert repeated(5, 5, NO_REPEATS, knows_other_jobs=True) == (5, 1)
    assert repeated(5, 5, NO_REPEATS, knows_other_jobs=False) == (None, 0)
    assert repeated(6, 5, NO_REPEATS, knows_other_jobs=True) == (None, 0)
    assert repeated(7, 7, Repeats(5, 1), knows_other_jobs=False) == (7, 1)
    assert repeated(7, 7, Repeats(5, 1), knows_other_jobs=True) == (7, 2)
    assert repeated(8, 8, Repeats(5, 2), knows_other_jobs=True) == (8, 1)
    assert repeated(8, 8, Repeats(5, 1), knows_other_jobs=False) == (5, 1)


def test_one_number_that_comes_often_is_one_crash() -> None:
    assert repeated(5, 5, Repeats(5, 1), knows_other_jobs=True) == (5, 1)


@given(st.sets(st.integers(1, 60)))
def test_a_client_that_loses_its_state_twice_is_not_taken_for_two(crashes: set[int]) -> None:
    repeats = NO_REPEATS
    for seqno in sorted(crashes):
        # No more than two in five requests
        if len(crashes & set(range(seqno - 4, seqno))) < 2:
            assert not is_copy(seqno, X, seqno, [X], repeats, knows_other_jobs=True)
            repeats = repeated(seqno, seqno, repeats, knows_other_jobs=True)
