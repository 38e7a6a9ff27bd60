"""The credentials of BOINC clients: a value derived from the password, and random client keys. Pure.

Source: BOINC protocol, web RPCs and account-manager request (``password_hash``, ``authenticator``).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets


def client_password_hash(password: str, email: str) -> str:
    """The value that a client sends for a password: MD5 of password + lower-case login, 32 hex digits."""
    return hashlib.md5((password + email.lower()).encode(), usedforsecurity=False).hexdigest()


def new_client_key() -> str:
    """A new client key, 32 random hex digits; without an underscore, so that clients treat it as a strong key."""
    return secrets.token_hex(16)


def key_hash(key: str) -> bytes:
    """The hash that is stored and looked up. The keys are random, so a fast hash without salt is enough."""
    return hashlib.sha256(key.encode()).digest()


def external_cpid(internal: str, email: str) -> str:
    """The id by which statistics sites know an account or a computer: MD5 of the id that projects store for it, and the
    account's address (BOINC protocol, identifiers). So nobody gets another's by sending their id.
    """
    return hashlib.md5(f"{internal}{email}".encode(), usedforsecurity=False).hexdigest()


def weak_key(user_id: int, hash_of_key: bytes, pepper: str) -> str:
    """The weak form of a client key, for this site's own project: a computer can work with it, but not change anything.

    It is derived from the stored hash, and valid as long as the key itself. Its form is ``<user id>_`` and 32 hex
    digits (BOINC protocol, identifiers): clients replace such keys when told to.
    """
    return f"{user_id}_{hashlib.md5((hash_of_key.hex() + pepper).encode(), usedforsecurity=False).hexdigest()}"


def weak_key_hash(key: str) -> bytes:
    """The hash of a weak key from before a project moved here; by another function, so that it matches no other key."""
    return hashlib.blake2b(key.encode(), digest_size=32).digest()


def weak_key_pepper(secret: str) -> str:
    """A part of all weak keys that is not in the database, so that a copy of the database cannot make keys."""
    return hmac.new(secret.encode(), b"weak client keys", hashlib.sha256).hexdigest()


def join_token_hash(password_hash: str, secret: str) -> bytes:
    """The keyed hash of what clients send for a join token, so that a copy of the database cannot recognise one."""
    key = hmac.new(secret.encode(), b"join tokens", hashlib.sha256).digest()
    return hmac.new(key, password_hash.lower().encode(), hashlib.sha256).digest()
