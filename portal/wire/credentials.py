"""What a BOINC client logs in with: a value derived from the password, and random client keys. No database here.

Source: BOINC protocol, web RPCs and account-manager request (``password_hash``, ``authenticator``).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password


def client_password_hash(password: str, email: str) -> str:
    """What a client sends for a password: MD5 of the password followed by the lower-case login, 32 hex digits."""
    return hashlib.md5((password + email.lower()).encode()).hexdigest()


def hash_client_password(password: str, email: str) -> str:
    """A slow, salted hash over the client's value: a stolen database logs in nowhere."""
    return make_password(client_password_hash(password, email))


def check_client_password(sent: str, stored: str) -> bool:
    """Whether the 32 hex digits that a client sent are those that ``stored`` was made from."""
    return bool(stored) and check_password(sent.lower(), stored)


def new_client_key() -> str:
    """A fresh client key, 32 random hex digits; it has no underscore, so clients take it for a strong one."""
    return secrets.token_hex(16)


def key_hash(key: str) -> bytes:
    """What is stored and looked up: the keys are random, so a fast hash without salt is enough."""
    return hashlib.sha256(key.encode()).digest()


def weak_key(user_id: int, hash_of_key: bytes) -> str:
    """The weak form of a client key, for projects of this very site: computers may use it, and nothing can be changed
    with it. It can be made of the hash that is stored, and is valid as long as the key itself.

    ``<user id>_`` and 32 hex digits (BOINC protocol, identifiers): clients replace such keys when they are told.
    """
    return f"{user_id}_{hashlib.md5((hash_of_key.hex() + weak_key_pepper()).encode()).hexdigest()}"


def weak_key_pepper() -> str:
    """What the digest of a weak key has in it beside the key's hash: a copy of the database makes no keys."""
    return hmac.new(settings.ACCOUNT_KEY_SECRET.encode(), b"weak client keys", hashlib.sha256).hexdigest()
