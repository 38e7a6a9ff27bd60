"""A channel's destination, as it is stored: encrypted."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from django.conf import settings

from extras.alerts.models import AlertChannel
from extras.alerts.wire import Destination
from portal.wire import sealing

UnreadableDestination = sealing.UnsealableError


def encrypt_destination(user_id: int, kind: str, destination: Destination) -> bytes:
    """Encrypt a destination for this volunteer's channel of this kind; it is bound to its address too."""
    return sealing.seal(settings.ACCOUNT_KEY_SECRET, _place(user_id, kind), json.dumps(asdict(destination)))


def decrypt_destination(channel: AlertChannel) -> Destination:
    """Decrypt a destination. Raises UnreadableDestination after ACCOUNT_KEY_SECRET was changed."""
    place = _place(channel.user_id, channel.kind)
    return Destination(**json.loads(sealing.unseal(settings.ACCOUNT_KEY_SECRET, place, bytes(channel.destination))))


def _place(user_id: int, kind: str) -> sealing.Place:
    return "alertchannel", user_id, str(kind), "destination"


def digest_of(url: str) -> bytes:
    """Return the digest by which a browser's address is found again."""
    return hashlib.sha256(url.encode()).digest()


def schemes() -> tuple[str, ...]:
    """Return the schemes that channels' addresses may have: a site that is itself reached by https sends nothing in
    clear.
    """
    return ("https",) if settings.HTTPS else ("https", "http")
