"""The confirmation step before a version is withdrawn, rolled back, or sent again after a withdrawal, which may change
credit.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import AppVersion
from portal.audit.proposals import Proposal
from portal.audit.steps import RowOperation
from portal.audit.values import Line, lines
from portal.languages.sentences import sentence
from portal.models import Change, User
from scheduler.engine.release_states import NotPossible, ReleaseAction, ReleaseState, after
from scheduler.releases import rollout
from scheduler.releases.rollout import state_of

RELEASE: Final = "scheduler.release_appversion"
ROLL_BACK: Final = "roll_back"
TO_WITHDRAWN: Final = "roll_back_to_withdrawn"
WITH_VOLUNTEERS: Final = "test_with_volunteers"
ACTIONS: Final = {
    "test": ReleaseAction.TEST,
    WITH_VOLUNTEERS: ReleaseAction.TEST,
    "release": ReleaseAction.RELEASE,
    "withdraw": ReleaseAction.WITHDRAW,
}
TITLES: Final = {
    "test": _("Test {} again"),
    WITH_VOLUNTEERS: _("Test {} again, also with volunteers who agreed"),
    "release": _("Release {} to all again"),
    "withdraw": _("Withdraw {}"),
    ROLL_BACK: _("Roll back {}"),
    TO_WITHDRAWN: _("Roll back {}"),
}
_PREFIX: Final = "release:"
_ANOTHER: Final = _(
    "this would now bring back another version than the one shown. Do not change anything here, and start the "
    "roll-back again."
)


def proposal(version: AppVersion, action: str, user: User) -> Proposal | None:
    """Return the proposal to confirm; None if it does not change whether the version is withdrawn. Raises NotPossible.

    Its subject: the proposer; for a roll-back, the version that is sent again.
    """
    subject = user.pk
    if action == ROLL_BACK:
        before = rollout.version_before(version)
        action, subject = _roll_back_to(before)
        withdrawn = True
    else:
        withdrawn = after(state_of(version), ACTIONS[action]) == ReleaseState.WITHDRAWN
    if withdrawn == version.is_deprecated:
        return None
    changes = {"is_deprecated": [version.is_deprecated, withdrawn]}
    return Proposal(
        model=AppVersion._meta.label, pk=version.pk, changes=changes, operation=_PREFIX + action, subject=subject
    )


def _roll_back_to(before: AppVersion) -> tuple[str, int]:
    return TO_WITHDRAWN if before.is_deprecated else ROLL_BACK, before.pk


def _notes(version: AppVersion, proposal: Proposal) -> list[str]:
    action = proposal.operation.removeprefix(_PREFIX)
    if action in (ROLL_BACK, TO_WITHDRAWN):
        try:
            before = rollout.version_before(version)
        except NotPossible as error:
            return [gettext("This cannot be done: %(reason)s.") % {"reason": sentence(error.message)}]
        names = {"before": before, "version": version}
        notes = [gettext("Computers get %(before)s again. Running jobs of %(version)s continue.") % names]
        if before.is_deprecated:
            notes.append(
                gettext(
                    "%(before)s is currently withdrawn and will be released again. The preview only covers the "
                    "withdrawal."
                )
                % names
            )
        return notes
    if action == "withdraw":
        return [gettext("Computers no longer get it. Running jobs continue.")]
    return [gettext("All computers get it.") if action == "release" else gettext("Only testers’ computers get it.")]


def _carry_out(version: AppVersion, proposal: Proposal) -> Change | None:
    action = proposal.operation.removeprefix(_PREFIX)
    try:
        if action in (ROLL_BACK, TO_WITHDRAWN):
            # The versions are locked, so the one that is sent again stays the same.
            if _roll_back_to(rollout.version_before(version)) != (action, proposal.subject):
                raise ValidationError(str(_ANOTHER))
            rollout.roll_back(version)
        else:
            user = User.objects.get(pk=proposal.subject or 0)
            with_volunteers = action == WITH_VOLUNTEERS
            rollout.act(version, ACTIONS[action], user, timezone.now(), with_volunteers=with_volunteers)
    except NotPossible as error:
        raise ValidationError(sentence(error.message)) from error
    return None  # saving the version records the change


def _operation(action: str) -> RowOperation:
    def title(version: Any, proposal: Proposal) -> str:
        return str(TITLES[action]).format(version)

    def shown(version: Any, proposal: Proposal) -> list[Line]:
        return lines(AppVersion, proposal.changes)

    def lock(proposal: Proposal) -> None:
        rollout.lock(AppVersion.objects.get(pk=proposal.pk))

    return RowOperation(
        title=title,
        lines=shown,
        notes=_notes,
        lock=lock,
        carry_out=_carry_out,
        permission=RELEASE,
    )


OPERATIONS: Final = {_PREFIX + action: _operation(action) for action in TITLES}
