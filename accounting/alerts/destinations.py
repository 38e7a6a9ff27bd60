"""Where a channel leads, as it is stored: encrypted."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from functools import lru_cache

from django.conf import settings

from accounting.models import AlertChannel
from accounting.wire.alerts import (
    Alert,
    Destination,
    Request,
    Sender,
    ntfy_request,
    push_request,
    webhook_request,
)
from portal.wire import sealing, web_push

UnreadableDestination = sealing.UnsealableError


def encrypt_destination(user_id: int, kind: str, destination: Destination) -> bytes:
    """For a channel of this volunteer and kind; as the address is in it, it is bound to that too."""
    return sealing.seal(settings.ACCOUNT_KEY_SECRET, _place(user_id, kind), json.dumps(asdict(destination)))


def decrypt_destination(channel: AlertChannel) -> Destination:
    """Raises UnreadableDestination, after ACCOUNT_KEY_SECRET was changed."""
    place = _place(channel.user_id, channel.kind)
    return Destination(**json.loads(sealing.unseal(settings.ACCOUNT_KEY_SECRET, place, bytes(channel.destination))))


def _place(user_id: int, kind: str) -> sealing.Place:
    return "alertchannel", user_id, str(kind), "destination"


def digest_of(url: str) -> bytes:
    """By which a browser's address is found again."""
    return hashlib.sha256(url.encode()).digest()


def request_for(channel: AlertChannel, alert: Alert) -> Request:
    """What is to be posted to the channel. Raises UnreadableDestination."""
    to = decrypt_destination(channel)
    if channel.kind == AlertChannel.Kind.WEBHOOK:
        return webhook_request(alert, to, int(time.time()))
    if channel.kind == AlertChannel.Kind.NTFY:
        return ntfy_request(alert, to)
    return push_request(alert, to, sender(settings.VAPID_PRIVATE_KEY), int(time.time()))


@lru_cache(maxsize=1)
def sender(key_text: str) -> Sender:
    """Push services want an address at which they can reach who sends; pages of a site without https are none."""
    contact = (
        settings.SITE_URL if settings.HTTPS else f"mailto:{settings.DEFAULT_FROM_EMAIL.split('<')[-1].strip('> ')}"
    )
    return Sender(web_push.parse_key(key_text), contact)


def schemes() -> tuple[str, ...]:
    """What addresses of channels begin with: a site that is itself reached by https sends nothing in clear."""
    return ("https",) if settings.HTTPS else ("https", "http")
