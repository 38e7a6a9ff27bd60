"""Pages of an account: the name, the e-mail address, the sessions, and the keys of its BOINC clients."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from allauth.account.models import EmailAddress
from allauth.account.views import EmailView
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import get_language, get_language_info, gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.languages import zones
from portal.models import MAX_NAME_CHARS, ClientKey
from portal.people.access import get_own_key, signed_in
from portal.people.accounts import revoke_all_client_keys, revoke_client_key
from portal.people.name_field import NameField
from portal.people.security_events import source_of
from portal.sign_in.sessions import end_sessions, signed_in_browsers, stored_key

KEYS_A_PAGE: Final = 100
REVOKED_SHOWN: Final = 20
REVOKED_SINCE: Final = dt.timedelta(days=90)
NAME_HELP: Final = _(
    "What this site and your BOINC clients call you. Nobody else sees it. If it is empty, the part of your e-mail "
    "address before the @ is used."
)


@require_safe
@login_required
def keys(request: HttpRequest) -> HttpResponse:
    """Show the keys of the user's BOINC clients, each with a button that revokes it."""
    own = ClientKey.objects.filter(user=signed_in(request)).select_related("host").order_by("-created_at", "-pk")
    since = timezone.now() - REVOKED_SINCE
    context = {
        "keys": Paginator(own.filter(revoked_at=None), KEYS_A_PAGE).get_page(request.GET.get("page", "1")),
        "revoked": list(own.filter(revoked_at__gte=since).order_by("-revoked_at")[:REVOKED_SHOWN]),
    }
    return render(request, "portal/keys.html", context)


@require_POST
@login_required
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one key."""
    key = get_own_key(signed_in(request), pk)
    revoke_client_key(signed_in(request), key.pk, source_of(request))
    messages.success(request, gettext("The key %(key)s… is revoked.") % {"key": key.hint})
    return redirect("keys")


@require_POST
@login_required
def revoke_keys(request: HttpRequest) -> HttpResponse:
    """Revoke all keys at once."""
    number = revoke_all_client_keys(signed_in(request), source_of(request))
    text = ngettext("%(number)s key is revoked.", "%(number)s keys are revoked.", number)
    messages.success(request, text % {"number": number})
    return redirect("keys")


class ChangeEmailView(EmailView):
    """allauth's page, but an address becomes the login only when it is confirmed."""

    def _action_primary(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect(self.get_success_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """``current_emailaddress`` is the login, ``new_emailaddress`` the one waiting for confirmation."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        unconfirmed = EmailAddress.objects.filter(user=self.request.user, verified=False)
        awaited = unconfirmed.exclude(email=self.request.user.email).last()
        login = EmailAddress.objects.filter(user=self.request.user, email=self.request.user.email).first()
        # A login that was never confirmed is waiting itself, unless another address is to replace it.
        context["new_emailaddress"] = awaited or unconfirmed.filter(email=self.request.user.email).first()
        context["current_emailaddress"] = login if login != context["new_emailaddress"] else None
        return context


change_email = login_required(ChangeEmailView.as_view())


class ProfileForm(forms.Form):
    """The display name, and the language and time zone of pages and mails."""

    name = NameField(
        label=_("Display name"),
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text=NAME_HELP,
        widget=forms.TextInput(attrs={"autocomplete": "nickname"}),
    )

    language = forms.ChoiceField(
        label=_("Language"), required=False, help_text=_("Of pages and mails. Mails are in English if you choose none.")
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        help_text=_("For times of day on pages and in mails. Days in your history are UTC days."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own_names = [(code, get_language_info(code)["name_local"].capitalize()) for code, _name in settings.LANGUAGES]
        self._choose("language", [("", gettext("The browser’s language")), *own_names])
        zone_names = [(name, name.replace("_", " ")) for name in zones.names()]
        self._choose("time_zone", [("", gettext("The browser’s time zone")), *zone_names])

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def profile(request: HttpRequest) -> HttpResponse:
    """Show and change name, language and time zone."""
    user = signed_in(request)
    initial = {"name": user.name, "language": user.language, "time_zone": user.time_zone}
    form = ProfileForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        for name, value in form.cleaned_data.items():
            setattr(user, name, value)
        user.save(update_fields=list(form.cleaned_data))
        with translation.override(user.language or get_language()):
            text = gettext("Saved. Your name is now %(name)s. Your BOINC clients will learn it at their next sync.")
            messages.success(request, text % {"name": user.display_name})
        return redirect("profile")
    return render(request, "portal/profile.html", {"form": form}, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sessions(request: HttpRequest) -> HttpResponse:
    """Show the browsers that are signed in, with a button that signs out all others."""
    user, cookie = signed_in(request), request.session.session_key
    if request.method == "POST":
        end_sessions(user, but=cookie)
        messages.info(request, gettext("All other browsers are signed out."))
        return redirect("sessions")
    context = {"browsers": signed_in_browsers(user), "this_one": stored_key(cookie or "")}
    return render(request, "portal/sessions.html", context)
