"""The states of an app's version, from draft on, and the actions allowed in each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from portal.languages.messages import Message, MessageError
from scheduler.engine.facts import Version


class ReleaseState(IntEnum):
    """Which computers get a version. DRAFT and WITHDRAWN: none; BETA: those of testers; RELEASED: all."""

    DRAFT = 0
    BETA = 1
    RELEASED = 2
    WITHDRAWN = 3


class ReleaseAction(IntEnum):
    """An action on a version."""

    TEST = 1
    RELEASE = 2
    WITHDRAW = 3


TRANSITIONS: Final = {
    (ReleaseState.DRAFT, ReleaseAction.TEST): ReleaseState.BETA,
    (ReleaseState.DRAFT, ReleaseAction.RELEASE): ReleaseState.RELEASED,
    (ReleaseState.BETA, ReleaseAction.RELEASE): ReleaseState.RELEASED,
    (ReleaseState.BETA, ReleaseAction.WITHDRAW): ReleaseState.WITHDRAWN,
    (ReleaseState.RELEASED, ReleaseAction.WITHDRAW): ReleaseState.WITHDRAWN,
    (ReleaseState.WITHDRAWN, ReleaseAction.TEST): ReleaseState.BETA,
    (ReleaseState.WITHDRAWN, ReleaseAction.RELEASE): ReleaseState.RELEASED,
}


class NotPossible(MessageError):
    """An action that the state does not allow."""


_NOT_POSSIBLE: Final = {
    ReleaseAction.TEST: "test_not_possible",
    ReleaseAction.RELEASE: "release_not_possible",
    ReleaseAction.WITHDRAW: "withdraw_not_possible",
}
STATE_CODES: Final = {
    ReleaseState.DRAFT: "state_draft",
    ReleaseState.BETA: "state_beta",
    ReleaseState.RELEASED: "state_released",
    ReleaseState.WITHDRAWN: "state_withdrawn",
}


def after(state: ReleaseState, action: ReleaseAction) -> ReleaseState:
    """Return the next state; raises NotPossible if there is none."""
    if (state, action) not in TRANSITIONS:
        raise NotPossible(Message(_NOT_POSSIBLE[action], state=Message(STATE_CODES[state])))
    return TRANSITIONS[state, action]


def allowed(state: ReleaseState) -> list[ReleaseAction]:
    """Return the actions allowed in this state."""
    return [action for action in ReleaseAction if (state, action) in TRANSITIONS]


def stored_state(*, is_withdrawn: bool, is_tested: bool) -> ReleaseState:
    """Return the state of a stored version: a withdrawn one is sent to nobody, whether under test or not."""
    if is_withdrawn:
        return ReleaseState.WITHDRAWN
    return ReleaseState.BETA if is_tested else ReleaseState.RELEASED


def version_before(version: Version, others: Iterable[Version]) -> Version | None:
    """Return the newest older version of the same app, platform and plan class, which a roll-back returns to.

    Prefers versions that are sent to all, because a withdrawn one may have been bad; takes a withdrawn one only if
    there is no other. Never one that was only tested.
    """
    older = [
        other
        for other in others
        if (other.app_id, other.platform, other.plan_class) == (version.app_id, version.platform, version.plan_class)
        and other.version_num < version.version_num
        and other.testers is None
    ]
    return max(older, key=lambda other: (not other.is_deprecated, other.version_num), default=None)
