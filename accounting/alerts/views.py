"""The page of alerts: the channels of a volunteer, what each tells, and forms that add one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Final

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from accounting.alerts import channels
from accounting.alerts.forms import BrowserForm, KindsForm, NtfyForm, WebhookForm
from accounting.alerts.reads import ChannelLine, read_channels
from accounting.models import AlertChannel
from accounting.wire.alerts import Destination, new_secret
from portal.ops.mail_choices import silent_after
from portal.people.access import signed_in
from portal.sign_in.browsers import browser_name
from portal.sign_in.throttle import Throttled, admit_look_up
from portal.wire import web_push

WORKER: Final = settings.BASE_DIR / "static" / "accounting" / "sw.js"
Kind = AlertChannel.Kind
_NONE_WRONG: Final[Mapping[str, Form]] = MappingProxyType({})


@require_safe
@login_required
def alerts(request: HttpRequest) -> HttpResponse:
    """Where do I want to be told what, at once?"""
    return _page(request)


def _page(request: HttpRequest, *, secret: str = "", wrong: Mapping[str, Form] = _NONE_WRONG) -> HttpResponse:
    """The page; ``secret``: of the webhook that was just added. ``wrong``: the form that was filled in wrongly."""
    user = signed_in(request)
    lines = read_channels(user, timezone.now())
    context = {
        "webhook_form": WebhookForm(),
        "ntfy_form": NtfyForm(),
        "browser_form": BrowserForm(),
        **wrong,
        "secret": secret,
        "lines": [(line, _kinds_form(line)) for line in lines],
        "is_waiting": any(line.is_being_tested for line in lines),
        "silent_days": silent_after(user).days,
        "most": settings.ALERT_CHANNELS_MAX,
        "per_day": settings.ALERTS_PER_CHANNEL_DAY,
        "has_room": len(lines) < settings.ALERT_CHANNELS_MAX,
        "push_key": web_push.public_key_text(web_push.parse_key(settings.VAPID_PRIVATE_KEY)),
    }
    is_part = request.headers.get("HX-Request") == "true" and request.method == "GET"
    template = "accounting/_alert_channels.html" if is_part else "accounting/alerts.html"
    response = render(request, template, context, status=422 if wrong else 200)
    response.headers["Vary"] = "Cookie, HX-Request"
    response.headers["Cache-Control"] = "no-store"
    return response


def _kinds_form(line: ChannelLine) -> KindsForm:
    chosen = {"alert_kinds": line.channel.alert_kinds, "tells_end": line.channel.tells_end}
    return KindsForm(initial=chosen, auto_id=f"id_{line.channel.pk}_%s")


def _few_look_ups(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Forms look up the address that was entered, which may keep a thread for seconds."""

    @wraps(view)
    def admitted(request: HttpRequest) -> HttpResponse:
        try:
            admit_look_up(signed_in(request).pk)
        except Throttled:
            messages.error(request, _("You have entered too many addresses within an hour. Try again later."))
            return redirect("alerts")
        return view(request)

    return admitted


@require_POST
@login_required
@_few_look_ups
def add_browser(request: HttpRequest) -> HttpResponse:
    """Tell me in this browser."""
    form = BrowserForm(request.POST)
    if not form.is_valid():
        return _page(request, wrong={"browser_form": form})
    raise_if_reauthentication_required(request, app="accounting")
    name = browser_name(request.META.get("HTTP_USER_AGENT", ""))
    return _added(request, form, Kind.PUSH, name, form.host, form.cleaned_data["subscription"], "browser_form")


@require_POST
@login_required
@_few_look_ups
def add_webhook(request: HttpRequest) -> HttpResponse:
    """Tell a program of mine. The secret that signs what is sent is shown this once."""
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _page(request, wrong={"webhook_form": form})
    to = Destination(form.cleaned_data["url"], key=new_secret())
    raise_if_reauthentication_required(request, app="accounting")
    return _added(request, form, Kind.WEBHOOK, form.shown_name, form.host, to, "webhook_form")


@require_POST
@login_required
@_few_look_ups
def add_ntfy(request: HttpRequest) -> HttpResponse:
    """Tell me by ntfy."""
    form = NtfyForm(request.POST)
    if not form.is_valid():
        return _page(request, wrong={"ntfy_form": form})
    raise_if_reauthentication_required(request, app="accounting")
    to = Destination(form.cleaned_data["url"], token=form.cleaned_data["token"])
    return _added(request, form, Kind.NTFY, form.shown_name, form.host, to, "ntfy_form")


def _added(
    request: HttpRequest, form: Form, kind: Kind, name: str, host: str, to: Destination, what: str
) -> HttpResponse:
    try:
        channels.add(signed_in(request), kind, name, host, to)
    except channels.TooManyChannels:
        most = settings.ALERT_CHANNELS_MAX
        text = ngettext("You already have %(count)d channel.", "You already have %(count)d channels.", most)
        form.add_error(None, text % {"count": most} + " " + _("Remove one that you do not need."))
        return _page(request, wrong={what: form})
    messages.success(request, _("Added. Send a test to see whether alerts arrive."))
    return _page(request, secret=to.key) if to.key else redirect("alerts")


@require_POST
@login_required
def choose(request: HttpRequest, pk: int) -> HttpResponse:
    """What a channel tells."""
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
    """Take a paused channel into use again."""
    _found(channels.resume(signed_in(request), pk))
    messages.success(request, _("The channel is in use again. Send a test to see whether alerts arrive."))
    return redirect("alerts")


@require_POST
@login_required
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """No more alerts there."""
    _found(channels.remove(signed_in(request), pk))
    messages.success(request, _("Removed."))
    return redirect("alerts")


def _found(was_there: bool) -> None:
    if not was_there:
        raise Http404


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """/sw.js: what shows alerts in a browser. Its address decides for which pages it is: for all."""
    response = HttpResponse(WORKER.read_bytes(), content_type="text/javascript; charset=utf-8")
    response.headers["Cache-Control"] = "no-cache"
    return response
