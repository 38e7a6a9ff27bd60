"""The page of the computing preferences: one set for everywhere, and sets for places that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from accounting.engine.preferences import PRESETS, complete
from accounting.models import AccountSettings
from accounting.preferences.forms import ClientDisplayForm, DaysForm, PreferenceForms, PreferencesForm
from accounting.preferences.save import (
    EVERYWHERE,
    Saved,
    forget_set,
    read_saved,
    save_client_display,
    save_set,
)
from accounting.preferences.texts import PRESET_WORDS
from portal.models import User
from portal.people.access import own_hosts, signed_in

_PLACES = {
    EVERYWHERE: _("Everywhere"),
    "home": pgettext_lazy("place", "Home"),
    "work": pgettext_lazy("place", "Work"),
    "school": pgettext_lazy("place", "School"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def preferences(request: HttpRequest) -> HttpResponse:
    """When and how much do my computers compute? Clients get what is saved here with their next reply."""
    user = signed_in(request)
    venue = request.GET.get("place", EVERYWHERE)
    problem, status = "", 200
    if venue not in _PLACES:
        if request.method == "POST":
            # Nothing is saved for a place other than the intended one.
            raise Http404
        problem = gettext("“%(text)s” is not a place. The preferences for everywhere are shown.") % {"text": venue[:20]}
        venue = EVERYWHERE
    sets = read_saved(user)
    saved = sets.get(venue) or sets.get(EVERYWHERE) or Saved(complete({}), {})
    bound = PreferenceForms(PreferencesForm(values=saved.values), DaysForm(days=saved.days))
    if request.method == "POST":
        done, bound = _act(request, user, venue, bound)
        if done:
            messages.success(request, done)
            return redirect(_address(venue))
        status = 422
    context = _context(user, venue, sets, bound) | {"problem": problem}
    return render(request, "accounting/preferences.html", context, status=status)


def _act(request: HttpRequest, user: User, venue: str, bound: PreferenceForms) -> tuple[str, PreferenceForms]:
    """Carry out the pressed button; return the sentence to show, or none and the forms with their errors."""
    if "forget" in request.POST:
        forget_set(user, venue)
        if venue != EVERYWHERE and EVERYWHERE in read_saved(user):
            text = gettext("Removed. Computers at “%(place)s” now follow the preferences for everywhere.")
            return text % {"place": _PLACES[venue]}, bound
        return gettext("Removed. Computers without other preferences keep these until you change them in BOINC."), bound
    preset = request.POST.get("preset", "")
    days: Mapping[int, Mapping[str, float]] = {}
    if preset in PRESETS:
        values: Mapping[str, float] = PRESETS[preset]
    else:
        bound = PreferenceForms(PreferencesForm(request.POST, values={}), DaysForm(request.POST))
        if not bound.are_valid():
            return "", bound
        values, days = bound.values.chosen, bound.days.chosen
    save_set(user, venue, values, days)
    return _saved_text(venue), bound


def _saved_text(venue: str) -> str:
    if venue == EVERYWHERE:
        return gettext("Saved for everywhere. Each computer gets these preferences at its next sync.")
    text = gettext("Saved for “%(place)s”. Each computer there gets these preferences at its next sync.")
    return text % {"place": _PLACES[venue]}


def _address(venue: str) -> str:
    return reverse("preferences") + (f"?place={venue}" if venue else "")


@require_POST
@login_required
def client_display(request: HttpRequest) -> HttpResponse:
    """Save what BOINC shows on my computers."""
    form = ClientDisplayForm(request.POST)
    if form.is_valid():
        save_client_display(signed_in(request), **form.cleaned_data)
        messages.success(request, gettext("Saved. This takes effect at the next sync of each computer."))
    else:
        messages.error(request, gettext("Nothing was saved. A team name can have 100 characters at most."))
    return redirect("preferences")


def _context(user: User, venue: str, sets: Mapping[str, object], bound: PreferenceForms) -> dict[str, Any]:
    here = own_hosts(user).filter(retired_at=None)
    numbers = dict(here.order_by().values_list("venue").annotate(number=Count("pk")))
    return {
        "form": bound.values,
        "days_form": bound.days,
        "shown_form": ClientDisplayForm(instance=AccountSettings.objects.filter(user=user).first())
        if not venue
        else None,
        "venue": venue,
        "place": _PLACES[venue],
        "has_own": venue in sets,
        "has_everywhere": EVERYWHERE in sets,
        "places": [
            {"name": name, "url": _address(key), "is_current": key == venue, "has_own": key in sets}
            for key, name in _PLACES.items()
        ],
        "hosts_here": sum(number for key, number in numbers.items() if key == venue or (not venue and key not in sets)),
        "everywhere_url": _address(EVERYWHERE),
        "presets": [(key, words.translated) for key, words in PRESET_WORDS.items()],
    }
