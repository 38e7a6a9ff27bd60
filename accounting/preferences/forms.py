"""The forms of the preferences page: numbers and switches, days with their own hours, and what BOINC shows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounting.engine.preferences import DAY_HOURS, PREFERENCES
from accounting.models import AccountSettings
from accounting.preferences.texts import GROUPS, OPEN, Words
from portal.languages.fields import LocalisedFloatField
from portal.templatetags.display import count

_WORDS: Final = {name: words for group in GROUPS.values() for name, words in group.items()}

# Ordered as a week that begins on Monday, with the numbers that clients use.
DAYS: Final = {
    1: _("Monday"), 2: _("Tuesday"), 3: _("Wednesday"), 4: _("Thursday"), 5: _("Friday"), 6: _("Saturday"),
    0: _("Sunday"),
}  # fmt: skip
_KINDS: Final = {"cpu": DAY_HOURS[0], "net": DAY_HOURS[1]}
_LABELS: Final = {"cpu": _("run tasks"), "net": _("use the network")}
SAME, ALL_DAY, NEVER, BETWEEN = "", "all", "never", "between"
_MODES: Final = (
    (SAME, _("as on other days")), (ALL_DAY, _("all day")), (NEVER, _("not at all")), (BETWEEN, _("between")),
)  # fmt: skip
_RANGE_SHOWN_MAX: Final = 10_000
# The hours that clients understand as the whole day, and as no time at all.
_ALL_DAY_HOURS: Final = (0.0, 24.0)
_NEVER_HOURS: Final = (24.0, 0.0)


class HourField(forms.Field):
    """A time of day in hours, as people write it: "22:30", or "22", or "22.5"."""

    def __init__(self, *, high: float, **more: Any) -> None:
        attributes = {"class": "input--short", "maxlength": 5, "placeholder": "22:30", "autocomplete": "off"}
        super().__init__(widget=forms.TextInput(attrs=attributes), **more)
        self.high = high

    def to_python(self, value: Any) -> float | None:
        text = str(value or "").strip()
        if not text:
            return None
        # Two digits after a point could mean minutes or hundredths.
        match = re.fullmatch(r"(\d{1,2})(?::([0-5]\d)|[.,](\d))?", text, re.ASCII)
        hours = int(match[1]) + int(match[2] or 0) / 60 + int(match[3] or 0) / 10 if match else math.inf
        if hours > self.high:
            text = gettext("%(label)s: enter a time from 0:00 to %(high)s, such as 22:30.")
            raise forms.ValidationError(text % {"label": self.label, "high": hour_text(self.high)})
        return hours


def hour_text(hours: float) -> str:
    """Return a time of day as people write it, to the minute: 22.5 is "22:30"."""
    minutes = round(hours * 60)
    return f"{minutes // 60}:{minutes % 60:02}"


class PreferencesForm(forms.Form):
    """All preferences as fields: switches, times of day, and numbers within their limits."""

    def __init__(self, data: Mapping[str, Any] | None = None, *, values: Mapping[str, float]) -> None:
        super().__init__(data, initial={name: _initial(name, value) for name, value in values.items()})
        for name, words in _WORDS.items():
            self.fields[name] = _field(name, words.translated)

    @property
    def groups(self) -> list[PreferenceGroup]:
        """The fields with their words, in their groups."""
        return [
            PreferenceGroup(
                gettext(title),
                [(self[name], words.translated, _range(name, words)) for name, words in group.items()],
                is_main=title in OPEN,
                is_open=any(self._stands_out(name) for name in group),
            )
            for title, group in GROUPS.items()
        ]

    def _stands_out(self, name: str) -> bool:
        """Whether a fold must not hide it: it has an error, or is not the default."""
        default = PREFERENCES[name].default
        if self.is_bound:
            return name in self.errors or float(self.cleaned_data[name]) * _WORDS[name].scale != default
        return bool(self.initial.get(name) != _initial(name, default))

    @property
    def chosen(self) -> dict[str, float]:
        """Return the valid form's values as numbers."""
        return {name: float(self.cleaned_data[name]) * words.scale for name, words in _WORDS.items()}


def is_switch(name: str) -> bool:
    return PREFERENCES[name][1:] == (0, 1)


def is_hour(name: str) -> bool:
    return any(name in pair for pair in DAY_HOURS)


def _range(name: str, words: Words) -> str:
    """Return the limits of a number; empty for other fields. A limit that nobody comes near is left out."""
    if is_switch(name) or is_hour(name):
        return ""
    low, high = (limit / words.scale for limit in PREFERENCES[name][1:])
    if high > _RANGE_SHOWN_MAX:
        return gettext("from %(low)s") % {"low": count(round(low))}
    return f"{count(round(low))}–{count(round(high))}"


def _initial(name: str, value: float) -> bool | str:
    if is_hour(name):
        return hour_text(value)
    return bool(value) if is_switch(name) else f"{value / _WORDS[name].scale:.10g}"


def _field(name: str, words: Words) -> forms.Field:
    limits = PREFERENCES[name]
    if is_switch(name):
        return forms.BooleanField(label=words.label, required=False, help_text=words.help)
    if is_hour(name):
        return HourField(label=words.label, high=limits.high, help_text=words.help)
    return LocalisedFloatField(
        label=words.label,
        min_value=limits.low / words.scale,
        max_value=limits.high / words.scale,
        help_text=words.help,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


@dataclass(frozen=True, slots=True)
class PreferenceGroup:
    """A group of fields, each with its words and its range."""

    title: str
    fields: list[tuple[forms.BoundField, Words, str]]
    is_main: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Hours:
    """The three fields of a day and a kind."""

    mode: forms.BoundField
    start: forms.BoundField
    end: forms.BoundField


@dataclass(frozen=True, slots=True)
class DayLine:
    """A line of the form."""

    name: str
    differs: bool
    hours: list[tuple[str, Hours]]


class DaysForm(forms.Form):
    """The hours of each day, for computing and the network: as on other days, all day, never, or between two hours."""

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, days: Mapping[int, Mapping[str, float]] | None = None
    ) -> None:
        initial: dict[str, Any] = {}
        for day, own in (days or {}).items():
            for kind, (start, end) in _KINDS.items():
                if start in own and end in own:
                    initial |= _day_initial(f"d{day}_{kind}", own[start], own[end])
        super().__init__(data, initial=initial)
        for day, name in DAYS.items():
            for kind, (start, _end) in _KINDS.items():
                label = gettext("%(day)s: %(kind)s") % {"day": name, "kind": _LABELS[kind]}
                self._add(f"d{day}_{kind}", label, PREFERENCES[start].high)

    def _add(self, name: str, label: str, high: float) -> None:
        self.fields[name] = forms.ChoiceField(label=label, choices=_MODES, required=False)
        for suffix, text in (("_from", gettext("%(label)s, from")), ("_until", gettext("%(label)s, until"))):
            self.fields[name + suffix] = HourField(label=text % {"label": label}, required=False, high=high)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for day, name in DAYS.items():
            for kind in _KINDS:
                field = f"d{day}_{kind}"
                if given.get(field) != BETWEEN or {f"{field}_from", f"{field}_until"} & self.errors.keys():
                    continue
                start, end = given.get(f"{field}_from"), given.get(f"{field}_until")
                if start is None or end is None:
                    self.add_error(field, gettext("%(day)s: enter both hours.") % {"day": name})
                elif start == end:
                    text = gettext("%(day)s: the two hours are the same. Choose “all day” or “not at all” instead.")
                    self.add_error(field, text % {"day": name})
        return given

    @property
    def chosen(self) -> dict[int, dict[str, float]]:
        """Return the valid form's hours by day."""
        days: dict[int, dict[str, float]] = {}
        for day in DAYS:
            for kind, pair in _KINDS.items():
                field = f"d{day}_{kind}"
                mode = self.cleaned_data[field]
                if mode == SAME:
                    continue
                between = (self.cleaned_data[f"{field}_from"], self.cleaned_data[f"{field}_until"])
                hours = {ALL_DAY: _ALL_DAY_HOURS, NEVER: _NEVER_HOURS, BETWEEN: between}[mode]
                days.setdefault(day, {}).update(zip(pair, hours, strict=True))
        return days

    @property
    def days(self) -> list[DayLine]:
        """The lines, Monday first."""
        lines = []
        for day, name in DAYS.items():
            hours = []
            for kind in _KINDS:
                field = f"d{day}_{kind}"
                hours.append((str(_LABELS[kind]), Hours(self[field], self[f"{field}_from"], self[f"{field}_until"])))
            lines.append(DayLine(str(name), any(field.mode.value() for _mode, field in hours), hours))
        return lines

    @property
    def is_open(self) -> bool:
        """Whether the form has something to show: a day that differs, or an error."""
        return bool(self.errors) or any(day.differs for day in self.days)


def _day_initial(field: str, start: float, end: float) -> dict[str, Any]:
    if (start, end) == _NEVER_HOURS:
        return {field: NEVER}
    if start == end or (start, end) == _ALL_DAY_HOURS:
        return {field: ALL_DAY}
    return {field: BETWEEN, f"{field}_from": hour_text(start), f"{field}_until": hour_text(end)}


@dataclass(frozen=True, slots=True)
class PreferenceForms:
    """The two forms that make a set: its numbers and switches, and the days that differ."""

    values: PreferencesForm
    days: DaysForm

    def are_valid(self) -> bool:
        return all([self.values.is_valid(), self.days.is_valid()])


class ClientDisplayForm(forms.ModelForm):
    """What BOINC shows on the volunteer's computers, and whether they list their tasks here."""

    class Meta:
        model = AccountSettings
        fields = ("team_name", "no_project_notices", "sends_tasks")
        labels = {
            "team_name": _("Team"),
            "no_project_notices": _("Hide project notices"),
            "sends_tasks": _("Show running tasks here"),
        }
        help_texts = {
            "team_name": _("A name that BOINC shows next to yours. Nobody else sees it."),
            "no_project_notices": _("BOINC then shows only the news from this site."),
            "sends_tasks": _(
                "Your computers then send a list of their tasks at each sync. Only you can see these lists. If "
                "you switch this "
                "off, they are deleted."
            ),
        }
