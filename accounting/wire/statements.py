"""Signed statements: canonical JSON, and Ed25519 signatures over exactly those bytes. Pure.

A statement is a JSON object of text, whole numbers, lists of them and further objects. Its canonical form is JSON with
the keys in order of their code points, no blanks, and everything beyond ASCII as it is, in UTF-8: as RFC 8785 asks for,
as far as whole numbers below 2**53 and text go. Anybody with the public key can check the signature (RFC 8032).
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final
from unicodedata import category

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MAX_NUMBER: Final = 2**53 - 1
"""The largest number that every JSON reader keeps exactly."""
MAX_CODE_CHARS: Final = 300
"""Of what people enter as a code: with its blanks and dashes, or the whole address of a check."""
CODE_LENGTH: Final = 16
ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Of codes: Crockford's base 32, without letters that look like digits."""
_LOOK_ALIKE: Final = str.maketrans("OIL", "011")
_MINUS: Final = "\u2212"

Statement = dict[str, Any]


def signing_key(secret: str) -> Ed25519PrivateKey:
    """The key pair that belongs to a secret of the site; the same secret gives the same pair."""
    seed = HKDF(SHA256(), 32, salt=None, info=b"certificates, Ed25519").derive(secret.encode())
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_key_text(key: Ed25519PrivateKey) -> str:
    """The public key as PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def canonical(statement: Statement) -> bytes:
    """The bytes that are signed. ValueError for what has no canonical form: fractions, numbers that are too large."""
    _check(statement)
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _check(value: object) -> None:
    if isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str) or not name.isascii():
                raise ValueError(f"a statement's name is not ASCII text: {name!r}")
            _check(each)
    elif isinstance(value, list):
        for each in value:
            _check(each)
    elif isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"a statement has neither text nor a whole number: {value!r}")
    elif isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise ValueError(f"a statement's number is beyond {MAX_NUMBER}: {value}")


def sign(statement: Statement, key: Ed25519PrivateKey) -> str:
    """The signature in base64."""
    return b64encode(key.sign(canonical(statement))).decode()


def is_signed(statement: Statement, signature: str, key: Ed25519PublicKey) -> bool:
    """Whether the signature is this key's, of this statement. False for whatever is no signature."""
    try:
        key.verify(b64decode(signature, validate=True), canonical(statement))
    except (InvalidSignature, ValueError):
        return False
    return True


def read_code(text: str) -> str | None:
    """A code as it was printed or typed, or at the end of an address, in its plain form; None if it cannot be one."""
    if len(text) > MAX_CODE_CHARS:
        return None
    last = text.strip().rstrip("/").rpartition("/")[2]
    code = "".join(char for char in last.upper() if not _is_between(char)).translate(_LOOK_ALIKE)
    return code if len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) else None


def _is_between(char: str) -> bool:
    """A blank or dash of whatever kind."""
    return char.isspace() or char == _MINUS or category(char) == "Pd"


def grouped_code(code: str) -> str:
    """As it is printed, in groups of four: 7KQ4-9XMZ-…"""
    return "-".join(code[place : place + 4] for place in range(0, len(code), 4))
