"""Passkeys (WebAuthn): the forms, and whether browsers allow them at the site's address."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.utils.translation import gettext

from portal.people.pages.forms import SiteLabels

_MAX_NAME_CHARS = 60


class AddPasskeyForm(SiteLabels, AddWebAuthnForm):
    """Add a passkey, with a name, and whether it is enough to sign in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = gettext("Name")
        self.fields["name"].max_length = _MAX_NAME_CHARS
        self.fields["name"].help_text = gettext("So that you recognise it later, for example “phone”.")
        self.fields["passwordless"].label = gettext("Sign in with it alone")
        self.fields["passwordless"].initial = True
        self.fields["passwordless"].help_text = gettext(
            "Then you need neither your address nor your password. The device asks for its PIN or your fingerprint. "
            "If the box is unchecked, the passkey is a second factor after the password."
        )


class RenamePasskeyForm(SiteLabels, EditWebAuthnForm):
    """Give a passkey another name."""


def why_unavailable(request: HttpRequest) -> str:
    """Why browsers refuse passkeys at the address that the visitor used, in words; empty if they do not."""
    host, _ = split_domain_port(request.get_host())
    if _is_ip_address(host):
        return gettext(
            "Passkeys need a host name, and you opened this site by its IP address. Open it by its name, "
            "or use an authenticator app."
        )
    if request.is_secure() or host == "localhost" or host.endswith(".localhost"):
        return ""
    return gettext("Passkeys need https, and you opened this site without it. Use an authenticator app.")


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
