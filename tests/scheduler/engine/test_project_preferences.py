"""Preferences for the project: their limits, how they are stored, and what clients get."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from scheduler.engine.project_preferences import ProjectPreferences, bounded, elements, from_stored


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ProjectPreferences()),
        ({"max_jobs": 1e300, "max_cpus": inf}, ProjectPreferences(max_jobs=10_000, max_cpus=1_024)),
        ({"max_jobs": 0, "max_cpus": -5, "max_threads": nan}, ProjectPreferences()),
        ({"max_threads": 2.9}, ProjectPreferences(max_threads=2)),
        ({"refused_types": ["ATI", "TPU", "CPU"]}, ProjectPreferences(refused_types=("CPU", "ATI"))),
        ({"apps": [7, 3, 7]}, ProjectPreferences(apps=(3, 7))),
        ({"resource_share": nan}, ProjectPreferences()),
        ({"resource_share": inf}, ProjectPreferences(resource_share=1e6)),
        ({"resource_share": -1}, ProjectPreferences(resource_share=0)),
    ],
)
def test_preferences_stay_within_their_limits_and_are_stored_as_they_are(
    given: dict[str, Any], expected: ProjectPreferences
) -> None:
    assert bounded(**given) == expected
    assert from_stored(expected.stored()) == expected


def test_what_was_never_chosen_is_not_stored() -> None:
    assert ProjectPreferences().stored() == {}
    assert ProjectPreferences(apps=(3,), tests=False).stored() == {"apps": [3], "tests": False}


def test_clients_are_told_with_the_elements_of_boincs_servers() -> None:
    chosen = bounded(
        apps=[3, 7], other_apps=False, max_jobs=4, max_cpus=8, max_threads=2, tests=False, refused_types=["NVIDIA"]
    )
    assert elements(chosen).split("\n") == [
        "<no_cuda>1</no_cuda>",
        "<project_specific>",
        "<app_id>3</app_id>",
        "<app_id>7</app_id>",
        "<allow_non_preferred_apps>0</allow_non_preferred_apps>",
        "<max_jobs>4</max_jobs>",
        "<max_cpus>8</max_cpus>",
        "<max_threads>2</max_threads>",
        "<allow_beta_work>0</allow_beta_work>",
        "</project_specific>",
    ]
