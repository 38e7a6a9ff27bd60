"""Encryption of account keys at projects. Clients must be sent them in clear, so they cannot be hashed."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


class UnreadableAccountKey(Exception):
    """The stored key was encrypted with another ACCOUNT_KEY_SECRET."""


@lru_cache(maxsize=1)
def _fernet(secret: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()))


def encrypt(account_key: str) -> bytes:
    return _fernet(settings.ACCOUNT_KEY_SECRET).encrypt(account_key.encode())


@lru_cache(maxsize=10_000)
def decrypt(token: bytes) -> str:
    """The key in clear, cached in memory, as every reply repeats it."""
    try:
        return _fernet(settings.ACCOUNT_KEY_SECRET).decrypt(token).decode()
    except InvalidToken as error:
        raise UnreadableAccountKey("encrypted with another ACCOUNT_KEY_SECRET; enter the account key again") from error
