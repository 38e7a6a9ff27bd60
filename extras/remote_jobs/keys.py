"""Keys of programs that submit jobs: create one, find its owner, check what was made with it."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from credit.models import App
from extras.remote_jobs.models import JobsKey
from portal.models import ApiToken, User
from portal.people.api_tokens import find_valid_token, issue_token, valid_tokens
from portal.people.security_events import NOWHERE, Source
from portal.people.staff import are_rights_held, lacks_second_factor
from portal.sign_in import throttle
from portal.wire import credentials, sealing
from scheduler.submission.batches import may_submit


class KeyRefused(Exception):
    """A key without access; the message is BOINC's."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a key, and the ids of the apps that it may submit jobs for."""

    user: User
    app_ids: frozenset[int]


@transaction.atomic
def issue(
    user: User, *, name: str, apps: Iterable[App], lifetime: dt.timedelta | None, source: Source = NOWHERE
) -> str:
    """Create a key in clear, for jobs of these apps. Raises TooManyTokens and PasswordChanged."""
    key = issue_token(user, name=name, scopes=[], lifetime=lifetime, source=source)
    token = ApiToken.objects.get(token_hash=credentials.key_hash(key))
    row = JobsKey.objects.create(token=token, sealed_key=sealing.seal(settings.ACCOUNT_KEY_SECRET, _place(token), key))
    row.apps.set(apps)
    return key


def find_caller(key: str, address: str, *, names_app: bool) -> Caller:
    """Find the owner of this key. Raises KeyRefused, and counts wrong keys by address.

    Requests with a valid key are not counted: programs take a refusal for the failure of a job.
    """
    if not key:
        raise KeyRefused("no authenticator")
    try:
        throttle.admit_key(address)
    except throttle.Throttled as error:
        raise KeyRefused(
            f"too many wrong keys from your address: try again after {error.until:%H:%M:%S} UTC"
        ) from error
    token = find_valid_token(key)
    row = JobsKey.objects.filter(token=token).first() if token is not None else None
    if token is None or row is None:
        throttle.count_wrong_key(address, key)
        raise KeyRefused("bad authenticator")
    if not _may_submit(token.user):
        raise KeyRefused("no submit access" if names_app else "no file access")
    return Caller(token.user, frozenset(row.apps.values_list("pk", flat=True)))


def _may_submit(user: User) -> bool:
    """Whether the person has the right, and it is not suspended."""
    return may_submit(user) and not are_rights_held(user) and not lacks_second_factor(user)


def is_made_with_key_of(owner: User, app_id: int, text: str, digest: str) -> bool:
    """Whether the digest is the MD5 of a valid key of this person for this app, followed by the text."""
    tokens = valid_tokens().filter(user=owner)
    rows = JobsKey.objects.filter(token__in=tokens, apps=app_id).select_related("token")
    return _may_submit(owner) and any(_is_made_with(row, text, digest) for row in rows)


def _is_made_with(row: JobsKey, text: str, digest: str) -> bool:
    try:
        key = sealing.unseal(settings.ACCOUNT_KEY_SECRET, _place(row.token), bytes(row.sealed_key))
    except sealing.UnsealableError:
        return False  # sealed with an earlier secret: the key itself still works
    made = hashlib.md5(f"{key}{text}".encode(), usedforsecurity=False).hexdigest()
    return hmac.compare_digest(made.encode(), digest.lower().encode())


def _place(token: ApiToken) -> sealing.Place:
    return "jobskey", token.pk, "sealed_key", bytes(token.token_hash).hex()
