"""The words of releases."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from credit.models import AppVersion
from scheduler.engine.release_states import ReleaseAction, ReleaseState

STATES: Final = {
    ReleaseState.DRAFT: _("draft"),
    ReleaseState.BETA: _("in test"),
    ReleaseState.RELEASED: _("released"),
    ReleaseState.WITHDRAWN: _("withdrawn"),
}
_DONE: Final = {
    ReleaseAction.TEST: _("%(version)s is being tested: only testers’ computers get it."),
    ReleaseAction.RELEASE: _("%(version)s is released to all computers."),
    ReleaseAction.WITHDRAW: _("%(version)s is withdrawn: computers no longer get it. Running jobs continue."),
}


def done(version: AppVersion | str, action: ReleaseAction) -> str:
    """What has been done with a version."""
    return str(_DONE[action]) % {"version": version}
