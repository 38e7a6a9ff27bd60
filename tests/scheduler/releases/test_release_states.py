"""The states of a version, and the actions allowed in each."""

from __future__ import annotations

import pytest

from scheduler.engine import release_states
from scheduler.engine.choice.versions import Requester, newest
from scheduler.engine.facts import Version
from scheduler.engine.release_states import NotPossible, ReleaseAction, ReleaseState

DRAFT, BETA, RELEASED, WITHDRAWN = ReleaseState
TEST, RELEASE, WITHDRAW = ReleaseAction
LINUX = "x86_64-pc-linux-gnu"


def version(
    id_: int, num: int, *, testers: frozenset[int] | None = None, platform: str = LINUX, is_withdrawn: bool = False
) -> Version:
    return Version(id_, 1, platform, num, "", "CPU", 1.0, 0.0, is_deprecated=is_withdrawn, testers=testers)


@pytest.mark.parametrize(
    ("state", "action", "then"),
    [
        (DRAFT, TEST, BETA),
        (DRAFT, RELEASE, RELEASED),
        (DRAFT, WITHDRAW, None),
        (BETA, TEST, None),
        (BETA, RELEASE, RELEASED),
        (BETA, WITHDRAW, WITHDRAWN),
        (RELEASED, TEST, None),
        (RELEASED, RELEASE, None),
        (RELEASED, WITHDRAW, WITHDRAWN),
        (WITHDRAWN, TEST, BETA),
        (WITHDRAWN, RELEASE, RELEASED),
        (WITHDRAWN, WITHDRAW, None),
    ],
)
def test_each_action_leads_from_state_to_state(
    state: ReleaseState, action: ReleaseAction, then: ReleaseState | None
) -> None:
    assert (action in release_states.allowed(state)) == (then is not None)
    if then is None:
        with pytest.raises(NotPossible):
            release_states.after(state, action)
    else:
        assert release_states.after(state, action) == then


def test_what_is_withdrawn_is_sent_to_nobody_tested_or_not() -> None:
    for is_tested in (False, True):
        assert release_states.stored_state(is_withdrawn=True, is_tested=is_tested) == WITHDRAWN


def test_testers_get_the_version_that_is_tested_and_others_the_one_before() -> None:
    versions = [version(1, 100), version(2, 101, testers=frozenset([7]))]
    assert [each.id for each in newest(versions, Requester((LINUX,), 0, 7))] == [2]
    assert [each.id for each in newest(versions, Requester((LINUX,), 0, 8))] == [1]
    assert newest(versions[1:], Requester((LINUX,), 0, 8)) == []


def test_the_version_before_is_the_newest_older_one_that_was_sent_to_all() -> None:
    tested = version(3, 102, testers=frozenset())
    others = [version(1, 100), version(2, 101), tested, version(4, 103), version(5, 101, platform="windows_x86_64")]
    assert release_states.version_before(version(4, 103), others) == others[1]
    assert release_states.version_before(version(1, 100), others) is None


def test_a_roll_back_goes_past_what_was_withdrawn_if_an_older_one_is_still_sent() -> None:
    first, second, third = version(1, 100), version(2, 101, is_withdrawn=True), version(3, 102)
    assert release_states.version_before(third, [first, second, third]) == first
    assert release_states.version_before(third, [second, third]) == second
