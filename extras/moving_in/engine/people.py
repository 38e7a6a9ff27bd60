"""Volunteers of a BOINC project: their addresses, password hashes and keys."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_NOBODYS: Final = "@moved.invalid"
PLACEHOLDER: Final = "{number}" + _NOBODYS
"""The address of an account whose own is missing or somebody else's: mail reaches nobody, and no login has it."""
MD5_ROUNDS: Final = 1_000
"""Bare MD5s are hashed before they are stored: they are what clients log in with. A few rounds alone, as each of a
million people's takes the time of them; the next login hashes it as all others are."""

_ADDRESS: Final = re.compile(r"[^@\s]{1,64}@[^@\s]{1,189}")
BCRYPT: Final = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
"""With a cost that can be: each step doubles the time of a login, and 17 takes ten seconds."""
_HEX_32: Final = re.compile(r"[0-9a-f]{32}")


def address(text: str) -> str:
    """The address as it is kept here, if it is one; else empty."""
    lower = text.strip().lower()
    return (
        lower if _ADDRESS.fullmatch(lower) and not lower.startswith("deleted_") and not lower.endswith(_NOBODYS) else ""
    )


class Holder(NamedTuple):
    """An account and the last contact of its computers."""

    number: int
    address: str
    last_at: float


def without_address(holders: Iterable[Holder]) -> set[int]:
    """Of accounts with one address all but the one whose computers reported last; among equals, the oldest has it."""
    best: dict[str, Holder] = {}
    losers = set()
    for holder in sorted(holders, key=lambda each: (-each.last_at, each.number)):
        if not holder.address:
            continue
        if best.setdefault(holder.address, holder) is not holder:
            losers.add(holder.number)
    return losers


class Password(NamedTuple):
    """A hash over what clients send, in Django's form; empty: there is none that can be checked, for this reason."""

    encoded: str
    fault: str = ""


def password(stored: str, email: str, authenticator: str, number: int) -> Password:
    """The hash of `User.client_password`. ``email``: as stored there."""
    if BCRYPT.fullmatch(stored):
        return Password(f"bcrypt${stored}")
    if _HEX_32.fullmatch(stored.lower()):
        return Password(_hashed(stored.lower(), number))
    if not stored and authenticator:
        # BOINC's server stores this at the first look-up.
        sent = hashlib.md5((authenticator + email).encode(), usedforsecurity=False).hexdigest()
        return Password(_hashed(sent, number))
    return Password("", "no password" if not stored else "password hash of a kind that cannot be checked")


def _hashed(sent: str, number: int) -> str:
    """Django's form of PBKDF2. The salt is the same at each import, as what is imported twice changes nothing."""
    salt = hashlib.sha256(f"moving in {number} {sent}".encode()).hexdigest()[:22]
    digest = hashlib.pbkdf2_hmac("sha256", sent.encode(), salt.encode(), MD5_ROUNDS)
    return f"pbkdf2_sha256${MD5_ROUNDS}${salt}${base64.b64encode(digest).decode()}"


def strong_key(authenticator: str) -> str:
    """The account's key, unless an operator disabled it or the account is erased."""
    return authenticator if _HEX_32.fullmatch(authenticator) else ""


def weak_key(number: int, authenticator: str, stored: bytes) -> str:
    """What clients hold that got the project from an account manager: made of the stored bytes."""
    digest = hashlib.md5(authenticator.encode() + stored, usedforsecurity=False).hexdigest()
    return f"{number}_{digest}"


def cross_project_id(text: str) -> str:
    """Empty: a new one is to be made."""
    return text if _HEX_32.fullmatch(text) else ""
