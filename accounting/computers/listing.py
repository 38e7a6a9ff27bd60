"""The list of computers as its address defines it: which of a volunteer's computers it shows, and in which order.

Every address gives a list: whatever cannot be shown is left out, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from django.utils.translation import gettext as _

from accounting.computers.attention import CONCERN_NAMES, Concern
from portal.models import Host
from portal.web.parameters import unknown_parameters

MAX_TEXT_CHARS: Final = 100
FILTERS: Final = ("q", "status", "group", "problem")
"""The parameters that select the computers of a list."""
_PARAMETERS: Final = (*FILTERS, "sort", "page", "retired_page")
_URGENCY: Final = {concern: place for place, concern in enumerate(Concern)}
_Choice = TypeVar("_Choice", bound=StrEnum)


class Status(StrEnum):
    """Which computers by their state; by default those in use, with the retired ones folded below."""

    USED = "used"
    ACTIVE = "active"
    SILENT = "silent"
    TROUBLE = "trouble"
    RETIRED = "retired"


class Sort(StrEnum):
    """The column by which the list is ordered, or what needs attention first."""

    PROBLEMS = "problems"
    CONTACT = "contact"
    NAME = "name"
    SYSTEM = "system"
    RECENT = "recent"
    TOTAL = "total"


def _plain(name: str) -> str:
    """Strip the maker's marks from a product's name."""
    return " ".join(name.replace("(R)", " ").replace("(TM)", " ").split())


@dataclass(frozen=True, slots=True)
class HostLine:
    """A computer in the list, with micro-credits of the last 24 hours and of all time."""

    host: Host
    recent_ec: int
    total_ec: int
    is_active: bool
    concerns: list[Concern]

    @property
    def urgency(self) -> int:
        """The rank of the most urgent concern; past the end for a computer without any."""
        return min(map(_URGENCY.__getitem__, self.concerns), default=len(_URGENCY))

    @property
    def concern_names(self) -> list[str]:
        return [_(CONCERN_NAMES[concern]) for concern in self.concerns]

    @property
    def processor(self) -> str:
        """The processor's name without marks and anything in brackets."""
        return _plain(self.host.p_model.split("[")[0])

    @property
    def gpus(self) -> list[str]:
        """The GPUs, such as "2 × NVIDIA GeForce RTX 3070"."""
        return [
            (f"{device['count']} × " if device.get("count", 1) > 1 else "")
            + _plain(str(device.get("name") or device.get("type") or "unknown"))
            for device in self.host.coprocs
        ]


# What most people want first in each column: the latest or the largest, but names from A.
_DESCENDING: Final = frozenset({Sort.CONTACT, Sort.RECENT, Sort.TOTAL})
_KEYS: Final[dict[Sort, Callable[[HostLine], Any]]] = {
    Sort.PROBLEMS: lambda line: line.urgency,
    Sort.CONTACT: lambda line: line.host.last_contact_at,
    Sort.NAME: lambda line: line.host.name.casefold(),
    Sort.SYSTEM: lambda line: line.host.os_name.casefold(),
    Sort.RECENT: lambda line: line.recent_ec,
    Sort.TOTAL: lambda line: line.total_ec,
}


@dataclass(frozen=True, slots=True)
class ListFilter:
    """A list as its address defines it. ``is_turned``: in the reverse of the column's usual order."""

    text: str = ""
    status: Status = Status.USED
    group: str = ""
    concern: Concern | None = None
    sort: Sort = Sort.PROBLEMS
    is_turned: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def query(self) -> dict[str, str]:
        """Return the parameters of an address for the same list."""
        return {**self.filters, **self.order}

    @property
    def filters(self) -> dict[str, str]:
        """Return the part of the query that selects computers; empty for all those in use."""
        status = "" if self.status is Status.USED else str(self.status)
        named = {"q": self.text, "status": status, "group": self.group, "problem": self.concern or ""}
        return {name: value for name, value in named.items() if value}

    @property
    def order(self) -> dict[str, str]:
        if self.sort is Sort.PROBLEMS and not self.is_turned:
            return {}
        return {"sort": f"{'-' if self.is_turned else ''}{self.sort}"}

    @property
    def direction(self) -> str:
        """Return the direction of the sorted column, as ARIA names it."""
        return "descending" if (self.sort in _DESCENDING) != self.is_turned else "ascending"

    def sorted_by(self, sort: Sort) -> dict[str, str]:
        """Return the query for the same list sorted by this column; reversed if it already is."""
        turned = sort is self.sort and not self.is_turned
        return {**self.filters, "sort": f"{'-' if turned else ''}{sort}"}

    def choose(self, lines: Iterable[HostLine]) -> list[HostLine]:
        """Select and order the matching lines; latest contact first among equals."""
        latest_first = sorted(lines, key=_KEYS[Sort.CONTACT], reverse=True)
        descending = (self.sort in _DESCENDING) != self.is_turned
        return sorted(filter(self._has, latest_first), key=_KEYS[self.sort], reverse=descending)

    def _has(self, line: HostLine) -> bool:
        host = line.host
        if self.group and self.group not in host.groups:
            return False
        if self.concern is not None and self.concern not in line.concerns:
            return False
        if self.text and self.text.casefold() not in " ".join([host.name, host.domain_name, *host.groups]).casefold():
            return False
        return {
            Status.ACTIVE: line.is_active,
            Status.SILENT: not line.is_active,
            Status.TROUBLE: bool(line.concerns),
        }.get(self.status, True)


def read_filter(params: Mapping[str, str], groups: Iterable[str]) -> ListFilter:
    """Read the list that an address asks for; ``groups``: the existing groups."""
    problems = unknown_parameters(params, _PARAMETERS)
    text = params.get("q", "").strip()
    if len(text) > MAX_TEXT_CHARS:
        problems.append(
            _("A search has at most %(most)s characters. Only the first ones are used.") % {"most": MAX_TEXT_CHARS}
        )
    group = params.get("group", "")
    if group and group not in groups:
        problems.append(_("None of your computers is in the group “%(group)s”. All are shown.") % {"group": group[:30]})
        group = ""
    sort, is_turned = params.get("sort") or Sort.PROBLEMS, False
    if sort.removeprefix("-") in tuple(Sort):
        sort, is_turned = sort.removeprefix("-"), sort.startswith("-")
    return ListFilter(
        text[:MAX_TEXT_CHARS],
        _choice(params.get("status") or Status.USED, Status.USED, problems),
        group,
        _choice(params["problem"], Concern.SILENT, problems) if params.get("problem") else None,
        _choice(sort, Sort.PROBLEMS, problems),
        is_turned,
        problems,
    )


def _choice(text: str, default: _Choice, problems: list[str]) -> _Choice:
    try:
        return type(default)(text)
    except ValueError:
        problems.append(
            _("“%(text)s” is not available in this list. Available: %(known)s.")
            % {"text": text[:20], "known": ", ".join(type(default))}
        )
        return default
