"""Which containers BOINC can use on a computer, and what volunteers' keywords mean for apps: as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from credit.engine.rules import Rules
from portal.wire.hardware import Containers, Distro
from scheduler.engine.choice.containers import usable
from scheduler.engine.choice.keywords import most_liked, score
from scheduler.engine.facts import AppFacts
from scheduler.engine.request import SchedulerRequest

WITH_DOCKER = Distro("Ubuntu", "Ubuntu 24.04", "27.3.1", True)
PLAIN = Distro("Debian", "Debian 12", "", True)
APP = AppFacts(1, "alpine", 1.0, 100, Rules.published(), typical_fpops=1e12)


@pytest.mark.parametrize(
    ("containers", "os_name", "version", "refused", "found"),
    [
        (Containers("27.3.1"), "Linux Debian", "8.2.1", (), {"docker"}),
        (Containers("27.3.1"), "Linux Debian", "8.2.1", ("docker",), set()),
        (Containers(), "Linux Debian", "8.2.1", (), set()),
        (Containers("27.3.1"), "Darwin", "8.2.5", (), set()),
        (Containers("27.3.1"), "Darwin", "8.2.6", (), {"docker"}),
        (Containers("27.3.1"), "Microsoft Windows 11", "8.2.1", (), set()),
        (Containers("", (WITH_DOCKER,)), "Microsoft Windows 11", "8.2.1", (), {"docker", "wsl"}),
        (Containers("", (PLAIN,)), "Microsoft Windows 11", "8.2.1", (), {"wsl"}),
        (Containers("", (WITH_DOCKER,)), "Microsoft Windows 11", "8.2.1", ("docker",), {"wsl"}),
        (Containers("", (WITH_DOCKER,)), "Microsoft Windows 11", "8.2.1", ("wsl",), set()),
        (Containers("", (replace(WITH_DOCKER, is_allowed=False),)), "Microsoft Windows 11", "8.2.1", (), set()),
    ],
)
def test_docker_and_wsl_are_used_where_they_are_and_where_boinc_may(
    containers: Containers, os_name: str, version: str, refused: tuple[str, ...], found: set[str]
) -> None:
    assert usable(containers, os_name, version, refused) == found


@pytest.mark.parametrize(
    ("keywords", "yes", "no", "found"),
    [
        ({1, 2}, {2}, set(), 1),
        ({1, 2}, {1, 2, 9}, set(), 2),
        ({1, 2}, set(), {2}, None),
        ({1, 2}, {1}, {2}, None),
        ({1, 2}, set(), {3}, 0),
        # As BOINC's server has it, which looks for a yes first
        ({1}, {1}, {1}, 1),
        (set(), {1}, {2}, 0),
    ],
)
def test_a_no_keeps_an_app_away_and_each_yes_counts(
    keywords: set[int], yes: set[int], no: set[int], found: int | None
) -> None:
    app = replace(APP, keywords=frozenset(keywords))
    assert score(app, SchedulerRequest(keywords_yes=frozenset(yes), keywords_no=frozenset(no))) == found


def test_the_most_liked_apps_with_jobs_come_first() -> None:
    other, idle = replace(APP, id=2), replace(APP, id=3, typical_fpops=None)
    assert most_liked([APP, other, idle], {2: 1, 3: 5}) == [other]
    assert most_liked([APP, other], {}) == [APP, other]
    assert most_liked([idle], {3: 5}) == [idle]
    assert most_liked([], {}) == []
