"""Texts stored encrypted, each bound to its place: the table, the row, the field, and where it may be sent.

AES-256-GCM, with the place as associated data (RFC 5116): a sealed text that was moved to another row or field, or
whose row was given another address, cannot be read there. Pure.
"""

from __future__ import annotations

import json
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Place = tuple[str | int, ...]
_NONCE_NBYTES: Final = 12
_PORTS: Final = {"http": ":80", "https": ":443"}


class UnsealableError(ValueError):
    """The stored text was sealed with another secret or for another place, or is damaged."""


@lru_cache(maxsize=4)
def _cipher(secret: str) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=b"stored texts, AES-256-GCM").derive(secret.encode()))


def seal(secret: str, place: Place, text: str) -> bytes:
    """Encrypt the text for this place, as ASCII."""
    nonce = os.urandom(_NONCE_NBYTES)
    return urlsafe_b64encode(nonce + _cipher(secret).encrypt(nonce, text.encode(), _associated(place)))


def unseal(secret: str, place: Place, sealed: bytes) -> str:
    """Decrypt a sealed text. Raises UnsealableError."""
    try:
        raw = urlsafe_b64decode(sealed)
        return _cipher(secret).decrypt(raw[:_NONCE_NBYTES], raw[_NONCE_NBYTES:], _associated(place)).decode()
    except (InvalidTag, ValueError) as error:
        raise UnsealableError("sealed with another secret or for another place") from error


def _associated(place: Place) -> bytes:
    return json.dumps(place, separators=(",", ":")).encode()


def origin(url: str) -> str:
    """Scheme, host and port of an address, which are equal for addresses of one server."""
    scheme, _, rest = url.lower().partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    return f"{scheme}://{host.removesuffix(_PORTS.get(scheme, ''))}"
