"""What people enter about their channels."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext_lazy as _

from accounting.alerts.channels import MAX_NAME_CHARS
from accounting.alerts.destinations import schemes
from accounting.alerts.texts import KIND_LABELS
from accounting.engine.alerts import AlertKind
from accounting.wire.alerts import MAX_TOKEN_CHARS, MAX_URL_CHARS, Destination, DestinationError, parse_subscription
from portal.fetch.errors import FetchError
from portal.fetch.sender import check_address


class AddressField(forms.CharField):
    """An address that alerts may be sent to; checked now, and again each time that one is sent."""

    def __init__(self, **fields: Any) -> None:
        attrs = {"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}
        super().__init__(max_length=MAX_URL_CHARS, widget=forms.TextInput(attrs=attrs), **fields)


def host_of_address(url: str) -> str:
    """The host; raises ValidationError, which is the same for a name inside this site's network as for none at all."""
    allowed = schemes()
    if not url.lower().startswith(tuple(f"{scheme}://" for scheme in allowed)):
        raise forms.ValidationError(
            _("Enter an address that begins with %(schemes)s."),
            params={"schemes": " / ".join(f"{scheme}://" for scheme in allowed)},
        )
    try:
        return check_address(url, allowed)
    except FetchError:
        raise forms.ValidationError(
            _(
                "No server with a public address was found there. Check the address for typing errors. Alerts are only "
                "sent to public addresses on the internet, and the address must not contain a user name or password."
            )
        ) from None


class ChannelForm(forms.Form):
    """A webhook."""

    url = AddressField(label=_("Address"))
    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_CHARS,
        required=False,
        help_text=_("Helps you recognise it. If empty, the name of its server is used."),
    )
    form_key = forms.UUIDField(required=False, widget=forms.HiddenInput, initial=uuid4)
    host = ""

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        self.host = host_of_address(url)
        return url

    @property
    def shown_name(self) -> str:
        return str(self.cleaned_data["name"]) or self.host


class WebhookForm(ChannelForm):
    prefix = "webhook"


class NtfyForm(ChannelForm):
    """A topic on a server of ntfy."""

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


class BrowserForm(forms.Form):
    """What the browser gives when it subscribes; the page's script fills it in."""

    subscription = forms.CharField(max_length=4 * MAX_URL_CHARS, widget=forms.HiddenInput)
    host = ""

    def clean_subscription(self) -> Destination:
        try:
            found = parse_subscription(self.cleaned_data["subscription"])
        except DestinationError as error:
            raise forms.ValidationError(str(error)) from None
        self.host = host_of_address(found.url)
        return found


class KindsForm(forms.Form):
    """What a channel tells."""

    alert_kinds = forms.MultipleChoiceField(
        label=_("Send an alert when"),
        choices=[(kind.value, KIND_LABELS[kind]) for kind in AlertKind],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    tells_end = forms.BooleanField(label=_("Also send an alert when a problem is over"), required=False)
