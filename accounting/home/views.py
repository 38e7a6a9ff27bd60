"""The volunteer's first pages: landing, connecting a computer, home."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from accounting.home.first_run import SYSTEMS, attach_command, read_first_run, system_of
from accounting.home.reads import DAYS_SHOWN, read_overview
from accounting.news.reads import latest
from accounting.projects.public import read_public
from accounting.reconciliation.card import card
from accounting.running_tasks.reads import read_running
from credit.statistics.exports import granted_to_user
from portal.computers.new_hosts import read_limits
from portal.models import User
from portal.people.access import own_hosts, signed_in
from portal.public_pages.look_around import LOOKS_AROUND, demo_account


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """The site's front door, which BOINC clients may fetch too; signed-in visitors are redirected to their own page."""
    if request.user.is_authenticated:
        return redirect("home")
    context = {"public": read_public(), "can_look_around": demo_account() is not None, **_connect_steps(request)}
    return render(request, "accounting/landing.html", context)


@require_safe
@login_required
def connect(request: HttpRequest) -> HttpResponse:
    """How to connect a computer, and the wait for its first contact."""
    limits = {"limits": read_limits(signed_in(request), timezone.now())}
    return render(request, "accounting/connect.html", _contact_since(request) | _connect_steps(request) | limits)


@require_safe
def connect_status(request: HttpRequest) -> HttpResponse:
    """The status line of the connect page, which the page polls every few seconds until a computer has reported."""
    if not request.user.is_authenticated:
        # Not a redirect: the sign-in page must not be swapped into the line.
        return HttpResponse(status=403, headers={"HX-Refresh": "true"})
    return render(request, "accounting/_connect_status.html", _contact_since(request))


def _connect_steps(request: HttpRequest) -> dict[str, object]:
    """Return the values for the steps of the visitor's system. A visitor without an account has no e-mail address
    here.
    """
    user = request.user
    email = user.email if isinstance(user, User) and LOOKS_AROUND not in request.META else ""
    system = system_of(request.GET.get("system", ""), request.headers.get("User-Agent", ""))
    return {
        "systems": SYSTEMS,
        "system": system,
        "system_name": SYSTEMS[system],
        "email": email,
        "command": attach_command(settings.SITE_URL, email or "EMAIL"),
    }


def _contact_since(request: HttpRequest) -> dict[str, object]:
    """Return the computers attached since the page was first opened: each was given a key and has made contact with
    it.
    """
    now = timezone.now()
    try:
        since = parse_datetime(request.GET.get("since", "").replace(" ", "+"))
    except ValueError:
        since = None
    if since is None or timezone.is_naive(since) or since > now:
        since = now
    # A page left open for days asks about the last day only.
    since = max(since, now - dt.timedelta(days=1))
    hosts = own_hosts(signed_in(request))
    arrived = hosts.filter(client_keys__created_at__gte=since).distinct().order_by("-last_contact_at")[:5]
    is_first = not arrived and not hosts.exists()
    return {"section": "connect", "since": since.isoformat(), "arrived": list(arrived), "is_first": is_first}


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Am I contributing, and is anything wrong?"""
    user = signed_in(request)
    overview = read_overview(user, timezone.now())
    first_run = None
    if not overview.total_ec and not overview.month.ec:
        first_run = read_first_run(user, [line.host for line in overview.hosts])
    granted = granted_to_user(user) if "project" in settings.ROOMS else None
    title = gettext("Granted and estimated credit, last %(number)s days") % {"number": DAYS_SHOWN}
    settled_card = card(overview.settled, title, of=user, granted=granted)
    context = {
        "overview": overview,
        "running": read_running(user, timezone.now()),
        "first_run": first_run,
        "news": latest(timezone.now()),
    }
    return render(request, "accounting/home.html", context | settled_card)
