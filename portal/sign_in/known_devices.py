"""The browsers, computers and addresses that an account knows: their failed logins are counted separately.

Otherwise a stranger with wrong passwords could lock the owner out. A browser is known by a cookie that it got when it
signed in, a computer by the id that the site gave it, an address by a login or key in the last 90 days.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase

from portal.models import Host, SecurityEvent, User
from portal.sign_in.throttle import network_of

COOKIE_SECS: Final = 365 * 86_400
_SALT: Final = "portal.sign_in.known_devices"
_EVENTS_LOOKED_AT: Final = 200
_GAVE_ACCESS: Final = (SecurityEvent.Kind.LOGIN, SecurityEvent.Kind.KEY_MADE, SecurityEvent.Kind.PASSWORD_RESET)


def of_client(user: User | None, address: str, host_token: str) -> str:
    """The name of a BOINC client's counter: its computer's, else its address's; empty for strangers."""
    if user is None:
        return ""
    if host_token and Host.objects.filter(token=host_token, owner=user).exists():
        return f"computer {hashlib.sha256(host_token.encode()).hexdigest()[:16]}"
    return _of_address(user, address)


def of_browser(user: User | None, request: HttpRequest) -> str:
    """The name of a browser's counter, by its cookie, else by its address."""
    if user is None:
        return ""
    try:
        devices = signing.loads(request.COOKIES.get(settings.KNOWN_BROWSER_COOKIE_NAME, ""), salt=_SALT)
    except signing.BadSignature:
        devices = []
    for user_id, name in devices:
        if user_id == user.pk:
            return f"browser {name}"
    return _of_address(user, request.META.get("REMOTE_ADDR", ""))


def remember_browser(request: HttpRequest, response: HttpResponseBase, user: User) -> None:
    """Give a browser that has just signed in the cookie that makes it known to the account."""
    if of_browser(user, request).startswith("browser "):
        return
    try:
        others = signing.loads(request.COOKIES.get(settings.KNOWN_BROWSER_COOKIE_NAME, ""), salt=_SALT)
    except signing.BadSignature:
        others = []
    # People of one household may share a browser.
    devices = [[user.pk, secrets.token_hex(8)], *others][:5]
    response.set_cookie(
        settings.KNOWN_BROWSER_COOKIE_NAME,
        signing.dumps(devices, salt=_SALT),
        max_age=COOKIE_SECS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _of_address(user: User, address: str) -> str:
    network = network_of(address)
    return f"address {network}" if network in _known_networks(user) else ""


def _known_networks(user: User) -> set[str]:
    """The networks that the account was used from since its owner last took it back, by the newest events."""
    events = SecurityEvent.objects.filter(user=user, kind__in=_GAVE_ACCESS).exclude(address="").order_by("-at", "-pk")
    networks: set[str] = set()
    for kind, address in events.values_list("kind", "address")[:_EVENTS_LOOKED_AT]:
        networks.add(network_of(address))
        if kind == SecurityEvent.Kind.PASSWORD_RESET:
            break
    return networks - {"unknown"}
