"""The choices of a history page: those in its address, and the alternatives.

Every address gives a page: whatever is impossible is replaced, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from django.conf import settings
from django.utils.translation import gettext, gettext_noop

from accounting.engine.amounts import Processor
from accounting.history.compared import Compare, Overlay
from accounting.history.periods import Period, Step
from accounting.history.reads import By, Show
from accounting.history.sums import HistoryFilter
from accounting.models import HostProject, Project
from credit.app_history.reads import read_apps
from portal.models import Host, User

# Dates end at the year 1, and the compared range is earlier than the one shown.
_OLDEST_YEAR: Final = 1900
PROCESSORS: Final = {Processor.CPU: gettext_noop("CPUs"), Processor.GPU: gettext_noop("GPUs")}
_REFUSALS: Final = {
    "host": (gettext_noop("“%(value)s” is not one of your computers."), gettext_noop("All of them are shown.")),
    "project": (
        gettext_noop("“%(value)s” is not a project of your computers."), gettext_noop("All projects are shown."),
    ),
    "app": (gettext_noop("“%(value)s” is not an app of this site’s own project."), gettext_noop("All apps are shown.")),
    "processor": (
        gettext_noop("“%(value)s” is not a type of processor. Use cpu or gpu."), gettext_noop("Both are shown."),
    ),
}  # fmt: skip


RANGE_PARAMETERS: Final = ("range", "from", "to")
PART_PARAMETERS: Final = ("host", "project", "processor", "app")
PAGE_PARAMETERS: Final = (
    *RANGE_PARAMETERS, "step", *PART_PARAMETERS, "show", "by", "compare", "curve", "scale", "days_page", "groups_page",
)  # fmt: skip


class Scale(StrEnum):
    """How the chart draws: proportional bars, or lines on a square root or log scale, which show small projects."""

    LINEAR = "linear"
    ROOT = "root"
    LOG = "log"


_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(slots=True)
class Choices:
    """All choices of a history page except its range. ``hosts``, ``projects``, ``apps``: the options, with names.

    There are apps if the volunteer computes for this site's own project.

    ``problems``: sentences about the parts of the address that could not be used.
    """

    show: Show = Show.CREDIT
    by: By = By.PROJECT
    compare: Compare = Compare.NOTHING
    curve: Overlay = Overlay.EACH
    scale: Scale = Scale.LINEAR
    only: HistoryFilter = field(default_factory=HistoryFilter)
    hosts: list[tuple[int, str]] = field(default_factory=list)
    projects: list[tuple[int, str]] = field(default_factory=list)
    apps: list[tuple[int, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def query(self) -> dict[str, object]:
        """Return the parameters of an address that keeps the choices."""
        return {"show": self.show, "by": self.by, **self.filters, **self._drawn}

    @property
    def filters(self) -> dict[str, object]:
        """Return the part of the query that limits whose work is shown."""
        only = self.only
        named = {"host": only.host_id, "project": only.project_id, "processor": only.processor, "app": only.app_id}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def _drawn(self) -> dict[str, object]:
        named = {
            "compare": (self.compare, Compare.NOTHING),
            "curve": (self.curve, Overlay.EACH),
            "scale": (self.scale, Scale.LINEAR),
        }
        return {name: value for name, (value, usual) in named.items() if value is not usual}

    @property
    def is_special(self) -> bool:
        """Whether anything but the quantity and its breakdown was chosen."""
        return bool(self.filters or self._drawn)

    @property
    def shown_part(self) -> str:
        """Describe whose work is shown; empty if it is all of it."""
        parts = [
            dict(self.hosts).get(self.only.host_id or 0, ""),
            dict(self.projects).get(self.only.project_id or 0, ""),
            dict(self.apps).get(self.only.app_id or 0, ""),
            gettext(PROCESSORS[self.only.processor]) if self.only.processor else "",
        ]
        return ", ".join(part for part in parts if part)


def read_choices(user: User, params: Mapping[str, str], period: Period) -> Choices:
    """Read the choices of an address. Two statements, three where there are apps to choose from."""
    problems: list[str] = []
    places = _read_places(user)
    choices = Choices(
        show=_choice(params, "show", Show.CREDIT, problems),
        by=_choice(params, "by", By.PROJECT, problems),
        compare=_choice(params, "compare", Compare.NOTHING, problems),
        curve=_choice(params, "curve", Overlay.EACH, problems),
        scale=_choice(params, "scale", Scale.LINEAR, problems),
        hosts=places.hosts,
        projects=places.projects,
        apps=places.apps,
        problems=problems,
    )
    refusals: list[UnavailablePart] = []
    choices.only = _only(params, places, refusals)
    problems += [f"{refusal.reason} {refusal.instead}" for refusal in refusals]
    if choices.only.processor and (choices.show is Show.JOBS or choices.by is By.PROCESSOR):
        problems.append(
            gettext(
                "Clients do not report which processors each task ran on. Tasks on CPUs and GPUs are shown together."
            )
            if choices.show is Show.JOBS
            else gettext("Only the work of CPUs or only that of GPUs is shown, so it is not split by processor type.")
        )
    if period.first.year < _OLDEST_YEAR and choices._drawn:
        problems.append(gettext("Nothing before %(year)s can be compared.") % {"year": _OLDEST_YEAR})
        choices.compare, choices.curve = Compare.NOTHING, Overlay.EACH
    if choices.curve is Overlay.MEAN and period.step is not Step.DAY:
        problems.append(gettext("The 7-day average is available by day only, so it is not shown."))
        choices.curve = Overlay.EACH
    return choices


class UnavailablePart(NamedTuple):
    """Why a part of the work is unavailable, and what a page shows instead. A download has no substitute."""

    reason: str
    instead: str


def read_filter(user: User, params: Mapping[str, str], problems: list[str]) -> HistoryFilter:
    """Read the filter that an address asks for; two or three statements, none without a filter."""
    if not any(params.get(name) for name in PART_PARAMETERS):
        return HistoryFilter()
    refusals: list[UnavailablePart] = []
    only = _only(params, _read_places(user), refusals)
    problems += [refusal.reason for refusal in refusals]
    return only


@dataclass(frozen=True, slots=True)
class _Places:
    """The possible filters of a volunteer's work, as numbers and names; ``own``: the number of this site's project."""

    hosts: list[tuple[int, str]]
    projects: list[tuple[int, str]]
    apps: list[tuple[int, str]]
    own: int | None


def _read_places(user: User) -> _Places:
    hosts = Host.objects.filter(owner=user, merged_into=None).only("pk", "given_name", "domain_name")
    mine = HostProject.objects.filter(host__owner=user).values("project_id")
    projects = Project.objects.filter(pk__in=mine).order_by("name").values_list("pk", "name", "is_own")
    places = [(pk, name) for pk, name, _ in projects]
    own = next((pk for pk, _, is_own in projects if is_own and "project" in settings.ROOMS), None)
    names = sorted(((host.pk, host.name) for host in hosts), key=lambda pair: pair[1].casefold())
    return _Places(names, places, [] if own is None else read_apps(), own)


def _only(params: Mapping[str, str], places: _Places, refusals: list[UnavailablePart]) -> HistoryFilter:
    host = _number(params, "host", places.hosts, refusals)
    project = _number(params, "project", places.projects, refusals)
    app = _number(params, "app", places.apps, refusals)
    if app is not None:
        if project not in (None, places.own):
            refusals.append(
                UnavailablePart(
                    gettext("This site’s own project has this app."), gettext("Only that project is shown.")
                )
            )
        project = places.own
    return HistoryFilter(host, project, _processor(params, refusals), app)


def _choice(params: Mapping[str, str], name: str, default: _Choice, problems: list[str]) -> _Choice:
    """Read a choice from the address; for an unknown one return the default, and add a sentence to the page."""
    text = params.get(name, default)
    try:
        return type(default)(text)
    except ValueError:
        text = gettext("“%(value)s” cannot be shown here. “%(default)s” is shown instead.") % {
            "value": text[:20],
            "default": default,
        }
        problems.append(text)
        return default


def _number(
    params: Mapping[str, str], name: str, choices: list[tuple[int, str]], refusals: list[UnavailablePart]
) -> int | None:
    """Return an id from the address if it is among the known ones."""
    text = params.get(name, "").strip()
    if not text:
        return None
    for pk, _ in choices:
        if text == str(pk):
            return pk
    refusals.append(_refusal(name, text))
    return None


def _refusal(name: str, text: str) -> UnavailablePart:
    reason, instead = _REFUSALS[name]
    return UnavailablePart(gettext(reason) % {"value": text[:20]}, gettext(instead))


def _processor(params: Mapping[str, str], refusals: list[UnavailablePart]) -> Processor | None:
    text = params.get("processor", "")
    if not text:
        return None
    try:
        return Processor(text)
    except ValueError:
        refusals.append(_refusal("processor", text))
        return None
