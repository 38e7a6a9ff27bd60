"""Alerts by a topic on an ntfy server."""

from __future__ import annotations

from collections.abc import Mapping
from email.charset import QP, Charset
from email.header import Header
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from extras.alerts.forms import AddressForm
from extras.alerts.kinds.kind import ChannelKind
from extras.alerts.wire import URGENT, Alert, Destination, Request

MAX_NTFY_BYTES: Final = 4000
"""The length of a text for ntfy, which makes a file of one with more than 4,096 bytes, or refuses it."""
MAX_TOKEN_CHARS: Final = 200
_TAGS: Final[Mapping[str, str]] = {
    "silent": "warning",
    "failing": "warning",
    "project": "warning",
    "security": "lock",
    "news": "newspaper",
    "test": "wave",
}


def ntfy_request(alert: Alert, to: Destination) -> Request:
    """Build a request of plain text, with the headers that ntfy reads."""
    priority = "4" if alert.kind == URGENT else "2" if alert.is_over else "3"
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
    """Encode a text as a header: unchanged, or by RFC 2047, which ntfy reads."""
    if text.isascii():
        return text
    charset = Charset("utf-8")
    charset.header_encoding = QP
    return Header(text, charset, maxlinelen=100_000).encode(linesep="")


class NtfyForm(AddressForm):
    """A topic on an ntfy server."""

    prefix = "ntfy"
    token = forms.CharField(
        label=_("Access token"),
        max_length=MAX_TOKEN_CHARS,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("If your server requires one. It is stored encrypted and never shown."),
    )

    field_order = ("url", "token", "name")

    def clean_token(self) -> str:
        token: str = self.cleaned_data["token"]
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise forms.ValidationError(_("A token can only contain letters, digits and punctuation, without spaces."))
        return token

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors:
            self.destination = Destination(cleaned["url"], token=cleaned["token"])
        return cleaned


KIND: Final = ChannelKind(
    name="ntfy",
    path="ntfy",
    label="ntfy",
    form=NtfyForm,
    title=_("Add an ntfy topic"),
    about=_(
        '<a href="https://ntfy.sh/">ntfy</a> sends alerts to your phone. Enter the address of a topic, such as '
        "<code>https://ntfy.sh/a-name-nobody-guesses</code>. The people who run that server can read your alerts. So "
        "can anyone who knows the address, unless the topic needs a token."
    ),
    button=_("Add the topic"),
    request=ntfy_request,
)
