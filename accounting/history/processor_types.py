"""Determine which kind of GPU did a computer's GPU work, where that can be known.

Clients report GPU work as one sum for each project. A computer that last described one kind of GPU did its work on that
kind. With several kinds, the project's programs decide, if they are for one of these kinds only. Otherwise the kind
stays unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Case, IntegerField, Value, When
from django.utils.translation import gettext

from accounting.engine.choice.facts import CPU, device_types
from accounting.history.sums import AppDay, Key
from accounting.models import ProjectVersion, processor_name
from portal.models import Host, User

UNKNOWN: Final = 0
MIXED: Final = -1
# The data colour of each kind, on every page.
_COLOURS: Final = {"NVIDIA": 1, "ATI": 2, "intel_gpu": 3, "apple_gpu": 4}
_OTHER_COLOUR: Final = 5


@dataclass(frozen=True, slots=True)
class GpuKinds:
    """``key``: a day's kind of GPU as a number; ``names``: name and data colour of each number."""

    key: Key
    names: dict[int, tuple[str, int]]


def read_gpu_kinds(user: User) -> GpuKinds:
    """Read the kinds of the user's GPUs; one statement, and one more if a computer has several kinds."""
    types = {pk: device_types(coprocs) for pk, coprocs in Host.objects.filter(owner=user).values_list("pk", "coprocs")}
    all_kinds = list(dict.fromkeys(type_ for kinds in types.values() for type_ in kinds))
    numbers = {type_: number for number, type_ in enumerate(all_kinds, 1)}
    cases: list[When] = []
    of_hosts: dict[int, int] = {}
    of_places: dict[tuple[int, int], int] = {}
    several = {pk: kinds for pk, kinds in types.items() if len(kinds) > 1}
    programs = _programs() if several else {}
    for pk, kinds in several.items():
        for type_ in kinds:
            if projects := [id_ for id_, served in programs.items() if set(kinds) & served == {type_}]:
                cases.append(When(host_id=pk, project_id__in=projects, then=Value(numbers[type_])))
                of_places |= {(pk, id_): numbers[type_] for id_ in projects}
    for type_, number in numbers.items():
        if hosts := [pk for pk, kinds in types.items() if kinds == (type_,)]:
            cases.append(When(host_id__in=hosts, then=Value(number)))
            of_hosts |= dict.fromkeys(hosts, number)
    if several:
        cases.append(When(host_id__in=list(several), then=Value(MIXED)))
        of_hosts |= dict.fromkeys(several, MIXED)

    def number_of(row: AppDay) -> int:
        return of_places.get((row.host_id, row.project_id)) or of_hosts.get(row.host_id, UNKNOWN)

    return GpuKinds(
        Key(Case(*cases, default=Value(UNKNOWN), output_field=IntegerField()), number_of),
        {
            UNKNOWN: (gettext("GPU"), 7),
            MIXED: (gettext("GPUs of several kinds"), 6),
            **{
                number: (processor_name(type_), _COLOURS.get(type_, _OTHER_COLOUR)) for type_, number in numbers.items()
            },
        },
    )


def _programs() -> dict[int, set[str]]:
    """Return the types of GPUs that each project has programs for; a project without any is not listed."""
    served: dict[int, set[str]] = {}
    for project_id, type_ in ProjectVersion.objects.exclude(processor_type=CPU).values_list(
        "project_id", "processor_type"
    ):
        served.setdefault(project_id, set()).add(type_)
    return served
