"""Web Push: messages that only one browser can read (RFC 8291), and proof of their sender (VAPID, RFC 8292). Pure.

A browser that subscribes gives an address of its push service, a public key and a secret. The service carries messages
but cannot read them.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MAX_TEXT_BYTES: Final = 3000
"""The limit of a message: services accept at least 4096 bytes, including encryption (RFC 8030, 7.2)."""
VALID_SECS: Final = 12 * 3600
"""How long a VAPID token is valid; at most 24 hours (RFC 8292, 2)."""
_CURVE: Final = ec.SECP256R1()
_POINT_BYTES: Final = 65
_SECRET_BYTES: Final = 16
_RECORD_BYTES: Final = 4096
_LAST_RECORD: Final = b"\x02"


class PushKeyError(ValueError):
    """The key is malformed; the text names the field and what it must be."""


@dataclass(frozen=True, slots=True)
class BrowserKeys:
    """``p256dh``: the browser's public key, a point of 65 bytes; ``auth``: its secret of 16 bytes."""

    p256dh: bytes
    auth: bytes


def parse_browser_keys(p256dh: str, auth: str) -> BrowserKeys:
    """Parse the keys that a browser gives, in base64url. Raises PushKeyError."""
    keys = BrowserKeys(_decoded("p256dh", p256dh, _POINT_BYTES), _decoded("auth", auth, _SECRET_BYTES))
    _point("p256dh", keys.p256dh)
    return keys


def encrypt(text: bytes, keys: BrowserKeys) -> bytes:
    """The body of the request to the push service, in the coding aes128gcm. Raises ValueError for a text too long."""
    if len(text) > MAX_TEXT_BYTES:
        raise ValueError(f"a message may have at most {MAX_TEXT_BYTES} bytes")
    return encrypt_with(text, keys, ec.generate_private_key(_CURVE), os.urandom(16))


def encrypt_with(text: bytes, keys: BrowserKeys, own: ec.EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """Encrypt with this key and salt, as in RFC 8291's example; each pair is for one message only."""
    own_point = _public_bytes(own)
    shared = own.exchange(ec.ECDH(), _point("p256dh", keys.p256dh))
    secret = _derived(shared, keys.auth, b"WebPush: info\0" + keys.p256dh + own_point, 32)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + _RECORD_BYTES.to_bytes(4, "big") + len(own_point).to_bytes(1, "big") + own_point
    return head + AESGCM(key).encrypt(nonce, text + _LAST_RECORD, None)


def _derived(secret: bytes, salt: bytes, info: bytes, nbytes: int) -> bytes:
    return HKDF(SHA256(), nbytes, salt, info).derive(secret)


# --- the sender --------------------------------------------------------------------------------------------


def new_key_text() -> str:
    """A private key for VAPID in its stored form: 32 bytes in base64url."""
    return encoded(ec.generate_private_key(_CURVE).private_numbers().private_value.to_bytes(32, "big"))


def parse_key(text: str) -> ec.EllipticCurvePrivateKey:
    """Parse a key made by `new_key_text`. Raises PushKeyError, which does not show it."""
    number = int.from_bytes(_decoded("the key", text, 32), "big")
    try:
        return ec.derive_private_key(number, _CURVE)
    except ValueError:
        raise PushKeyError("the key is not on the curve P-256") from None


def public_key_text(key: ec.EllipticCurvePrivateKey) -> str:
    """The key that a browser gets when it subscribes: it then accepts messages from this sender only."""
    return encoded(_public_bytes(key))


def vapid_header(key: ec.EllipticCurvePrivateKey, origin: str, contact: str, now_secs: int) -> str:
    """The value of Authorization for a push service.

    ``origin``: the service's scheme and host; ``contact``: https: or mailto: address of the site's operators.
    """
    claims = {"aud": origin, "exp": now_secs + VALID_SECS, "sub": contact}
    parts = ({"typ": "JWT", "alg": "ES256"}, claims)
    signed = ".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"vapid t={signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}, k={public_key_text(key)}"


def encoded(data: bytes) -> str:
    """base64url without padding, as everywhere in Web Push."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(field: str, text: str, nbytes: int) -> bytes:
    requirement = f"{field} must be {nbytes} bytes in base64url"
    if len(text) > 2 * nbytes or not text.isascii():
        raise PushKeyError(requirement)
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise PushKeyError(requirement) from None
    if len(decoded) != nbytes:
        raise PushKeyError(requirement)
    return decoded


def _point(field: str, data: bytes) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, data)
    except ValueError:
        raise PushKeyError(f"{field} is not a point of the curve P-256") from None


def _public_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
