"""A visitor looks around in the demo account: pages are shown, nothing can be changed.

The visitor is not signed in: only the session says that pages are shown as the demo account sees them, so there is no
login to record and no session of the account to end. Pages about the account itself (its keys, sessions and password)
and the admin are not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from portal.models import User

SESSION_KEY: Final = "looks_around"
LOOKS_AROUND: Final = "LOOKS_AROUND"
"""In META, for templates. No client can send it: headers have names beginning with HTTP_ there."""
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
LEAVE: Final = "look-around/leave/"
SWITCH: Final = "language/"
# Addresses at which the visitor is a stranger, as without the demo account, with the exception below.
_STRANGER: Final = ("account/", "admin/", "api/", "mails/", SWITCH)
_SHOWN: Final = "account/preferences/"
# What a stranger may send: to sign in or up, to switch the language, and to leave.
_OPEN: Final = ("account/login/", "account/signup/", "account/password/reset/", "account/logout/", LEAVE, SWITCH)


def demo_account() -> User | None:
    """The account that the operator named; None if there is none, or if it has more rights than a volunteer.

    Three statements at most.
    """
    if not settings.DEMO_ACCOUNT:
        return None
    user = User.objects.filter(email=settings.DEMO_ACCOUNT, is_active=True, deletion_asked_at=None).first()
    if user is None or user.is_staff or user.is_superuser:
        return None
    return None if user.groups.exists() or user.user_permissions.exists() else user


class LookAroundMiddleware:
    """Shows pages as the demo account sees them, and refuses whatever could change something."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not settings.DEMO_ACCOUNT or SESSION_KEY not in request.session or request.user.is_authenticated:
            return self.get_response(request)
        path = request.path_info.lstrip("/")
        if request.method not in SAFE_METHODS and not path.startswith(_OPEN):
            request.META[LOOKS_AROUND] = True
            return render(request, "403.html", {"reason": READ_ONLY}, status=403)
        if not path.startswith(_STRANGER) or path == _SHOWN:
            account = demo_account()
            if account is None:
                request.session.flush()
            else:
                request.user = account
                request.META[LOOKS_AROUND] = True
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


READ_ONLY: Final = _(
    "You are looking around in a demo account, so nothing can be changed. Create an account to do this yourself."
)
