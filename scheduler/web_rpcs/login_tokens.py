"""Log a freshly installed client in by a token that its volunteer had made on this site.

A token is for one use within a day, and each volunteer has at most one; only its hash is kept. It ends when the
password is set anew, as whoever opened the account before could have had it made.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from typing import Final

from django.db import transaction

from credit.teams.reads import team_of
from portal.clients.messages import ClientReply
from portal.models import ClientKey, User
from portal.people.accounts import ClientAuthError, demand_confirmed_address, issue_client_key
from portal.people.key_mails import tell_of_key
from portal.people.security_events import Source
from portal.sign_in import throttle
from portal.wire.boinc_errors import ERR_BAD_AUTHENTICATOR, ERR_GENERIC
from scheduler.models import LoginToken
from scheduler.web_rpcs.asked import Asked
from scheduler.web_rpcs.documents import reply

VALID: Final = dt.timedelta(days=1)


def make(user: User, now: dt.datetime) -> str:
    """A token in clear, in place of the one before."""
    token = secrets.token_hex(16)
    LoginToken.objects.update_or_create(user=user, defaults={"token_hash": _hash(user, token), "made_at": now})
    return token


def look_up(asked: Asked, now: dt.datetime) -> ClientReply:
    """A client key for the token. Raises ClientAuthError; wrong tokens are counted by address."""
    try:
        throttle.admit_key(asked.address)
    except throttle.Throttled as error:
        message = f"There were too many wrong tokens from your address. Try again after {error.until:%H:%M:%S} UTC."
        raise ClientAuthError(ERR_GENERIC, message) from error
    # Locks the user's row, as making keys does; then the token.
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=asked.number("user_id"), is_active=True).first()
        right = _right(user, asked.given.get("token", ""), now) if user is not None else None
        if user is not None and right is not None:
            demand_confirmed_address(user.pk)
            right.delete()
            key = issue_client_key(user, ClientKey.Origin.ATTACH, source=Source(asked.address))
            tell_of_key(user, asked.address)
    if user is None or right is None:
        throttle.count_wrong_key(asked.address)
        raise ClientAuthError(
            ERR_BAD_AUTHENTICATOR, "The login token is not valid any more. Log in with e-mail address and password."
        )
    team = team_of(user)
    return reply(
        "login_token_reply",
        [("authenticator", key), ("user_name", user.name or "Anonymous"), ("team_name", team.name if team else None)],
    )


def _right(user: User, token: str, now: dt.datetime) -> LoginToken | None:
    return LoginToken.objects.filter(user=user, token_hash=_hash(user, token), made_at__gt=now - VALID).first()


def _hash(user: User, token: str) -> bytes:
    return hashlib.sha256(f"{user.password} {token}".encode()).digest()
