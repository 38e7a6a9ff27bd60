"""Steps for two people: a release to all computers, and a new code-signing key."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import AppVersion
from portal.audit.proposals import Proposal
from portal.audit.two_persons import Payload, StepKind, StepRefused
from portal.languages.sentences import sentence
from portal.models import User
from scheduler.engine.release_states import NotPossible, ReleaseAction
from scheduler.models import ReleaseDraft
from scheduler.programs import key_change
from scheduler.programs.key_change import KeyChangeError, Succession
from scheduler.programs.release import ReleaseError
from scheduler.releases import drafts, rollout

RELEASE: Final = "release"
NEW_KEY: Final = "new_key"


def payload_of_draft(draft: ReleaseDraft) -> Payload:
    """Return what has to be confirmed, with a digest, so that a confirmation does not count for a draft that was
    changed.
    """
    return {"draft": draft.pk, "digest": _digest(draft)}


def payload_of_version(version: AppVersion) -> Payload:
    return {"version": version.pk}


def payload_of_key(new: Succession) -> Payload:
    return {"public_key": new.public_key, "signature": new.signature, "programs": dict(new.programs)}


def _digest(draft: ReleaseDraft) -> str:
    files = [[file.name, file.md5, file.signature] for file in draft.files.order_by("name")]
    return sha256(json.dumps([drafts.described(draft), files], sort_keys=True).encode()).hexdigest()


def _release(payload: Payload, asked_by: User) -> None:
    """Release it. Locks the draft, or the versions of the app, platform and plan class."""
    now = timezone.now()
    try:
        if "version" in payload:
            version = AppVersion.objects.select_related("app", "beta_test").filter(pk=payload["version"]).first()
            if version is None:
                raise StepRefused(gettext("It no longer exists."))
            rollout.act(version, ReleaseAction.RELEASE, asked_by, now)
            return
        draft = ReleaseDraft.objects.select_for_update().filter(pk=payload["draft"]).first()
        if draft is None or _digest(draft) != payload["digest"]:
            raise StepRefused(gettext("The version has changed since this was requested. Ask again."))
        drafts.store(draft, ReleaseAction.RELEASE, asked_by, now)
    except ReleaseError as error:
        raise StepRefused(str(error)) from error
    except NotPossible as error:
        raise StepRefused(sentence(error.message)) from error


def _release_lines(payload: Payload) -> list[tuple[str, str]]:
    if "version" in payload:
        version = AppVersion.objects.filter(pk=payload["version"]).first()
        return [(gettext("Version"), str(version or "–"))]
    draft = ReleaseDraft.objects.filter(pk=payload["draft"]).first()
    if draft is None:
        return []
    files = [(file.name, f"MD5 {file.md5}") for file in draft.files.order_by("name")]
    return [(gettext("Version"), str(draft)), *files]


def _take_key(payload: Payload, asked_by: User) -> None:
    new = Succession(payload["public_key"], payload["signature"], payload["programs"])
    try:
        key_change.take(new, timezone.now())
    except KeyChangeError as error:
        raise StepRefused(str(error)) from error


def _key_lines(payload: Payload) -> list[tuple[str, str]]:
    return [
        (gettext("New public key"), payload["public_key"]),
        (gettext("Programs signed with it"), str(len(payload["programs"]))),
    ]


def is_release(row: Model, proposal: Proposal) -> bool:
    """Whether a change that was proposed otherwise is a release to all, and therefore refused there."""
    if not isinstance(row, AppVersion):
        return False
    return proposal.operation in ("release:release", "release:roll_back_to_withdrawn") or (
        not proposal.operation and proposal.changes.get("is_deprecated", [None, None])[1] is False
    )


STEPS: Final = {
    RELEASE: StepKind(_("Release to all"), "scheduler.release_appversion", _release, _release_lines),
    NEW_KEY: StepKind(_("New code-signing key"), "scheduler.add_keychange", _take_key, _key_lines),
}
