"""The steps of a set-up that change a project: sign, enter the account, attach computers, apply its answer.

Each is one transaction that locks the project's row, but not against rows that refer to it: computers go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

from django.db import transaction
from django.utils.translation import gettext

from accounting.models import Project, ProjectProfile, StatisticsImport, UserProject
from accounting.project_setup.changes import KEYWORDS, NAME, VERSIONS, fingerprint
from accounting.project_setup.contents import set_keywords, set_versions
from accounting.projects import signing_key
from accounting.rpc import account_keys, catalogue
from accounting.wire.project_config import from_json
from portal.languages.sentences import sentence
from portal.models import SignedEntry, User
from portal.wire import signing


class StepRefused(Exception):
    """The step was not done. ``str`` is a sentence for operators."""


@transaction.atomic
def _change(project_id: int, change: Callable[[Project], None]) -> Project:
    SignedEntry.lock()
    project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
    change(project)
    project.save()
    transaction.on_commit(catalogue.forget)
    return project


def is_signed(project: Project) -> bool:
    """Whether clients accept the signature of the project's address."""
    with suppress(signing.SigningError, OSError):
        return bool(project.url_signature) and signing_key.is_signed(project.master_url, project.url_signature)
    return False


def sign(project_id: int, pasted: str) -> None:
    """Store the pasted signature if it is valid, or, if none is pasted, sign with the server's key. Raises
    StepRefused.
    """

    def change(project: Project) -> None:
        try:
            if pasted.strip():
                if not signing_key.is_signed(project.master_url, pasted):
                    raise StepRefused(gettext("This is not a signature of this URL made with the site’s signing key."))
                project.url_signature = signing.clean_signature(pasted)
                return
            fresh = signing_key.sign_url(project.master_url)
        except (signing.SigningError, OSError) as error:
            text = (
                gettext("This is not a signature: %(error)s.")
                if pasted.strip()
                else gettext("The server’s key cannot be used: %(error)s.")
            )
            reason = sentence(error.message) if isinstance(error, signing.SigningError) else error
            raise StepRefused(text % {"error": reason}) from error
        if fresh is None:
            raise StepRefused(
                gettext("The private key is not on this server. Sign the URL elsewhere and paste the signature.")
            )
        project.url_signature = fresh

    _change(project_id, change)


def store_account_key(project_id: int, user: User, account_key: str, email: str = "") -> None:
    """Store the key of the shared account or, where each volunteer has one, of this operator's account.

    ``email``: the address of the account, if it is known. That of a shared one finds its computers in statistics.
    """

    def change(project: Project) -> None:
        if project.account_mode == Project.Account.SHARED:
            project.shared_account_key = account_keys.seal_shared(project, account_key)
            if email:
                StatisticsImport.objects.update_or_create(project=project, defaults={"account_email": email})
        else:
            row, _ = UserProject.objects.select_for_update(no_key=True).get_or_create(user=user, project=project)
            row.account_key = account_keys.seal_own(user.pk, project, account_key)
            row.save()

    _change(project_id, change)


def account_key(project: Project, user: User) -> str:
    """Return the key that a trial uses; empty if there is none. Raises StepRefused for one that cannot be read."""
    try:
        if project.account_mode == Project.Account.SHARED:
            return account_keys.shared(project) or ""
        stored = UserProject.objects.filter(user=user, project=project).values_list("account_key", flat=True).first()
        return account_keys.own(user.pk, project.pk, project.master_url, bytes(stored)) if stored else ""
    except account_keys.UnreadableAccountKey as error:
        raise StepRefused(gettext("The stored account key cannot be read: %(error)s.") % {"error": error}) from error


def obstacles(project: Project) -> list[str]:
    """Return why no computer could be attached to the project."""
    reasons = []
    if not is_signed(project):
        reasons.append(gettext("Its URL is not signed, so clients would refuse it."))
    if project.account_mode == Project.Account.SHARED and not project.shared_account_key:
        reasons.append(gettext("There is no account key, so volunteers would have to enter their own."))
    return reasons


def set_active(project_id: int, is_active: bool) -> None:
    """Let computers be attached, or stop it. Raises StepRefused while a requirement is missing."""

    def change(project: Project) -> None:
        if is_active and (missing := obstacles(project)):
            raise StepRefused(" ".join(missing))
        project.is_active = is_active

    _change(project_id, change)


def _shown(project_id: int, seen_fingerprint: str) -> ProjectProfile:
    """Return the profile, locked. Raises StepRefused if the operator was shown an older answer."""
    profile = ProjectProfile.objects.select_for_update().filter(project_id=project_id).first()
    if profile is None or not profile.said or fingerprint(profile) != seen_fingerprint:
        raise StepRefused(gettext("The project has changed its answer in the meantime. Please check it again."))
    return profile


def take_over(project_id: int, fields: Collection[str], seen_fingerprint: str) -> None:
    """Apply the project's last answer to its name, platforms or keywords. Locks the project, then its profile.

    ``seen_fingerprint``: that of the answer that the operator saw. Raises StepRefused if it is no longer the last.
    """

    def change(project: Project) -> None:
        profile = _shown(project.pk, seen_fingerprint)
        config = from_json(profile.said)
        if NAME in fields and config.name:
            if Project.objects.filter(name=config.name).exclude(pk=project.pk).exists():
                raise StepRefused(gettext("Another project on this site has that name. Change it by hand."))
            project.name = config.name
        if VERSIONS in fields:
            set_versions(project, config.versions)
        if KEYWORDS in fields:
            set_keywords(project, config.keywords)
        profile.seen = profile.seen | {name: profile.said[name] for name in fields if name in profile.said}
        profile.save()

    _change(project_id, change)


@transaction.atomic
def mark_seen(project_id: int, seen_fingerprint: str) -> None:
    """Mark the project's present answer as seen. Nothing else changes. Raises StepRefused like `take_over`."""
    profile = _shown(project_id, seen_fingerprint)
    profile.seen, profile.code_key_seen = profile.said, profile.code_key
    profile.save()
