"""The page of the computing preferences: for everywhere, and for places that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounting.preference_choices import EVERYWHERE, NothingForEverywhere, forget_set, read_sets, save_set
from accounting.preference_texts import GROUPS, PRESET_WORDS, Words
from accounting.preferences import PREFERENCES, PRESETS, complete
from portal.access import own_hosts, signed_in
from portal.models import User

_WORDS = {name: words for group in GROUPS.values() for name, words in group.items()}
_PLACES = {EVERYWHERE: "Everywhere", "home": "Home", "work": "Work", "school": "School"}


class PreferencesForm(forms.Form):
    """All preferences as fields: switches, and numbers within their limits."""

    def __init__(self, data: Mapping[str, Any] | None = None, *, values: Mapping[str, float]) -> None:
        super().__init__(data, initial={name: _shown(name, value) for name, value in values.items()})
        for name, words in _WORDS.items():
            self.fields[name] = _field(name, words)

    @property
    def groups(self) -> list[tuple[str, list[tuple[forms.BoundField, Words]]]]:
        """The fields with their words, as they stand together."""
        return [(title, [(self[name], words) for name, words in group.items()]) for title, group in GROUPS.items()]

    @property
    def chosen(self) -> dict[str, float]:
        """The valid form's values as numbers."""
        return {name: float(self.cleaned_data[name]) * words.scale for name, words in _WORDS.items()}


def is_switch(name: str) -> bool:
    return PREFERENCES[name][1:] == (0, 1)


def _shown(name: str, value: float) -> bool | str:
    return bool(value) if is_switch(name) else f"{value / _WORDS[name].scale:.10g}"


def _field(name: str, words: Words) -> forms.Field:
    limits = PREFERENCES[name]
    if is_switch(name):
        return forms.BooleanField(label=words.label, required=False, help_text=words.help)
    return forms.FloatField(
        label=words.label,
        min_value=limits.low / words.scale,
        max_value=limits.high / words.scale,
        help_text=words.help,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def preferences(request: HttpRequest) -> HttpResponse:
    """When and how much do my computers compute? Saved here, a client gets it with its next reply."""
    user = signed_in(request)
    venue = request.GET.get("place", EVERYWHERE)
    if venue not in _PLACES:
        raise Http404
    sets = read_sets(user)
    form = PreferencesForm(values=sets.get(venue) or sets.get(EVERYWHERE) or complete({}))
    if request.method == "POST":
        done, form = _act(request, user, venue, form)
        if done:
            messages.success(request, done)
            return redirect(_address(venue))
    return render(request, "accounting/preferences.html", _context(user, venue, sets, form))


def _act(request: HttpRequest, user: User, venue: str, form: PreferencesForm) -> tuple[str, PreferencesForm]:
    """Do what the pressed button says: the sentence to show, or none and the form with what is wrong."""
    place = "everywhere" if venue == EVERYWHERE else f"“{_PLACES[venue]}”"
    if "forget" in request.POST:
        forget_set(user, venue)
        if venue == EVERYWHERE:
            return "Removed. Your computers keep the preferences that they have; change them in BOINC itself.", form
        return f"Removed. Computers at {place} follow the preferences for everywhere.", form
    preset = request.POST.get("preset", "")
    if preset in PRESETS:
        values: Mapping[str, float] = PRESETS[preset]
    else:
        form = PreferencesForm(request.POST, values={})
        if not form.is_valid():
            return "", form
        values = form.chosen
    try:
        save_set(user, venue, values)
    except NothingForEverywhere:
        raise Http404 from None
    return f"Saved for {place}. Each computer gets it at its next contact.", form


def _address(venue: str) -> str:
    return reverse("preferences") + (f"?place={venue}" if venue else "")


def _context(user: User, venue: str, sets: Mapping[str, object], form: PreferencesForm) -> dict[str, Any]:
    here = own_hosts(user).filter(retired_at=None)
    numbers = dict(here.order_by().values_list("venue").annotate(number=Count("pk")))
    return {
        "form": form,
        "venue": venue,
        "place": _PLACES[venue],
        "has_own": venue in sets,
        "has_everywhere": EVERYWHERE in sets,
        "places": [
            {"name": name, "url": _address(key), "is_current": key == venue, "has_own": key in sets}
            for key, name in _PLACES.items()
        ],
        "hosts_here": sum(number for key, number in numbers.items() if key == venue or (not venue and key not in sets)),
        "presets": list(PRESET_WORDS.items()),
    }
