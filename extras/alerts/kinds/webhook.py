"""Alerts to a user's own program, as JSON signed according to Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from extras.alerts.forms import AddressForm
from extras.alerts.kinds.kind import ChannelKind
from extras.alerts.wire import Alert, Destination, DestinationError, Request

KEY_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = (24, 64)


def webhook_request(alert: Alert, to: Destination, now_secs: int) -> Request:
    """Build a request of JSON, signed according to Standard Webhooks: HMAC-SHA256 over id, time and body."""
    content = {
        "type": f"alert.{alert.kind}",
        "timestamp": alert.created_at.isoformat(),
        "data": {
            "id": alert.id,
            "kind": alert.kind,
            "state": "over" if alert.is_over else "begun",
            "title": alert.title,
            "lines": list(alert.lines),
            "url": alert.url,
        },
    }
    body = json.dumps(content, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": alert.id,
        "webhook-timestamp": str(now_secs),
        "webhook-signature": signature(to.key, alert.id, now_secs, body),
    }
    return Request(to.url, headers, body)


def signature(secret: str, id_: str, now_secs: int, body: bytes) -> str:
    """Return the value of the header webhook-signature."""
    made = hmac.digest(_secret_bytes(secret), f"{id_}.{now_secs}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(made).decode()}"


def new_secret() -> str:
    """Create a secret for a webhook, in the form of Standard Webhooks."""
    return KEY_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def _secret_bytes(secret: str) -> bytes:
    low, high = _SECRET_BYTES
    try:
        key = base64.b64decode(secret.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not low <= len(key) <= high:
        raise DestinationError(f"the secret has to be {low} to {high} bytes in base64")
    return key


def _request(alert: Alert, to: Destination) -> Request:
    return webhook_request(alert, to, int(time.time()))


class WebhookForm(AddressForm):
    prefix = "webhook"

    def clean(self) -> dict[str, Any]:
        """Create the secret that signs the messages; it is shown once, when the channel is added."""
        cleaned = super().clean() or self.cleaned_data
        if not self.errors:
            self.destination = Destination(cleaned["url"], key=new_secret())
        return cleaned


KIND: Final = ChannelKind(
    name="webhook",
    path="webhook",
    label=_("Webhook"),
    form=WebhookForm,
    title=_("Add a webhook"),
    about=_(
        "Your own program gets each alert as JSON, sent to its address with POST and signed with a secret that only "
        "you and this site know."
    ),
    button=_("Add the webhook"),
    request=_request,
    signs=True,
)
