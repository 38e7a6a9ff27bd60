"""Login tokens, which a BOINC client sends once instead of the account's password.

A token works once within a day, and each volunteer has at most one; only a hash is stored. It ends when the password
is reset, and when a second factor is added, as anyone who knew only the password could have made it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from typing import Final

from portal.models import LoginToken, User
from portal.wire import credentials

VALID: Final = dt.timedelta(days=1)


def make(user: User, now: dt.datetime) -> str:
    """Make a token, in place of the one before, and return it in clear."""
    token = secrets.token_hex(16)
    stored = _hash(user, credentials.client_password_hash(token, user.email))
    LoginToken.objects.update_or_create(user=user, defaults={"token_hash": stored, "made_at": now})
    return token


def use(user: User, sent: str, now: dt.datetime) -> bool:
    """Whether ``sent`` is for the user's token, which this uses up: of two requests at once one is right.

    ``sent``: MD5(token + e-mail address), as for a password.
    """
    valid = LoginToken.objects.filter(user=user, token_hash=_hash(user, sent.lower()), made_at__gt=now - VALID)
    return valid.delete()[0] == 1


def _hash(user: User, sent: str) -> bytes:
    return hashlib.sha256(f"{user.password} {sent}".encode()).digest()
