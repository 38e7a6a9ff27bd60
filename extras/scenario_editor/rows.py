"""The rows of the editor as forms, and back into a scenario's JSON.

An unedited field keeps the JSON's own value, so that viewing a scenario changes no digit of it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from emulator.engine.scenario import CPU, DAY_SECS, App, Normal, Scenario, Version
from emulator.engine.scenario.projects import MAX_DOWNTIMES, MAX_EXCLUDED_DEVICE, MAX_EXCLUDED_GPUS
from emulator.pages.forms import PlainForm
from extras.scenario_editor import hour_fields
from extras.scenario_editor.fields import (
    EVENTS,
    GIGA,
    HOST,
    HOUR_SECS,
    MIB,
    PREFERENCES,
    PROCESSOR,
    PROJECT,
    USES,
    Entry,
    as_text,
    choice,
    kinds_of,
    name,
    number,
    whole,
)

MAX_LINES_CHARS: Final = 20_000


class Row(PlainForm):
    """A row: ``base`` is its JSON, ``typed`` its input, None if there was none yet."""

    entries: Sequence[Entry] = ()

    def __init__(
        self,
        base: Mapping[str, Any],
        typed: Mapping[str, str] | None,
        prefix: str,
        choices: Mapping[str, Sequence[tuple[str, Any]]] | None = None,
    ) -> None:
        self.base = base
        self.was = self.texts(base)
        self.typed = {**self.was, **(typed or {})}  # an older release's draft lacks fields added since
        super().__init__({f"{prefix}-{key}": text for key, text in self.typed.items() if text}, prefix=prefix)
        for entries in self.entries:
            self.fields[entries.name] = entries.field()
        self.add_fields()
        for key, field in self.fields.items():
            if isinstance(field, forms.ChoiceField) and not field.choices:
                field.choices = list((choices or {}).get(key, ()))
            if isinstance(field, forms.FloatField):
                field.widget.attrs["step"] = "any"

    def add_fields(self) -> None:
        """Add fields that are not simply a value of the JSON."""

    def texts(self, base: Mapping[str, Any]) -> dict[str, str]:
        """Return the fields' texts for the JSON."""
        values = {}
        for entries in self.entries:
            text = entries.text_of(base)
            value = entries.value_of(base)
            is_check = isinstance(entries.field(), forms.BooleanField)
            values[entries.name] = str(value) if isinstance(value, bool) and not is_check else text
        return values

    def is_touched(self, *names: str) -> bool:
        """Whether one of these fields differs from the JSON."""
        return any(self.typed.get(key, "") != self.was.get(key, "") for key in names)

    def merged(self) -> dict[str, Any]:
        """Return the JSON merged with the input; the row must be valid."""
        data: dict[str, Any] = copy.deepcopy(dict(self.base))
        for entries in self.entries:
            if self.is_touched(entries.name):
                entries.put(data, self.cleaned_data[entries.name])
        return data


class ProcessorRow(Row):
    entries = PROCESSOR


class HoursRow(Row):
    """Preferences, or a change of them; other rows have no hours."""

    @property
    def parts(self) -> Sequence[hour_fields.HourFields]:
        """Return its groups of hours."""
        return hour_fields.PREFERENCES if "compute_hours" in self.base else ()

    @property
    def _is_change(self) -> bool:
        return "event" in self.base

    def add_fields(self) -> None:
        hour_fields.add_fields(self, self.parts, is_change=self._is_change)

    def texts(self, base: Mapping[str, Any]) -> dict[str, str]:
        return {**super().texts(base), **hour_fields.texts(base, self.parts)}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        hour_fields.clean(self, self.parts, is_change=self._is_change)
        return cleaned

    def merged(self) -> dict[str, Any]:
        data = super().merged()
        hour_fields.put(data, self, self.parts, {key for key in self.fields if self.is_touched(key)})
        return data

    def main(self) -> list[forms.BoundField]:
        """All fields except the hours."""
        of_hours = {bound.name for bound in self.hours()}
        return [bound for bound in self if bound.name not in of_hours]

    def hours(self) -> list[forms.BoundField]:
        return [self[key] for part in self.parts for key in part.names]

    def are_hours_open(self) -> bool:
        """Whether they have values or errors."""
        return any(bound.errors or self.typed.get(bound.name) for bound in self.hours())


class PreferencesRow(HoursRow):
    entries = PREFERENCES


class HostRow(HoursRow):
    """The computer: its memory, its availability, and its owner's use of it."""

    entries = (*HOST, *(entries for _title, use in USES.values() for entries in use))
    first_fields = ("name", "ram_gib")
    parts = hour_fields.USES

    def first(self) -> list[forms.BoundField]:
        return [self[key] for key in self.first_fields]

    def availability(self) -> list[forms.BoundField]:
        return [self[entries.name] for entries in HOST if entries.name not in self.first_fields]

    def is_availability_open(self) -> bool:
        return any(bound.errors for bound in self.availability())

    def uses(self) -> list[tuple[Any, list[forms.BoundField]]]:
        """The owner's uses: title and fields."""
        parts = []
        for part in self.parts:
            title, entries = USES[part.name]
            parts.append((title, [self[key] for key in (*(field.name for field in entries), *part.names)]))
        return parts

    def are_uses_open(self) -> bool:
        """Whether the owner uses it at all, or there is an error."""
        return any(bound.errors for _title, bounds in self.uses() for bound in bounds) or any(
            self.typed.get(f"{part.name}_percent") not in ("", "0") for part in self.parts
        )


class StartRow(Row):
    """The start of the run, from which hours count. Its JSON is the part of a scenario without rows."""

    entries = (
        Entry(
            "week_hours",
            ("week_secs",),
            number(Scenario, "week_secs", gettext_lazy("Local time at the start (hours since Sunday 0:00)"), HOUR_SECS),
            HOUR_SECS,
        ),
    )


class ProjectRow(Row):
    """A project, with its downtimes as text: one per line, start, length and repetition; and likewise its excluded
    GPUs.
    """

    entries = PROJECT

    def add_fields(self) -> None:
        self.fields["downtimes"] = forms.CharField(
            label=gettext_lazy("Planned downtimes"),
            required=False,
            max_length=MAX_LINES_CHARS,
            widget=forms.Textarea(attrs={"rows": 2}),
            help_text=gettext_lazy(
                "One a line: start (day), length (hours) and, if it repeats, after how many days. “2 12 7” is every "
                "week from day 2 on, for 12 hours."
            ),
        )

        self.fields["excluded_gpus"] = forms.CharField(
            label=gettext_lazy("GPUs that its tasks may not use"),
            required=False,
            max_length=MAX_LINES_CHARS,
            widget=forms.Textarea(attrs={"rows": 2}),
            help_text=gettext_lazy(
                "One a line: the type, the number of the device from 0 and, if it is for one app only, the app. "
                "“NVIDIA 0” is the first NVIDIA GPU."
            ),
        )

    def texts(self, base: Mapping[str, Any]) -> dict[str, str]:
        lines = []
        excluded = [f"{row['gpu']} {row['device']} {row['app']}".rstrip() for row in base["excluded_gpus"]]
        for row in base["downtimes"]:
            parts = [as_text(row["from_secs"], DAY_SECS), as_text(row["length_secs"], HOUR_SECS)]
            if row["every_secs"]:
                parts.append(as_text(row["every_secs"], DAY_SECS))
            lines.append(" ".join(parts))
        return {**super().texts(base), "downtimes": "\n".join(lines), "excluded_gpus": "\n".join(excluded)}

    def clean_excluded_gpus(self) -> list[dict[str, Any]]:
        lines = [line.split(maxsplit=2) for line in self.cleaned_data["excluded_gpus"].splitlines() if line.strip()]
        if len(lines) > MAX_EXCLUDED_GPUS:
            raise ValidationError(_("At most %(limit)s excluded GPUs.") % {"limit": MAX_EXCLUDED_GPUS})
        excluded = []
        for place, words in enumerate(lines, 1):
            number = words[1] if len(words) > 1 else ""
            if not (number.isascii() and number.isdigit() and int(number[:9]) <= MAX_EXCLUDED_DEVICE):
                raise ValidationError(
                    _("Line %(line)s: enter a type of GPU and the number of a device from 0 to %(most)s.")
                    % {"line": place, "most": MAX_EXCLUDED_DEVICE}
                )
            excluded.append({"gpu": words[0], "device": int(number), "app": words[2].strip() if len(words) > 2 else ""})
        return excluded

    def clean_downtimes(self) -> list[dict[str, float]]:
        lines = [line.split() for line in self.cleaned_data["downtimes"].splitlines() if line.strip()]
        if len(lines) > MAX_DOWNTIMES:
            raise ValidationError(_("At most %(limit)s downtimes.") % {"limit": MAX_DOWNTIMES})
        downtimes = []
        for place, words in enumerate(lines, 1):
            try:
                numbers = [float(word) for word in words]
            except ValueError:
                numbers = []
            if not 2 <= len(numbers) <= 3:
                raise ValidationError(_("Line %(line)s: enter two or three numbers.") % {"line": place})
            start, length, every = (*numbers, 0.0)[:3]
            if not (0 <= start <= 1e6 and 0 <= length <= 1e6 and (not every or length / 24 < every <= 1e6)):
                raise ValidationError(
                    _("Line %(line)s: enter numbers from 0 to 1000000; a repetition must be longer than the downtime.")
                    % {"line": place}
                )
            downtimes.append(
                {"from_secs": start * DAY_SECS, "length_secs": length * HOUR_SECS, "every_secs": every * DAY_SECS}
            )
        return downtimes

    def merged(self) -> dict[str, Any]:
        data = super().merged()
        for key in ("downtimes", "excluded_gpus"):
            if self.is_touched(key):
                data[key] = self.cleaned_data[key]
        return data


_FLOP_FIELDS: Final = {"size": ("hours", "spread_percent"), "estimate": ("estimate_hours", "estimate_spread_percent")}


class AppRow(Row):
    """An application: its first version's device and speed, and its jobs by their run time there."""

    entries = (
        Entry("name", ("name",), name(gettext_lazy("App"))),
        Entry(
            "deadline_days",
            ("latency_bound_secs",),
            number(App, "latency_bound_secs", gettext_lazy("Deadline (days)"), DAY_SECS),
            DAY_SECS,
        ),
        Entry(
            "error_percent", ("error_rate",), number(App, "error_rate", gettext_lazy("Tasks that fail (%)"), 0.01), 0.01
        ),
        Entry("weight", ("weight",), number(App, "weight", gettext_lazy("Weight among the project’s apps"))),
        Entry(
            "max_concurrent",
            ("max_concurrent",),
            whole(App, "max_concurrent", gettext_lazy("Tasks at once (0: no limit)")),
        ),
        Entry(
            "memory_mib",
            ("working_set_bytes",),
            number(App, "working_set_bytes", gettext_lazy("Memory of a running task (MiB; 0: not counted)"), MIB),
            MIB,
        ),
    )
    main_fields = ("name", "kind", "hours", "spread_percent", "deadline_days", "error_percent")
    version_fields = ("kind", "gflops", "cpus", "gpus")

    def add_fields(self) -> None:
        self.fields["kind"] = choice(gettext_lazy("Runs on"))()
        self.fields["gflops"] = number(Version, "flops", gettext_lazy("Speed of a task (GFLOPS)"), GIGA)()
        self.fields["cpus"] = number(Version, "cpus", gettext_lazy("CPUs per task"))()
        self.fields["gpus"] = number(Version, "gpus", gettext_lazy("GPUs per task"))()
        hours = forms.FloatField(label=gettext_lazy("Task (hours)"), min_value=1e-6, max_value=1e7)
        percent = forms.FloatField(label=gettext_lazy("Spread (%)"), min_value=0, max_value=1000)
        self.fields["hours"], self.fields["spread_percent"] = hours, percent
        self.fields["estimate_hours"] = forms.FloatField(
            label=gettext_lazy("Estimated task (hours)"),
            min_value=1e-6,
            max_value=1e7,
            required=False,
            help_text=gettext_lazy("Empty: as long as the task is on average."),
        )
        self.fields["estimate_spread_percent"] = forms.FloatField(
            label=gettext_lazy("Spread of the estimate (%)"), min_value=0, max_value=1000
        )

    def texts(self, base: Mapping[str, Any]) -> dict[str, str]:
        none: dict[str, Any] = {"flops": GIGA, "cpus": 1.0, "gpu": "", "gpus": 0.0}
        version = base["versions"][0] if base["versions"] else none
        values = {
            **super().texts(base),
            "kind": version["gpu"] or CPU,
            "gflops": as_text(version["flops"], GIGA),
            "cpus": as_text(version["cpus"]),
            "gpus": as_text(version["gpus"]),
        }
        for key, (hours, spread) in _FLOP_FIELDS.items():
            normal = base[key]
            is_same = key == "estimate" and normal["mean"] == base["size"]["mean"]
            values[hours] = "" if is_same else as_text(normal["mean"] / version["flops"], HOUR_SECS)
            values[spread] = as_text(normal["std_dev"] / normal["mean"], 0.01)
        return values

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("kind") == CPU and cleaned.get("cpus") == 0:
            self.add_error("cpus", _("A task on the CPU needs some of it."))
        if cleaned.get("kind", CPU) != CPU and cleaned.get("gpus") == 0:
            self.add_error("gpus", _("A task on a GPU needs some of it."))
        return cleaned

    def merged(self) -> dict[str, Any]:
        data = super().merged()
        given = self.cleaned_data
        versions = data["versions"]
        flops = versions[0]["flops"] if versions else GIGA
        if self.is_touched(*self.version_fields):
            flops = given["gflops"] * GIGA if self.is_touched("gflops") else flops
            on_gpu = given["kind"] != CPU
            version = {
                "flops": flops,
                "cpus": given["cpus"],
                "gpu": given["kind"] if on_gpu else "",
                "gpus": given["gpus"] if on_gpu else 0.0,
            }
            data["versions"] = [version, *versions[1:]]
        for key, (hours, spread) in _FLOP_FIELDS.items():
            if self.is_touched("gflops", "hours", hours, spread):
                run_hours = given[hours] if given[hours] is not None else given["hours"]
                mean = run_hours * HOUR_SECS * flops
                data[key] = {"mean": mean, "std_dev": mean * given[spread] / 100}
        return data

    def main(self) -> list[forms.BoundField]:
        """The fields that most people change."""
        return [self[key] for key in self.main_fields]

    def more(self) -> list[forms.BoundField]:
        """The remaining fields."""
        return [bound for bound in self if bound.name not in self.main_fields]

    def has_more_errors(self) -> bool:
        return any(bound.errors for bound in self.more())

    @property
    def more_versions(self) -> int:
        return max(0, len(self.base["versions"]) - 1)


class EventRow(HoursRow):
    """An event; its type does not change."""

    def __init__(self, base: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        self.title, self.entries = EVENTS[base["event"]]
        super().__init__(base, *args, **kwargs)


def choices_for(kinds: Sequence[str], projects: Sequence[str]) -> dict[str, Sequence[tuple[str, Any]]]:
    """Return the options of fields that name a type of processor or a project."""
    return {"kind": kinds_of(kinds), "project": [(name, name) for name in projects if name]}


def new_app() -> App:
    """Return a default application: jobs of an hour at 4 GFLOPS, due after a week."""
    hour = Normal(HOUR_SECS * 4 * GIGA)
    return App("app", (Version(4 * GIGA),), hour, hour, 7 * DAY_SECS)
