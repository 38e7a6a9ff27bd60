"""Hours of the day in which something is allowed, or happens, as fields: from, until, and a line for each day that
differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import translation
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from emulator.engine.scenario.limits import Hours
from extras.scenario_editor.fields import as_text, number, part_of

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Text


@dataclass(frozen=True, slots=True)
class HourFields:
    """Three fields: the prefix of their names, the path of the hours in the row's JSON, and their labels."""

    name: str
    path: tuple[str, ...]
    labels: tuple[Text, Text, Text]

    @property
    def names(self) -> tuple[str, str, str]:
        return f"{self.name}_from", f"{self.name}_until", f"{self.name}_days"


PREFERENCES: Final = (
    HourFields(
        "compute_hours",
        ("compute_hours",),
        (
            gettext_lazy("Run tasks from (hour)"),
            gettext_lazy("Run tasks until (hour)"),
            gettext_lazy("Run tasks: days that differ"),
        ),
    ),
    HourFields(
        "network_hours",
        ("network_hours",),
        (
            gettext_lazy("Use the network from (hour)"),
            gettext_lazy("Use the network until (hour)"),
            gettext_lazy("Use the network: days that differ"),
        ),
    ),
)
USES: Final = (
    HourFields(
        "in_use",
        ("in_use", "hours"),
        (
            gettext_lazy("In use from (hour)"),
            gettext_lazy("In use until (hour)"),
            gettext_lazy("In use: days that differ"),
        ),
    ),
    HourFields(
        "on_batteries",
        ("on_batteries", "hours"),
        (
            gettext_lazy("On batteries from (hour)"),
            gettext_lazy("On batteries until (hour)"),
            gettext_lazy("On batteries: days that differ"),
        ),
    ),
    HourFields(
        "exclusive_app",
        ("exclusive_app", "hours"),
        (
            gettext_lazy("Exclusive application from (hour)"),
            gettext_lazy("Exclusive application until (hour)"),
            gettext_lazy("Exclusive application: days that differ"),
        ),
    ),
    HourFields(
        "exclusive_gpu_app",
        ("exclusive_gpu_app", "hours"),
        (
            gettext_lazy("Exclusive GPU application from (hour)"),
            gettext_lazy("Exclusive GPU application until (hour)"),
            gettext_lazy("Exclusive GPU application: days that differ"),
        ),
    ),
)
"""What the owner does with the computer."""
_DAYS_CHARS_MAX: Final = 500
_ALWAYS: Final = {"start_hour": 0.0, "end_hour": 0.0, "days": []}


def add_fields(form: forms.Form, parts: Sequence[HourFields], *, is_change: bool) -> None:
    """Add the fields; in a change, empty ones mean that nothing changes."""
    about = gettext_lazy("Empty: as before.") if is_change else gettext_lazy("Empty: the whole day.")
    for part in parts:
        start, end, days = part.names
        from_label, until_label, days_label = part.labels
        form.fields[start] = number(Hours, "start_hour", from_label, required=False, about=about)()
        form.fields[end] = number(Hours, "end_hour", until_label, required=False, about=about)()
        form.fields[days] = forms.CharField(
            label=days_label,
            required=False,
            max_length=_DAYS_CHARS_MAX,
            widget=forms.Textarea(attrs={"rows": 2}),
            help_text=format_lazy(
                gettext_lazy("One a line: the day, from, until. For example: {example}"),
                example=format_lazy("{day} 10 18", day=WEEKDAYS_ABBR[5]),
            ),
        )


def texts(base: Mapping[str, Any], parts: Sequence[HourFields]) -> dict[str, str]:
    """Return the fields' texts for a row's JSON."""
    values = {}
    for part in parts:
        start, end, days = part.names
        hours = part_of(base, part.path)
        is_empty = hours is None or ("event" not in base and hours["start_hour"] == hours["end_hour"] == 0)
        values[start] = "" if is_empty else as_text(hours["start_hour"])
        values[end] = "" if is_empty else as_text(hours["end_hour"])
        values[days] = "\n".join(
            f"{WEEKDAYS_ABBR[(day['day'] - 1) % 7]} {as_text(day['start_hour'])} {as_text(day['end_hour'])}"
            for day in ([] if hours is None else hours["days"])
        )
    return values


def clean(form: forms.Form, parts: Sequence[HourFields], *, is_change: bool) -> None:
    """Check what can only be checked in the form as a whole, and the days."""
    given = form.cleaned_data
    for part in parts:
        start, end, days = part.names
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


def put(data: dict[str, Any], form: forms.Form, parts: Sequence[HourFields], touched: set[str]) -> None:
    """Put the hours whose fields were edited into the JSON; the form must be valid."""
    given = form.cleaned_data
    for part in parts:
        start, end, days = part.names
        if touched.isdisjoint(part.names):
            continue
        place = part_of(data, part.path[:-1])
        if given[start] is not None:
            place[part.path[-1]] = {"start_hour": given[start], "end_hour": given[end], "days": given[days]}
        else:
            place[part.path[-1]] = None if "event" in data else {**_ALWAYS, "days": given[days]}


def _read_days(text: str) -> list[dict[str, Any]]:
    """Parse the days that differ: each line has a day's name and two hours."""
    days: dict[int, dict[str, Any]] = {}
    for place, line in enumerate(filter(None, map(str.strip, text.splitlines())), 1):
        read = _day_of(line.split())
        if read is None:
            raise ValidationError(
                _("Line %(line)s: enter a day and two hours from 0 to 24, such as “%(example)s 10 18”.")
                % {"line": place, "example": WEEKDAYS_ABBR[5]}
            )
        if read["day"] in days:
            raise ValidationError(_("Line %(line)s: this day has a line already.") % {"line": place})
        days[read["day"]] = read
    return list(days.values())


def _day_of(words: list[str]) -> dict[str, Any] | None:
    """Parse a day with its hours; None if the words are something else."""
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
    """Return days from 0, Sunday, by full and short name in all languages: a draft may have been typed in another
    one.
    """
    days: dict[str, int] = {}
    for language, _title in settings.LANGUAGES:
        with translation.override(language):
            for names in (WEEKDAYS, WEEKDAYS_ABBR):
                days |= {str(name).casefold().rstrip("."): (place + 1) % 7 for place, name in names.items()}
    return days
