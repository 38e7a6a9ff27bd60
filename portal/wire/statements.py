"""Signed statements: canonical JSON, and Ed25519 signatures over exactly those bytes. Pure.

A statement is a JSON object of text, whole numbers, lists of them and further objects. Its canonical form is JSON with
the keys in the order of their code points, no blanks, and non-ASCII characters in UTF-8, as RFC 8785 requires for
whole numbers below 2**53 and text. Anybody with the public key can check the signature (RFC 8032).
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MAX_NUMBER: Final = 2**53 - 1
"""The largest number that every JSON reader represents exactly."""

Statement = dict[str, Any]


def signing_key(secret: str, purpose: str) -> Ed25519PrivateKey:
    """The key pair for a secret of the site and a purpose; the same two always give the same pair.

    So a signature for one purpose is invalid for any other, whatever the statement says.
    """
    seed = HKDF(SHA256(), 32, salt=None, info=f"{purpose}, Ed25519".encode()).derive(secret.encode())
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_key_text(key: Ed25519PrivateKey) -> str:
    """The public key as PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def canonical(statement: Statement) -> bytes:
    """The bytes that are signed. Raises ValueError for what has no canonical form: fractions, too large numbers."""
    _check(statement)
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _check(value: object) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str) or not name.isascii():
                raise ValueError(f"a statement's key is not ASCII text: {name!r}")
            _check(member)
    elif isinstance(value, list):
        for member in value:
            _check(member)
    elif isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"a statement's value is neither text nor a whole number: {value!r}")
    elif isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise ValueError(f"a statement's number exceeds {MAX_NUMBER}: {value}")


def sign(statement: Statement, key: Ed25519PrivateKey) -> str:
    """The signature in base64."""
    return b64encode(key.sign(canonical(statement))).decode()


def is_signed(statement: Statement, signature: str, key: Ed25519PublicKey) -> bool:
    """Whether this is the key's signature of the statement; False for anything that is not a signature."""
    try:
        key.verify(b64decode(signature, validate=True), canonical(statement))
    except (InvalidSignature, ValueError):
        return False
    return True
