"""A browser that subscribed to push messages: it decrypts them, and checks who sent them, as RFC 8291 and 8292 say."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from portal.wire.web_push import BrowserKeys, encoded


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _hmac(key: bytes, *data: bytes) -> bytes:
    made = HMAC(key, SHA256())
    made.update(b"".join(data))
    return made.finalize()


class PushBrowser:
    """``subscription``: what its PushManager gives to the page."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.keys = BrowserKeys(self._point, os.urandom(16))

    def subscription(self, endpoint: str) -> str:
        keys = {"p256dh": encoded(self._point), "auth": encoded(self.keys.auth)}
        return json.dumps({"endpoint": endpoint, "expirationTime": None, "keys": keys})

    def decrypted(self, body: bytes) -> bytes:
        """The text of a message. HKDF is written out here, as the RFC has it, with HMAC alone."""
        salt, nbytes, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= nbytes
        shared = self._key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = _hmac(_hmac(self.keys.auth, shared), b"WebPush: info\0", self._point, sender, b"\x01")
        extracted = _hmac(salt, secret)
        key = _hmac(extracted, b"Content-Encoding: aes128gcm\0\x01")[:16]
        nonce = _hmac(extracted, b"Content-Encoding: nonce\0\x01")[:12]
        text, _, padding = AESGCM(key).decrypt(nonce, record, None).rpartition(b"\x02")
        assert not padding.strip(b"\0")
        return text


def claims_of(authorization: str) -> dict[str, Any]:
    """What a sender claims, when the signature is right; ``k`` is its public key, in base64url."""
    scheme, _, rest = authorization.partition(" ")
    assert scheme == "vapid"
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    head, claims, signature = fields["t"].split(".")
    assert json.loads(unpadded(head)) == {"typ": "JWT", "alg": "ES256"}
    raw = unpadded(signature)
    numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unpadded(fields["k"]))
    public.verify(encode_dss_signature(*numbers), f"{head}.{claims}".encode(), ec.ECDSA(SHA256()))
    return {**json.loads(unpadded(claims)), "k": fields["k"]}
