"""How an alert is sent: to a webhook (Standard Webhooks), a server of ntfy, or a browser (Web Push). Pure."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from email.charset import QP, Charset
from email.header import Header
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from portal.wire import web_push

MAX_LINES: Final = 10
MAX_LINE_CHARS: Final = 300
MAX_TITLE_CHARS: Final = 120
MAX_NTFY_BYTES: Final = 4000
"""Of a text for ntfy, which makes a file of one with more than 4,096 bytes, or refuses it."""
MAX_URL_CHARS: Final = 1000
MAX_TOKEN_CHARS: Final = 200
TTL_SECS: Final = 86_400
"""How long a push service keeps a message for a browser that is not there."""
KEY_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = (24, 64)
_URGENT: Final = "security"
_TAGS: Final[Mapping[str, str]] = {
    "silent": "warning",
    "failing": "warning",
    "project": "warning",
    "security": "lock",
    "news": "newspaper",
    "test": "wave",
}


class DestinationError(ValueError):
    """What a person or a browser gave is no destination; the text names the field and its limit."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a channel leads, all of it secret. ``url``: for Web Push, the address that the browser gave.

    ``key``: of a webhook, what signs its messages. ``token``: the access token for ntfy. ``browser``: for Web Push.
    """

    url: str
    key: str = ""
    token: str = ""
    p256dh: str = ""
    auth: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A message. ``id``: the same at each try. ``kind``: of `engine.alerts`, or "test". ``url``: the page about it."""

    id: str
    kind: str
    is_over: bool
    title: str
    lines: tuple[str, ...]
    url: str
    created_at: dt.datetime

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted."""

    url: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends Web Push: the site's key, and an address to complain to."""

    key: EllipticCurvePrivateKey
    contact: str


def clean(text: str, max_chars: int) -> str:
    """One line of printable characters: a name that somebody chose must not begin a line or a header of its own."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def webhook_request(alert: Alert, to: Destination, now_secs: int) -> Request:
    """JSON, signed as Standard Webhooks have it: HMAC-SHA256 over id, time and body."""
    told = {
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
    body = json.dumps(told, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": alert.id,
        "webhook-timestamp": str(now_secs),
        "webhook-signature": signature(to.key, alert.id, now_secs, body),
    }
    return Request(to.url, headers, body)


def signature(secret: str, id_: str, now_secs: int, body: bytes) -> str:
    """The value of the header webhook-signature."""
    made = hmac.digest(_secret_bytes(secret), f"{id_}.{now_secs}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(made).decode()}"


def new_secret() -> str:
    """A secret for a webhook, in the form of Standard Webhooks."""
    return KEY_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def _secret_bytes(secret: str) -> bytes:
    low, high = _SECRET_BYTES
    try:
        found = base64.b64decode(secret.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not low <= len(found) <= high:
        raise DestinationError(f"the secret has to be {low} to {high} bytes in base64")
    return found


def ntfy_request(alert: Alert, to: Destination) -> Request:
    """Plain text, with what ntfy reads from headers."""
    priority = "4" if alert.kind == _URGENT else "2" if alert.is_over else "3"
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Title": _header(alert.title),
        "Priority": priority,
        "Tags": "white_check_mark" if alert.is_over else _TAGS.get(alert.kind, "bell"),
        "Click": alert.url,
    }
    if to.token:
        headers["Authorization"] = f"Bearer {to.token}"
    lines, body = list(alert.lines), alert.text.encode()
    while len(body) > MAX_NTFY_BYTES and lines:
        lines.pop()
        body = "\n".join([*lines, "…"]).encode()
    return Request(to.url, headers, body)


def _header(text: str) -> str:
    """As it is, or as RFC 2047 has it, which ntfy reads."""
    if text.isascii():
        return text
    charset = Charset("utf-8")
    charset.header_encoding = QP
    return Header(text, charset, maxlinelen=100_000).encode(linesep="")


def push_request(alert: Alert, to: Destination, sender: Sender, now_secs: int) -> Request:
    """What only the browser can read, as JSON for static/accounting/sw.js."""
    keys = web_push.parse_browser_keys(to.p256dh, to.auth)
    told: dict[str, Any] = {"title": alert.title, "body": alert.text, "url": alert.url, "tag": alert.id}
    body = json.dumps(told, ensure_ascii=False).encode()
    lines = list(alert.lines)
    while len(body) > web_push.MAX_TEXT_BYTES and lines:
        lines.pop()
        body = json.dumps(told | {"body": "\n".join([*lines, "…"])}, ensure_ascii=False).encode()
    parts = urlsplit(to.url)
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(TTL_SECS),
        "Urgency": "high" if alert.kind == _URGENT else "normal",
        "Authorization": web_push.vapid_header(
            sender.key, f"{parts.scheme}://{parts.netloc}", sender.contact, now_secs
        ),
    }
    return Request(to.url, headers, web_push.encrypt(body, keys))


def parse_subscription(text: str) -> Destination:
    """What a browser gave when it subscribed, as JSON. Raises DestinationError."""
    if len(text) > 4 * MAX_URL_CHARS:
        raise DestinationError(f"the subscription has more than {4 * MAX_URL_CHARS} characters")
    try:
        found = json.loads(text)
        url, keys = found["endpoint"], found["keys"]
        p256dh, auth = keys["p256dh"], keys["auth"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DestinationError("the subscription has to be JSON with endpoint, keys.p256dh and keys.auth") from None
    if not all(isinstance(each, str) for each in (url, p256dh, auth)):
        raise DestinationError("endpoint, keys.p256dh and keys.auth have to be texts")
    if len(url) > MAX_URL_CHARS:
        raise DestinationError(f"endpoint has more than {MAX_URL_CHARS} characters")
    if not (url.isascii() and url.isprintable()):
        raise DestinationError("endpoint has to be an address of ASCII letters, digits and signs")
    try:
        web_push.parse_browser_keys(p256dh, auth)
    except web_push.PushKeyError as error:
        raise DestinationError(str(error)) from None
    return Destination(url, p256dh=p256dh, auth=auth)
