"""A volunteer's preferences for this project, at all places or at one of them. Pure.

The elements are those of BOINC's servers, so that programs find them where they expect them: in <project_specific>,
which clients pass on to them (init_data.xml).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import isnan
from typing import Any, Final

from scheduler.engine.request import CPU, GPU_TYPES

MAX_JOBS: Final = 10_000
MAX_CPUS: Final = 1_024
MAX_SHARE: Final = 1_000_000
MAX_APPS: Final = 500
TYPES: Final = (CPU, *GPU_TYPES)
VENUES: Final = ("", "home", "work", "school")
"""The default place, for computers whose own has nothing saved, and the places that may differ."""
REFUSING_TAGS: Final = {
    CPU: "no_cpu",
    "NVIDIA": "no_cuda",
    "ATI": "no_ati",
    "intel_gpu": "no_intel_gpu",
    "apple_gpu": "no_apple_gpu",
}


@dataclass(frozen=True, slots=True)
class ProjectPreferences:
    """A volunteer's preferences for this project. None: unlimited, or no limit set here.

    ``apps``: the chosen ones; none means all. ``other_apps``: also others, when the chosen ones have no jobs.
    ``max_jobs``: at once on a computer; ``max_cpus``: the processors that count for this project; ``max_threads``: of
    one job. ``tests``: include versions under test, if the volunteer agreed to test. ``resource_share``: for computers
    without an account manager, which has its own.
    """

    apps: tuple[int, ...] = ()
    other_apps: bool = True
    max_jobs: int | None = None
    max_cpus: int | None = None
    max_threads: int | None = None
    tests: bool = True
    refused_types: tuple[str, ...] = ()
    resource_share: float | None = None

    def wants_app(self, app_id: int) -> bool:
        return not self.apps or app_id in self.apps

    def may_have_app(self, app_id: int) -> bool:
        return self.other_apps or self.wants_app(app_id)

    def stored(self) -> dict[str, Any]:
        """Return the preferences as JSON, without defaults."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, (value, default) in values.items()
            if value != default
        }


NOTHING_CHOSEN: Final = ProjectPreferences()


def bounded(
    *,
    apps: Iterable[int] = (),
    other_apps: bool = True,
    max_jobs: float | None = None,
    max_cpus: float | None = None,
    max_threads: float | None = None,
    tests: bool = True,
    refused_types: Iterable[str] = (),
    resource_share: float | None = None,
) -> ProjectPreferences:
    """Build preferences from elsewhere, within the limits; a limit of 0 or less means none."""
    refused = set(refused_types)
    return ProjectPreferences(
        apps=tuple(sorted(set(apps))[:MAX_APPS]),
        other_apps=other_apps,
        max_jobs=_limit(max_jobs, MAX_JOBS),
        max_cpus=_limit(max_cpus, MAX_CPUS),
        max_threads=_limit(max_threads, MAX_CPUS),
        tests=tests,
        refused_types=tuple(type_ for type_ in TYPES if type_ in refused),
        resource_share=_share(resource_share),
    )


def _share(number: float | None) -> float | None:
    return None if number is None or isnan(number) else min(max(number, 0.0), float(MAX_SHARE))


def _limit(number: float | None, most: int) -> int | None:
    return int(min(number, most)) if number is not None and number >= 1 else None


def from_stored(stored: Mapping[str, Any]) -> ProjectPreferences:
    """Parse the result of `ProjectPreferences.stored`."""
    return bounded(**stored)


def elements(preferences: ProjectPreferences) -> str:
    """Return the content of <project_preferences>, an element on each line, as clients read it."""
    share = preferences.resource_share
    refused = [f"<{REFUSING_TAGS[type_]}>1</{REFUSING_TAGS[type_]}>" for type_ in preferences.refused_types]
    limits = {
        "max_jobs": preferences.max_jobs,
        "max_cpus": preferences.max_cpus,
        "max_threads": preferences.max_threads,
    }
    lines = [
        *([] if share is None else [f"<resource_share>{share:g}</resource_share>"]),
        *refused,
        "<project_specific>",
        *(f"<app_id>{app_id}</app_id>" for app_id in preferences.apps),
        f"<allow_non_preferred_apps>{int(preferences.other_apps)}</allow_non_preferred_apps>",
        *(f"<{tag}>{number}</{tag}>" for tag, number in limits.items() if number is not None),
        *([] if preferences.tests else ["<allow_beta_work>0</allow_beta_work>"]),
        "</project_specific>",
    ]
    return "\n".join(lines)
