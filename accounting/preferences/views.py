"""The page of the computing preferences: for everywhere, and for places that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from accounting.engine.preferences import PREFERENCES, PRESETS, complete
from accounting.models import AccountSettings
from accounting.preferences.forms import DaysForm
from accounting.preferences.save import (
    EVERYWHERE,
    NothingForEverywhere,
    Saved,
    forget_set,
    read_saved,
    save_set,
    save_shown,
)
from accounting.preferences.texts import GROUPS, PRESET_WORDS, Words
from portal.models import User
from portal.people.access import own_hosts, signed_in

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
    sets = read_saved(user)
    shown = sets.get(venue) or sets.get(EVERYWHERE) or Saved(complete({}), {})
    bound = Forms(PreferencesForm(values=shown.values), DaysForm(days=shown.days))
    if request.method == "POST":
        done, bound = _act(request, user, venue, bound)
        if done:
            messages.success(request, done)
            return redirect(_address(venue))
    return render(request, "accounting/preferences.html", _context(user, venue, sets, bound))


@dataclass(frozen=True, slots=True)
class Forms:
    """The two forms that make a set: its numbers and switches, and the days that differ."""

    values: PreferencesForm
    days: DaysForm

    def are_valid(self) -> bool:
        return all([self.values.is_valid(), self.days.is_valid()])


def _act(request: HttpRequest, user: User, venue: str, bound: Forms) -> tuple[str, Forms]:
    """Do what the pressed button says: the sentence to show, or none and the forms with what is wrong."""
    place = "everywhere" if venue == EVERYWHERE else f"“{_PLACES[venue]}”"
    if "forget" in request.POST:
        forget_set(user, venue)
        if venue == EVERYWHERE:
            return "Removed. Your computers keep the preferences that they have; change them in BOINC itself.", bound
        return f"Removed. Computers at {place} follow the preferences for everywhere.", bound
    preset = request.POST.get("preset", "")
    days: Mapping[int, Mapping[str, float]] = {}
    if preset in PRESETS:
        values: Mapping[str, float] = PRESETS[preset]
    else:
        bound = Forms(PreferencesForm(request.POST, values={}), DaysForm(request.POST))
        if not bound.are_valid():
            return "", bound
        values, days = bound.values.chosen, bound.days.chosen
    try:
        save_set(user, venue, values, days)
    except NothingForEverywhere:
        raise Http404 from None
    return f"Saved for {place}. Each computer gets it at its next contact.", bound


def _address(venue: str) -> str:
    return reverse("preferences") + (f"?place={venue}" if venue else "")


class ShownForm(forms.ModelForm):  # type: ignore[type-arg]  # generic for the type checker only
    """What BOINC shows on the volunteer's computers."""

    class Meta:
        model = AccountSettings
        fields = ("team_name", "no_project_notices")
        labels = {"team_name": "Team", "no_project_notices": "Leave out the notices of projects"}
        help_texts = {
            "team_name": "A name that BOINC shows beside yours. Nobody else sees it.",
            "no_project_notices": "Only the news of this site are shown.",
        }


@require_POST
@login_required
def preferences_shown(request: HttpRequest) -> HttpResponse:
    """Keep what BOINC shows on my computers."""
    form = ShownForm(request.POST)
    if form.is_valid():
        save_shown(signed_in(request), **form.cleaned_data)
        messages.success(request, "Saved. Each computer shows it from its next contact on.")
    else:
        messages.error(request, "Nothing was saved: the name of a team has 100 characters at most.")
    return redirect("preferences")


def _context(user: User, venue: str, sets: Mapping[str, object], bound: Forms) -> dict[str, Any]:
    here = own_hosts(user).filter(retired_at=None)
    numbers = dict(here.order_by().values_list("venue").annotate(number=Count("pk")))
    return {
        "form": bound.values,
        "days_form": bound.days,
        "shown_form": ShownForm(instance=AccountSettings.objects.filter(user=user).first()) if not venue else None,
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
