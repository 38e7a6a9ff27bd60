"""Alerts in a browser, by Web Push."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from extras.alerts.forms import ChannelForm, host_of_address
from extras.alerts.kinds.kind import ChannelKind
from extras.alerts.wire import MAX_URL_CHARS, URGENT, Alert, Destination, DestinationError, Request
from portal.sign_in.browsers import browser_name
from portal.wire import web_push

TTL_SECS: Final = 86_400
"""How long a push service stores a message for a browser that is offline."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of Web Push: the site's key, and an address for complaints."""

    key: EllipticCurvePrivateKey
    contact: str


def push_request(alert: Alert, to: Destination, sender: Sender, now_secs: int) -> Request:
    """Build a request that only the browser can read, as JSON for static/alerts/sw.js."""
    keys = web_push.parse_browser_keys(to.p256dh, to.auth)
    content: dict[str, Any] = {"title": alert.title, "body": alert.text, "url": alert.url, "tag": alert.id}
    body = json.dumps(content, ensure_ascii=False).encode()
    lines = list(alert.lines)
    while len(body) > web_push.MAX_TEXT_BYTES and lines:
        lines.pop()
        body = json.dumps(content | {"body": "\n".join([*lines, "…"])}, ensure_ascii=False).encode()
    parts = urlsplit(to.url)
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(TTL_SECS),
        "Urgency": "high" if alert.kind == URGENT else "normal",
        "Authorization": web_push.vapid_header(
            sender.key, f"{parts.scheme}://{parts.netloc}", sender.contact, now_secs
        ),
    }
    return Request(to.url, headers, web_push.encrypt(body, keys))


def parse_subscription(text: str) -> Destination:
    """Parse the JSON of a browser's subscription. Raises DestinationError."""
    if len(text) > 4 * MAX_URL_CHARS:
        raise DestinationError(f"the subscription has more than {4 * MAX_URL_CHARS} characters")
    try:
        subscription = json.loads(text)
        url, keys = subscription["endpoint"], subscription["keys"]
        p256dh, auth = keys["p256dh"], keys["auth"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DestinationError("the subscription has to be JSON with endpoint, keys.p256dh and keys.auth") from None
    if not all(isinstance(part, str) for part in (url, p256dh, auth)):
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


@lru_cache(maxsize=1)
def sender(key_text: str) -> Sender:
    """Return the sender. Push services want an address at which they can reach it; a page without https does not
    qualify.
    """
    contact = (
        settings.SITE_URL if settings.HTTPS else f"mailto:{settings.DEFAULT_FROM_EMAIL.split('<')[-1].strip('> ')}"
    )
    return Sender(web_push.parse_key(key_text), contact)


def _request(alert: Alert, to: Destination) -> Request:
    return push_request(alert, to, sender(settings.VAPID_PRIVATE_KEY), int(time.time()))


class BrowserForm(ChannelForm):
    """A browser's subscription; the page's script fills it in."""

    subscription = forms.CharField(max_length=4 * MAX_URL_CHARS, widget=forms.HiddenInput)

    def clean_subscription(self) -> str:
        subscription: str = self.cleaned_data["subscription"]
        try:
            self.destination = parse_subscription(subscription)
        except DestinationError:
            raise forms.ValidationError(
                _("The browser’s subscription cannot be used. Reload the page and try again.")
            ) from None
        self.host = host_of_address(self.destination.url)
        return subscription

    def channel_name(self, user_agent: str) -> str:
        return browser_name(user_agent)


KIND: Final = ChannelKind(
    name="push",
    path="browser",
    label=_("Browser"),
    form=BrowserForm,
    title=_("Add this browser"),
    about=_(
        "It shows alerts even when no page of this site is open. Messages are encrypted for this browser, so the push "
        "service cannot read them."
    ),
    button=_("Show alerts in this browser"),
    request=_request,
    template="alerts/_add_browser.html",
)
