"""Tokens of the REST API: making, checking and revoking them. A token in clear is shown once, to its maker."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterable
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from portal.languages.messages import Message
from portal.models import ApiToken, User
from portal.people.accounts import lock_unchanged
from portal.people.security_events import NOWHERE, Kind, Source, record
from portal.wire import credentials

MAX_TOKENS_PER_USER: Final = 50
USE_NOTED_EVERY: Final = dt.timedelta(hours=1)
# Programs that look for secrets in published files recognise tokens by their prefix.
PREFIX: Final = "cobble_"
_HINT_CHARS: Final = 10
_MAX_CHARS: Final = 100


class TooManyTokens(Exception):
    """The user already has as many valid tokens as allowed."""


def valid_tokens() -> QuerySet[ApiToken]:
    """Tokens that are neither revoked nor expired."""
    return ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)


def issue_token(
    user: User, *, name: str, scopes: Iterable[str], lifetime: dt.timedelta | None, source: Source = NOWHERE
) -> str:
    """Issue a token and return it in clear; ``lifetime`` None: valid until it is revoked.

    ``user``: as when the request began. Raises TooManyTokens and PasswordChanged.
    """
    token = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        # Two simultaneous requests must not both count first and then both add.
        lock_unchanged(user)
        if valid_tokens().filter(user=user).count() >= MAX_TOKENS_PER_USER:
            raise TooManyTokens
        ApiToken.objects.create(
            user=user,
            name=name,
            scopes=sorted({ApiToken.Scope(scope).value for scope in scopes}),
            token_hash=credentials.key_hash(token),
            hint=token[:_HINT_CHARS],
            expires_at=timezone.now() + lifetime if lifetime else None,
        )
        record(user, Kind.TOKEN_MADE, source, f"{token[:_HINT_CHARS]}…, {name}")
    return token


def find_valid_token(token: str) -> ApiToken | None:
    """The valid token with this text, with its user; None if there is none. Records its use at most once an hour."""
    if len(token) > _MAX_CHARS:
        return None
    api_token = (
        valid_tokens()
        .filter(token_hash=credentials.key_hash(token), user__is_active=True)
        .select_related("user")
        .first()
    )
    now = timezone.now()
    if api_token is not None and (api_token.last_used_at is None or now - api_token.last_used_at > USE_NOTED_EVERY):
        ApiToken.objects.filter(pk=api_token.pk).update(last_used_at=now)
    return api_token


def replace_token(user: User, token_id: int, source: Source) -> str | None:
    """Replace one of the user's tokens, which ends at once, by a new one with the same name, access and lifetime.

    None if the user has no such valid token. Raises PasswordChanged.
    """
    with transaction.atomic():
        lock_unchanged(user)
        old = valid_tokens().filter(user=user, pk=token_id).first()
        if old is None:
            return None
        revoke_token(user, token_id, source)
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        return issue_token(user, name=old.name, scopes=old.scopes, lifetime=lifetime, source=source)


def revoke_token(user: User, token_id: int, source: Source = NOWHERE) -> ApiToken | None:
    """Revoke one of the user's tokens for good; None if there is no such token. Safe to repeat."""
    own = ApiToken.objects.filter(user=user, pk=token_id)
    number = own.filter(revoked_at=None).update(revoked_at=timezone.now())
    token = own.first()
    if number and token:
        record(user, Kind.TOKEN_REVOKED, source, f"{token.hint}…, {token.name}")
    return token


def revoke_all_tokens(user: User, source: Source = NOWHERE) -> int:
    """Revoke all of the user's tokens for good; return how many valid ones there were."""
    number = valid_tokens().filter(user=user).update(revoked_at=timezone.now())
    if number:
        record(user, Kind.TOKEN_REVOKED, source, Message("event_all_tokens"))
    return number
