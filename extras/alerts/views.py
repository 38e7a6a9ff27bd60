"""The page of alerts: a volunteer's channels, the alerts of each, and forms that add one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Final

from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from extras.alerts import channels
from extras.alerts.destinations import UnreadableDestination, decrypt_destination
from extras.alerts.forms import KindsForm, host_of_address
from extras.alerts.kinds import KINDS
from extras.alerts.kinds.push import parse_subscription
from extras.alerts.models import AlertChannel
from extras.alerts.reads import ChannelLine, read_channels
from portal.ops.mail_choices import silent_after
from portal.people.access import signed_in
from portal.people.change_mails import tell_of_change
from portal.people.fresh_login import needs_fresh_login, password_address
from portal.people.security_events import source_of
from portal.sign_in.throttle import Throttled, admit_look_up
from portal.wire import web_push

WORKER: Final = Path(__file__).parent / "static" / "alerts" / "sw.js"
_MAX_MOVE_BYTES: Final = 10_000
_NONE_WRONG: Final[Mapping[str, Form]] = MappingProxyType({})


@require_safe
@login_required
def alerts(request: HttpRequest) -> HttpResponse:
    """Where do I want alerts, and about what?"""
    return _page(request)


def _page(request: HttpRequest, *, secret: str = "", wrong: Mapping[str, Form] = _NONE_WRONG) -> HttpResponse:
    """Render the page; ``secret``: of the webhook that was just added. ``wrong``: the form with errors."""
    user = signed_in(request)
    lines = read_channels(user, timezone.now())
    context = {
        "kinds": [(kind, wrong.get(kind.name) or kind.form()) for kind in KINDS.values()],
        "secret": secret,
        "lines": [(line, _kinds_form(line)) for line in lines],
        "is_waiting": any(line.is_being_tested for line in lines),
        "silent_days": silent_after(user).days,
        "most": settings.ALERT_CHANNELS_MAX,
        "per_day": settings.ALERTS_PER_CHANNEL_DAY,
        "asks_password": password_address(reverse("alerts"))
        if is_reauthentication_required(request, app="portal")
        else "",
        "has_room": len(lines) < settings.ALERT_CHANNELS_MAX,
        "push_key": web_push.public_key_text(web_push.parse_key(settings.VAPID_PRIVATE_KEY)),
    }
    is_part = request.headers.get("HX-Request") == "true" and request.method == "GET"
    template = "alerts/_channels.html" if is_part else "alerts/alerts.html"
    response = render(request, template, context, status=422 if wrong else 200)
    response.headers["Vary"] = "Cookie, HX-Request"
    response.headers["Cache-Control"] = "no-store"
    return response


def _kinds_form(line: ChannelLine) -> KindsForm:
    chosen = {"alert_kinds": line.channel.alert_kinds, "tells_end": line.channel.tells_end}
    return KindsForm(initial=chosen, auto_id=f"id_{line.channel.pk}_%s")


def _few_look_ups(view: Callable[[HttpRequest, str], HttpResponse]) -> Callable[[HttpRequest, str], HttpResponse]:
    """Limit look-ups: forms look up the entered address, which may occupy a thread for seconds."""

    @wraps(view)
    def admitted(request: HttpRequest, path: str) -> HttpResponse:
        try:
            admit_look_up(signed_in(request).pk)
        except Throttled:
            messages.error(request, _("You have entered too many addresses within an hour. Try again later."))
            return redirect("alerts")
        return view(request, path)

    return admitted


@needs_fresh_login()
@require_POST
@login_required
@_few_look_ups
def add(request: HttpRequest, path: str) -> HttpResponse:
    """Add a channel. A secret that signs its messages is shown only once."""
    kind = next((kind for kind in KINDS.values() if kind.path == path), None)
    if kind is None:
        raise Http404
    form = kind.form(request.POST)
    if not form.is_valid():
        return _page(request, wrong={kind.name: form})
    name = form.channel_name(request.META.get("HTTP_USER_AGENT", ""))
    form_key = form.cleaned_data.get("form_key")
    try:
        channel = channels.add(signed_in(request), kind.name, name, form.host, form.destination, form_key)
    except channels.TooManyChannels:
        most = settings.ALERT_CHANNELS_MAX
        text = ngettext("You already have %(count)d channel.", "You already have %(count)d channels.", most)
        form.add_error(None, text % {"count": most} + " " + _("Remove one that you do not need."))
        return _page(request, wrong={kind.name: form})
    messages.success(request, _("Added. Send a test to see whether alerts arrive."))
    # If a form was sent twice, the second answer is displayed: the secret is that of the existing channel.
    return _page(request, secret=decrypt_destination(channel).key) if kind.signs else redirect("alerts")


@csrf_exempt
@require_POST
def move_browser(request: HttpRequest) -> HttpResponse:
    """A service worker reports that its browser has a new subscription.

    It has neither a page nor a token, and its login may have ended. It identifies itself by data that nobody else
    knows: the address and the keys of its old subscription.
    """
    try:
        sent = json.loads(request.body[:_MAX_MOVE_BYTES])
        old, new = (parse_subscription(json.dumps(sent[name])) for name in ("old", "new"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return HttpResponse("old and new have to be subscriptions\n", status=400, content_type="text/plain")
    channel = channels.find_browser(old)
    if channel is None:
        return HttpResponse("no such browser\n", status=404, content_type="text/plain")
    try:
        admit_look_up(channel.user_id)
        host = host_of_address(new.url)
    except Throttled:
        return HttpResponse("too many addresses in this hour\n", status=429, content_type="text/plain")
    except ValidationError as refused:
        return HttpResponse(f"new: {' '.join(refused.messages)}\n", status=422, content_type="text/plain")
    channels.move_browser(old, new, host)
    return HttpResponse(status=204)


@needs_fresh_login()
@require_POST
@login_required
def renew_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a webhook a new secret, shown only once; the old one no longer signs anything."""
    try:
        secret = channels.renew_secret(signed_in(request), pk)
    except UnreadableDestination:
        messages.error(request, _("The stored address can no longer be read. Remove this channel and add it again."))
        return redirect("alerts")
    _found(secret is not None)
    messages.success(request, _("The webhook has a new secret. The old one signs nothing any more."))
    return _page(request, secret=secret or "")


@require_POST
@login_required
def choose(request: HttpRequest, pk: int) -> HttpResponse:
    """Choose a channel's alerts."""
    form = KindsForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was saved: one of the choices does not exist. Reload the page."))
        return redirect("alerts")
    chosen = form.cleaned_data
    _found(channels.choose(signed_in(request), pk, chosen["alert_kinds"], tells_end=chosen["tells_end"]))
    messages.success(request, _("Saved."))
    return redirect("alerts")


@require_POST
@login_required
def send_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Do alerts arrive there?"""
    try:
        _found(channels.ask_test(signed_in(request), pk) is not None)
    except channels.TooManyTests:
        text = _("You have sent %(count)d tests today. You can send more tomorrow.")
        messages.error(request, text % {"count": channels.MAX_TESTS_PER_DAY})
    return redirect("alerts")


@require_POST
@login_required
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume a paused channel."""
    _found(channels.resume(signed_in(request), pk))
    messages.success(request, _("The channel is in use again. Send a test to see whether alerts arrive."))
    return redirect("alerts")


@require_POST
@login_required
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a channel; a mail confirms it, as an alert about the account would have."""
    user = signed_in(request)
    channel = AlertChannel.objects.filter(user=user, pk=pk).first()
    _found(channels.remove(user, pk))
    if channel is not None:
        what = format_lazy(gettext_lazy("A channel for alerts was removed: {channel}."), channel=channel.name)
        tell_of_change(user, what, source_of(request))
    messages.success(request, _("Removed."))
    return redirect("alerts")


def _found(was_there: bool) -> None:
    if not was_there:
        raise Http404


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """/sw.js: the script that shows alerts in a browser. Its address decides which pages it covers: all."""
    response = HttpResponse(WORKER.read_bytes(), content_type="text/javascript; charset=utf-8")
    response.headers["Cache-Control"] = "no-cache"
    return response
