"""The step before a version is withdrawn, rolled back, or sent again after it was withdrawn: it may change credit."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.utils import timezone

from credit.models import AppVersion
from portal.audit.proposals import Proposal
from portal.audit.steps import Operation, operations
from portal.audit.values import Line, lines
from portal.models import Change, User
from scheduler.engine.release_states import NotPossible, ReleaseAction, ReleaseState, after
from scheduler.releases import rollout
from scheduler.releases.rollout import state_of

RELEASE: Final = "scheduler.release_appversion"
ROLL_BACK: Final = "roll_back"
WITH_VOLUNTEERS: Final = "test_with_volunteers"
ACTIONS: Final = {
    "test": ReleaseAction.TEST,
    WITH_VOLUNTEERS: ReleaseAction.TEST,
    "release": ReleaseAction.RELEASE,
    "withdraw": ReleaseAction.WITHDRAW,
}
TITLES: Final = {
    "test": "Test {} again",
    WITH_VOLUNTEERS: "Test {} again, also with volunteers who agreed",
    "release": "Release {} to all again",
    "withdraw": "Withdraw {}",
    ROLL_BACK: "Roll back {}",
}
_PREFIX: Final = "release:"


def proposal(version: AppVersion, action: str, user: User) -> Proposal | None:
    """What is to be confirmed; None where it does not change whether the version is withdrawn. Raises NotPossible."""
    if action == ROLL_BACK:
        rollout.version_before(version)
        withdrawn = True
    else:
        withdrawn = after(state_of(version), ACTIONS[action]) == ReleaseState.WITHDRAWN
    if withdrawn == version.is_deprecated:
        return None
    changes = {"is_deprecated": [version.is_deprecated, withdrawn]}
    return Proposal(
        model=AppVersion._meta.label, pk=version.pk, changes=changes, operation=_PREFIX + action, subject=user.pk
    )


def _notes(version: AppVersion, proposal: Proposal) -> list[str]:
    action = proposal.operation.removeprefix(_PREFIX)
    if action == ROLL_BACK:
        try:
            before = rollout.version_before(version)
        except NotPossible as error:
            return [f"This cannot be done: {error}."]
        found = [f"Computers get {before} again. Jobs of {version} that run go on."]
        if before.is_deprecated:
            found.append(f"{before} is withdrawn now, and is released again. The preview is of the withdrawal alone.")
        return found
    if action == "withdraw":
        return ["No computer gets it any more. Jobs that run go on."]
    return ["All computers get it." if action == "release" else "Only computers of testers get it."]


def _carry_out(version: AppVersion, proposal: Proposal) -> Change | None:
    action = proposal.operation.removeprefix(_PREFIX)
    try:
        if action == ROLL_BACK:
            rollout.roll_back(version)
        else:
            user = User.objects.get(pk=proposal.subject or 0)
            with_volunteers = action == WITH_VOLUNTEERS
            rollout.act(version, ACTIONS[action], user, timezone.now(), with_volunteers=with_volunteers)
    except NotPossible as error:
        raise ValidationError(str(error)) from error
    return None  # saving the version keeps the change


def _operation(action: str) -> Operation:
    def title(version: Any, proposal: Proposal) -> str:
        return TITLES[action].format(version)

    def shown(version: Any, proposal: Proposal) -> list[Line]:
        return lines(AppVersion, proposal.changes)

    def lock(proposal: Proposal) -> None:
        rollout.lock(AppVersion.objects.get(pk=proposal.pk))

    return Operation(
        title=title,
        lines=shown,
        notes=_notes,
        lock=lock,
        carry_out=_carry_out,
        permission=RELEASE,
    )


def register() -> None:
    """Called once, when the app is ready."""
    operations.update({_PREFIX + action: _operation(action) for action in TITLES})
