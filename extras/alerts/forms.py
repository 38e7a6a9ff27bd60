"""Forms for channels."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from django import forms
from django.utils.translation import gettext_lazy as _

from extras.alerts.destinations import schemes
from extras.alerts.rules import AlertKind
from extras.alerts.texts import KIND_LABELS
from extras.alerts.wire import MAX_URL_CHARS, Destination
from portal.fetch.errors import FetchError
from portal.fetch.sender import check_address

MAX_NAME_CHARS: Final = 100


class AddressField(forms.CharField):
    """An address that alerts may be sent to; checked now, and again each time that one is sent."""

    def __init__(self, **fields: Any) -> None:
        attrs = {"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}
        super().__init__(max_length=MAX_URL_CHARS, widget=forms.TextInput(attrs=attrs), **fields)


def host_of_address(url: str) -> str:
    """Return the host; raises ValidationError, which is the same for a name inside this site's network as for none at
    all.
    """
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
    """A form that adds a channel.

    ``host``: of the entered address, once it is checked. ``destination``: the channel's destination, once the form is
    valid.
    """

    host = ""
    destination: Destination

    def channel_name(self, user_agent: str) -> str:
        """Return the channel's initial name; ``user_agent``: of the browser that sends the form."""
        return self.host


class AddressForm(ChannelForm):
    """A channel at a typed address."""

    url = AddressField(label=_("Address"))
    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_CHARS,
        required=False,
        help_text=_("Helps you recognise it. If empty, the name of its server is used."),
    )
    form_key = forms.UUIDField(required=False, widget=forms.HiddenInput, initial=uuid4)

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        self.host = host_of_address(url)
        return url

    def channel_name(self, user_agent: str) -> str:
        return str(self.cleaned_data["name"]) or self.host


class KindsForm(forms.Form):
    """The alerts that a channel sends."""

    alert_kinds = forms.MultipleChoiceField(
        label=_("Send an alert when"),
        choices=[(kind.value, KIND_LABELS[kind]) for kind in AlertKind],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    tells_end = forms.BooleanField(label=_("Also send an alert when a problem is over"), required=False)
