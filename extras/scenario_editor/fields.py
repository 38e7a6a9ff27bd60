"""The editor's fields: the part of a scenario that each shows, its unit, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    Attach,
    Availability,
    ChangeBuffer,
    ChangePreferences,
    ChangeProcessor,
    ChangeShare,
    Host,
    Preferences,
    Processor,
    Project,
    Use,
)
from emulator.engine.scenario.checks import Between, limits_of
from emulator.pages.forms import GPU_KINDS

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Text

HOUR_SECS: Final = 3600.0
GIGA: Final = 1e9
GIB: Final = 2.0**30
MIB: Final = 2.0**20
YES_NO: Final = [("True", _("yes")), ("False", _("no"))]
NAME_CHARS: Final = 255
WHEN: Final = _("Day")


@dataclass(frozen=True, slots=True)
class Entry:
    """One field: the path of its value in the row's JSON, and how many of the JSON's units one of its own is."""

    name: str
    path: tuple[str, ...]
    field: Callable[[], forms.Field]
    scale: float = 1.0

    def value_of(self, data: Mapping[str, Any]) -> Any:
        """Return the value in the JSON."""
        return part_of(data, self.path)

    def text_of(self, data: Mapping[str, Any]) -> str:
        """Return the value as text for the field."""
        return as_text(self.value_of(data), self.scale)

    def put(self, data: dict[str, Any], value: Any) -> None:
        """Put a cleaned value into the JSON."""
        place = part_of(data, self.path[:-1])
        if isinstance(value, float):
            value *= self.scale
        place[self.path[-1]] = value


def part_of(data: Any, path: Sequence[str]) -> Any:
    """Return the JSON at that path."""
    for key in path:
        data = data[key]
    return data


def as_text(value: Any, scale: float = 1.0) -> str:
    """Format a value as it is typed: at most twelve digits, nothing for None."""
    if isinstance(value, bool):
        return "on" if value else ""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value / scale:.12g}"
    return str(value)


def number(
    part: type, field: str, label: Text, scale: float = 1.0, *, required: bool = True, about: Text = ""
) -> Callable[[], forms.Field]:
    """Return a number field with the limits of a scenario's field."""
    limit = next(limit for name, limit in limits_of(part) if name == field)
    if not isinstance(limit, Between):
        raise TypeError(field)
    low, high = limit.least / scale, limit.most / scale
    return lambda: forms.FloatField(label=label, min_value=low, max_value=high, required=required, help_text=about)


def whole(part: type, field: str, label: Text, *, required: bool = True, about: Text = "") -> Callable[[], forms.Field]:
    """Return a whole-number field with the limits of a scenario's field."""
    limit = next(limit for name, limit in limits_of(part) if name == field)
    if not isinstance(limit, Between):
        raise TypeError(field)
    low, high = int(limit.least), int(limit.most)
    return lambda: forms.IntegerField(label=label, min_value=low, max_value=high, required=required, help_text=about)


def name(label: Text, *, required: bool = True) -> Callable[[], forms.Field]:
    return lambda: forms.CharField(label=label, max_length=NAME_CHARS, required=required)


def check(label: Text) -> Callable[[], forms.Field]:
    return lambda: forms.BooleanField(label=label, required=False)


def yes_no(label: Text) -> Callable[[], forms.Field]:
    return lambda: forms.TypedChoiceField(label=label, choices=YES_NO, coerce=lambda text: text == "True")


def unset_yes_no(label: Text) -> Callable[[], forms.Field]:
    return lambda: forms.TypedChoiceField(
        label=label,
        choices=[("", _("as before")), *YES_NO],
        coerce=lambda text: text == "True",
        empty_value=None,
        required=False,
    )


def kinds_of(names: Sequence[str]) -> list[tuple[str, Text]]:
    """Return the types of processor to choose from: the CPU, known GPUs, and others that the scenario names."""
    kinds: dict[str, Text] = {CPU: CPU, **dict(GPU_KINDS)}
    return [*kinds.items(), *((kind, kind) for kind in names if kind not in kinds)]


def choice(label: Text) -> Callable[[], forms.Field]:
    """Return a choice whose options the row knows: a type of processor, or a project."""
    return lambda: forms.ChoiceField(label=label)


def _availability(name: str, percent: Text, hours: Text) -> list[Entry]:
    return [
        Entry(f"{name}_percent", (name, "fraction"), number(Availability, "fraction", percent, 0.01), 0.01),
        Entry(
            f"{name}_hours",
            (name, "mean_up_secs"),
            number(Availability, "mean_up_secs", hours, HOUR_SECS),
            HOUR_SECS,
        ),
    ]


def _use(name: str, percent: Text, hours: Text) -> list[Entry]:
    return [
        Entry(f"{name}_percent", (name, "fraction"), number(Use, "fraction", percent, 0.01), 0.01),
        Entry(f"{name}_hours", (name, "mean_secs"), number(Use, "mean_secs", hours, HOUR_SECS), HOUR_SECS),
    ]


HOST: Final = [
    Entry("name", ("name",), name(_("Name of the computer"), required=False)),
    Entry("ram_gib", ("ram_bytes",), number(Host, "ram_bytes", _("Memory (GiB; 0: no limit)"), GIB), GIB),
    *_availability("on", _("Time on (%)"), _("Hours on at a time, on average")),
    *_availability("active", _("Of the time on, may compute (%)"), _("Hours of computing at a time")),
    *_availability("gpu_active", _("Of that, GPUs may compute (%)"), _("Hours of GPU computing at a time")),
    *_availability("connected", _("Of the time on, connected (%)"), _("Hours connected at a time")),
]
USES: Final[dict[str, tuple[Text, list[Entry]]]] = {
    "in_use": (
        _("The computer is in use"),
        _use("in_use", _("In use (% of these hours)"), _("In use: hours at a time")),
    ),
    "on_batteries": (
        _("It runs on batteries"),
        _use("on_batteries", _("On batteries (% of these hours)"), _("On batteries: hours at a time")),
    ),
    "exclusive_app": (
        _("An exclusive application runs"),
        _use(
            "exclusive_app", _("Exclusive application (% of these hours)"), _("Exclusive application: hours at a time")
        ),
    ),
    "exclusive_gpu_app": (
        _("An exclusive GPU application runs"),
        _use(
            "exclusive_gpu_app",
            _("Exclusive GPU application (% of these hours)"),
            _("Exclusive GPU application: hours at a time"),
        ),
    ),
}
"""What the owner does with the computer: its title, and its fields besides those of its hours."""
PROCESSOR: Final = [
    Entry("kind", ("kind",), choice(_("Type"))),
    Entry("instances", ("instances",), whole(Processor, "instances", _("How many"))),
    Entry("gflops", ("peak_flops",), number(Processor, "peak_flops", _("Peak GFLOPS each"), GIGA), GIGA),
    Entry("efficiency", ("efficiency",), number(Processor, "efficiency", _("Counted part of the peak"))),
]
# Field, preference, label, and the preference's units in one of the field's.
_AMOUNTS: Final[tuple[tuple[str, str, Text, float], ...]] = (
    ("work_buf_min_days", "work_buf_min_days", _("Minimum buffer (days)"), 1.0),
    ("work_buf_additional_days", "work_buf_additional_days", _("Additional buffer (days)"), 1.0),
    ("period_mins", "period_secs", _("Time slice (minutes)"), 60.0),
    ("max_cpus_percent", "max_cpus_percent", _("CPUs to use at most (%)"), 1.0),
    ("max_ncpus", "max_ncpus", _("Number of CPUs to use at most (0: no limit)"), 1.0),
    ("cpu_usage_percent", "cpu_usage_percent", _("CPU time to use at most (%)"), 1.0),
    ("ram_busy_percent", "ram_busy_fraction", _("Memory to use while the computer is in use (%)"), 0.01),
    ("ram_idle_percent", "ram_idle_fraction", _("Memory to use while it is not in use (%)"), 0.01),
)
_SWITCHES: Final[tuple[tuple[str, Text], ...]] = (
    ("report_at_once", _("Report finished tasks at once")),
    ("run_if_user_active", _("Run tasks while the computer is in use")),
    ("run_gpu_if_user_active", _("Run GPU tasks while the computer is in use")),
    ("run_on_batteries", _("Run tasks on batteries")),
)


def _amounts(part: type, *, required: bool) -> list[Entry]:
    return [
        Entry(
            field,
            (key,),
            whole(part, key, label, required=required)
            if key == "max_ncpus"
            else number(part, key, label, scale, required=required),
            scale,
        )
        for field, key, label, scale in _AMOUNTS
    ]


PREFERENCES: Final = [
    *_amounts(Preferences, required=True),
    *(Entry(key, (key,), check(label)) for key, label in _SWITCHES),
]
PROJECT: Final = [
    Entry("name", ("name",), name(_("Name"))),
    Entry("share", ("share",), number(Project, "share", _("Share"))),
    Entry(
        "priority", ("priority",), whole(Project, "priority", _("Priority (higher comes first, whatever the shares)"))
    ),
    Entry("attached", ("attached",), check(_("Attached from the start"))),
    Entry("has_work", ("has_work",), check(_("Has work from the start"))),
    Entry("suspended", ("suspended",), check(_("Suspended"))),
    Entry("no_new_tasks", ("no_new_tasks",), check(_("No new tasks"))),
    *_availability("available", _("Server up (%)"), _("Hours up at a time, on average")),
    Entry(
        "request_delay_secs",
        ("request_delay_secs",),
        number(Project, "request_delay_secs", _("Request delay (seconds)")),
    ),
    Entry("reply_delay_secs", ("reply_delay_secs",), number(Project, "reply_delay_secs", _("Reply delay (seconds)"))),
    Entry("max_concurrent", ("max_concurrent",), whole(Project, "max_concurrent", _("Tasks at once (0: no limit)"))),
    Entry("workload_check", ("workload_check",), check(_("Its server checks the whole workload"))),
]


def _day(part: type) -> Entry:
    return Entry("day", ("at_secs",), number(part, "at_secs", WHEN, DAY_SECS), DAY_SECS)


_PROJECT: Final = Entry("project", ("project",), choice(_("Project")))


def _switch(name: str, label: Text) -> list[Entry]:
    return [_day(Attach), _PROJECT, Entry(name, (name,), yes_no(label))]


EVENTS: Final[dict[str, tuple[Text, list[Entry]]]] = {
    "Attach": (_("Project is attached"), [_day(Attach), _PROJECT]),
    "Detach": (_("Project is left"), [_day(Attach), _PROJECT]),
    "ChangeShare": (
        _("Share changes"),
        [_day(ChangeShare), _PROJECT, Entry("share", ("share",), number(ChangeShare, "share", _("New share")))],
    ),
    "Suspend": (_("Project is suspended or resumed"), _switch("suspended", _("Suspended"))),
    "NoNewTasks": (_("No new tasks"), _switch("no_new_tasks", _("No new tasks"))),
    "HasWork": (_("Work runs out or comes back"), _switch("has_work", _("Has work"))),
    "ServerUp": (_("Server goes down or comes up"), _switch("up", _("Server is up"))),
    "NewApp": (_("New app"), [_day(Attach), _PROJECT]),
    "ChangePreferences": (
        _("Preferences change"),
        [
            _day(ChangePreferences),
            *_amounts(ChangePreferences, required=False),
            *(Entry(key, (key,), unset_yes_no(label)) for key, label in _SWITCHES),
        ],
    ),
    "ChangeBuffer": (
        _("Buffer changes"),
        [
            _day(ChangeBuffer),
            Entry(
                "work_buf_min_days",
                ("work_buf_min_days",),
                number(ChangeBuffer, "work_buf_min_days", _("Minimum buffer (days)")),
            ),
            Entry(
                "work_buf_additional_days",
                ("work_buf_additional_days",),
                number(ChangeBuffer, "work_buf_additional_days", _("Additional buffer (days)")),
            ),
        ],
    ),
    "ChangeProcessor": (
        _("Hardware changes"),
        [
            _day(ChangeProcessor),
            Entry("kind", ("kind",), choice(_("Type"))),
            Entry("instances", ("instances",), whole(ChangeProcessor, "instances", _("How many"), required=False)),
            Entry(
                "gflops",
                ("peak_flops",),
                number(ChangeProcessor, "peak_flops", _("Peak GFLOPS each"), GIGA, required=False),
                GIGA,
            ),
        ],
    ),
}
"""The events by their class's name: their title, and their fields."""
OFFERED: Final = [(kind, title) for kind, (title, _shown) in EVENTS.items() if kind != "ChangeBuffer"]
"""The events that can be added; a change of preferences includes a change of the buffer."""
