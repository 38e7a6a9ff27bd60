"""Middleware: BOINC clients bypass everything else; one log line per request; a content policy for the admin."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final
from urllib.parse import urljoin, urlsplit

import structlog
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import resolve
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django.utils.encoding import iri_to_uri
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_htmx.http import HttpResponseClientRefresh

from portal.audit.who import changes_by
from portal.clients import request_handler
from portal.clients.paths import present_path
from portal.clients.views import content_length
from portal.models import User
from portal.ops import metrics
from portal.ops.logs import USER_AGENT_CHARS, log_request, loggable_path
from portal.people.accounts import PasswordChanged
from portal.people.staff import are_rights_held, is_operator, lacks_second_factor
from portal.sign_in.sessions import idle_secs, note_activity

Handler = Callable[[HttpRequest], HttpResponse]
_ACTIVITY_NOTED_EVERY_SECS: Final = 60
PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class ClientMiddleware:
    """Hands requests of BOINC clients straight to their view: no session, no cookies, no redirects, no CSRF.

    Addresses that the project had before it moved here are mapped to ours.

    Needed only if Django is served alone: otherwise the event loop answers clients (`portal.clients`). Probes of load
    balancers, which use any host name, are handled in the same way.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = present_path(request.path_info, settings.FORMER_PATHS, settings.CLIENT_PATHS)
        request.path = request.path_info = path
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.BEHIND_PROXY else ""
        if address := request_handler.forwarded_address(forwarded):
            request.META["REMOTE_ADDR"] = address
        if path in settings.CLIENT_PATHS:
            return self._view(request)
        if path not in PROBES:
            return self.get_response(request)
        structlog.contextvars.clear_contextvars()
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return self._view(request)

    def _view(self, request: HttpRequest) -> HttpResponse:
        view = resolve(request.path_info)
        response: HttpResponse = view.func(request, *view.args, **view.kwargs)
        return response


class SiteLinksMiddleware:
    """Makes absolute addresses, as in mails and the API's answers, begin with SITE_URL, whatever the Host header is."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        site = urlsplit(settings.SITE_URL)

        def site_address(location: str | None = None) -> str:
            own = f"{site.scheme}://{site.netloc}{request.get_full_path()}"
            return str(iri_to_uri(own if location is None else urljoin(own, str(location))))

        request.build_absolute_uri = site_address  # type: ignore[method-assign]  # whoever makes addresses calls it
        return self.get_response(request)


class RequestLogMiddleware:
    """Writes one line per request, with an id that the reply and all other lines of the request carry, too."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = perf_counter()
        request_id = request_handler.request_id(request.headers.get("X-Request-ID") if settings.BEHIND_PROXY else None)
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        elapsed_secs = perf_counter() - started
        response.headers["X-Request-ID"] = request_id
        match = request.resolver_match
        view = (match.view_name or match.route or "home") if match else "unknown"
        metrics.count_page(view, response.status_code, elapsed_secs)
        log_request(
            {
                "method": request.method,
                "path": loggable_path(request),
                "status": response.status_code,
                "ms": round(elapsed_secs * 1000, 1),
                "request_id": request_id,
                "bytes_in": content_length(request),
                "bytes_out": 0 if response.streaming else len(response.content),
                "user_agent": request.META.get("HTTP_USER_AGENT", "")[:USER_AGENT_CHARS],
            }
        )
        return response


class NoStoreMiddleware:
    """Keeps browsers and proxies from storing what somebody sees while signed in, unless the view itself allows it.

    The next user of the same computer must not find it by going back.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        session = request.session
        # A page that did not use the session is the same for everybody.
        if session.accessed and SESSION_KEY in session and not response.has_header("Cache-Control"):
            response.headers["Cache-Control"] = "private, no-store"
        return response


class OperatorIdleMiddleware(MiddlewareMixin):
    """Makes operators who were idle for STAFF_IDLE_SECS sign in again. Pages that refresh themselves do not count."""

    def process_view(self, request: HttpRequest, view: object, args: object, kwargs: object) -> HttpResponse | None:
        limit_secs, user = settings.STAFF_IDLE_SECS, request.user
        if not limit_secs or not isinstance(user, User) or not is_operator(user):
            return None
        now, is_refresh = timezone.now(), request.method == "GET" and "HX-Request" in request.headers
        secs = idle_secs(request.session, now)
        if secs > limit_secs:
            logout(request)
            messages.info(request, gettext("You were signed out because you had not used this site for a while."))
            if "HX-Request" in request.headers:
                return HttpResponseClientRefresh()
            return redirect_to_login(request.get_full_path() if request.method == "GET" else "")
        if not is_refresh and secs >= min(_ACTIVITY_NOTED_EVERY_SECS, limit_secs / 10):
            note_activity(request.session, now)
        return None


# What signing in and setting up a second factor need: allauth adds none while an address awaits its confirmation.
_WITHOUT_SECOND_FACTOR: Final = (
    "account/2fa/",
    "account/confirm-email/",
    "account/email/",
    "account/login/",
    "account/logout/",
    "account/password/reset/",
    "account/reauthenticate/",
)


_WHILE_RIGHTS_ARE_HELD: Final = ("account/login/", "account/logout/", "account/password/reset/")
_HELD: Final = _(
    "The password of this operator's account was set by mail, without a second factor. Ask another superuser to "
    "restore your rights (People, in the admin), or use the command manage.py allow_operator on the server."
)


class SecondFactorMiddleware(MiddlewareMixin):
    """Leads operators without a second factor from any page to the one where they set one up.

    Those whose rights are withheld get no page at all: they could set up a factor and pass as the operator later.
    """

    def process_view(self, request: HttpRequest, view: object, args: object, kwargs: object) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or match.route.startswith(_WHILE_RIGHTS_ARE_HELD):
            return None
        user = request.user
        if not isinstance(user, User):
            return None
        if are_rights_held(user):
            return render(request, "403.html", {"reason": _HELD}, status=403)
        if match.route.startswith(_WITHOUT_SECOND_FACTOR) or not lacks_second_factor(user):
            return None
        messages.warning(
            request, gettext("Operators need a second factor here. Add a passkey or an authenticator app first.")
        )
        return redirect("mfa_index")


class PasswordChangedMiddleware(MiddlewareMixin):
    """Leads somebody whose password has just been changed back to the login."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return redirect("account_login") if isinstance(exception, PasswordChanged) else None


class ContentPolicyMiddleware(CSPMiddleware):
    """The site's strict content security policy; the admin, whose templates need more, has a wider one."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        match = request.resolver_match
        if match and match.app_name == "admin" and not report_only:
            parts.replace = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts


class WhoChangesMiddleware:
    """Records changes of settings during a request in the name of the person who made it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with changes_by(lambda: request.user if isinstance(request.user, User) else None):
            return self.get_response(request)
