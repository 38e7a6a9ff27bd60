"""The hours of the day in which preferences allow something, as fields: from, until, and a line for each day that
differs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import translation
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from emulator.engine.scenario.limits import Hours
from emulator.pages.editor.fields import as_text, number

_LABELS: Final = {
    "compute_hours": (
        gettext_lazy("Run tasks from (hour)"),
        gettext_lazy("Run tasks until (hour)"),
        gettext_lazy("Run tasks: days that differ"),
    ),
    "network_hours": (
        gettext_lazy("Use the network from (hour)"),
        gettext_lazy("Use the network until (hour)"),
        gettext_lazy("Use the network: days that differ"),
    ),
}
FIELDS: Final = 3 * len(_LABELS)
"""How many fields they are."""
_DAYS_CHARS_MAX: Final = 500
_ALWAYS: Final = {"start_hour": 0.0, "end_hour": 0.0, "days": []}


def is_field(name: str) -> bool:
    """Whether the field is one of these."""
    return name.startswith(tuple(f"{key}_" for key in _LABELS))


def add_fields(form: forms.Form, *, is_change: bool) -> None:
    """Add the fields; in a change, empty ones mean that nothing changes."""
    about = gettext_lazy("Empty: as before.") if is_change else gettext_lazy("Empty: the whole day.")
    for name, (start, end, days) in _LABELS.items():
        form.fields[f"{name}_from"] = number(Hours, "start_hour", start, required=False, about=about)()
        form.fields[f"{name}_until"] = number(Hours, "end_hour", end, required=False, about=about)()
        form.fields[f"{name}_days"] = forms.CharField(
            label=days,
            required=False,
            max_length=_DAYS_CHARS_MAX,
            widget=forms.Textarea(attrs={"rows": 2}),
            help_text=format_lazy(
                gettext_lazy("One a line: the day, from, until. For example: {example}"),
                example=format_lazy("{day} 10 18", day=WEEKDAYS_ABBR[5]),
            ),
        )


def texts(base: Mapping[str, Any]) -> dict[str, str]:
    """What the fields show of preferences, or of a change of them."""
    found = {}
    for name in _LABELS:
        hours = base[name]
        is_empty = hours is None or ("event" not in base and hours["start_hour"] == hours["end_hour"] == 0)
        found[f"{name}_from"] = "" if is_empty else as_text(hours["start_hour"])
        found[f"{name}_until"] = "" if is_empty else as_text(hours["end_hour"])
        found[f"{name}_days"] = "\n".join(
            f"{WEEKDAYS_ABBR[(each['day'] - 1) % 7]} {as_text(each['start_hour'])} {as_text(each['end_hour'])}"
            for each in ([] if hours is None else hours["days"])
        )
    return found


def clean(form: forms.Form, *, is_change: bool) -> None:
    """Find what fits together only in the form as a whole, and the days."""
    given = form.cleaned_data
    for name in _LABELS:
        start, end, days = (f"{name}_{part}" for part in ("from", "until", "days"))
        if not form.errors.keys() & {start, end} and (given[start] is None) != (given[end] is None):
            form.add_error(start if given[start] is None else end, _("Enter both hours, or neither."))
        if days not in given:
            continue
        try:
            given[days] = _read_days(given[days])
        except ValidationError as error:
            form.add_error(days, error)
            continue
        if is_change and given[days] and start not in form.errors and given[start] is None:
            form.add_error(start, _("Enter the hours of all other days, too."))


def put(data: dict[str, Any], form: forms.Form, touched: set[str]) -> None:
    """Put the hours whose fields were touched into the JSON; the form must be valid."""
    given = form.cleaned_data
    for name in _LABELS:
        start, end, days = (f"{name}_{part}" for part in ("from", "until", "days"))
        if touched.isdisjoint({start, end, days}):
            continue
        if given[start] is not None:
            data[name] = {"start_hour": given[start], "end_hour": given[end], "days": given[days]}
        else:
            data[name] = None if "event" in data else {**_ALWAYS, "days": given[days]}


def _read_days(text: str) -> list[dict[str, Any]]:
    """The days that differ: each line has a day's name and two hours."""
    found: dict[int, dict[str, Any]] = {}
    for place, line in enumerate(filter(None, map(str.strip, text.splitlines())), 1):
        read = _day_of(line.split())
        if read is None:
            raise ValidationError(
                _("Line %(line)s: enter a day and two hours from 0 to 24, such as “%(example)s 10 18”.")
                % {"line": place, "example": WEEKDAYS_ABBR[5]}
            )
        if read["day"] in found:
            raise ValidationError(_("Line %(line)s: this day has a line already.") % {"line": place})
        found[read["day"]] = read
    return list(found.values())


def _day_of(words: list[str]) -> dict[str, Any] | None:
    """A day with its hours; None if the words are something else."""
    try:
        name, *hours = words
        start, end = (float(hour.replace(",", ".")) for hour in hours)
    except ValueError:
        return None
    day = _days_by_name().get(name.casefold().rstrip("."))
    if day is None or not (0 <= start <= 24 and 0 <= end <= 24):
        return None
    return {"day": day, "start_hour": start, "end_hour": end}


@lru_cache(maxsize=1)
def _days_by_name() -> dict[str, int]:
    """Days from 0, Sunday, by full and short name in all languages: a draft may have been typed in another one."""
    found: dict[str, int] = {}
    for language, _title in settings.LANGUAGES:
        with translation.override(language):
            for names in (WEEKDAYS, WEEKDAYS_ABBR):
                found |= {str(name).casefold().rstrip("."): (place + 1) % 7 for place, name in names.items()}
    return found
