"""Decide how much more or less than its share a project is offered, so that it gets its share of the processing. Pure.

Once a day each project's boost moves a little towards the value that would have given it its share of the last week. A
week evens out the days; the daily step is small, because the week still includes days before the last steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, log
from statistics import median
from typing import Final, NamedTuple

WEEK_DAYS: Final = 7
# Part of the gap, in logarithms, that a day closes. A mean of seven days lags by half of them; gain times lag is about
# 1, which settles within a month and hardly oscillates (it would oscillate for ever above pi / 2).
GAIN: Final = 0.3
LARGEST_STEP: Final = log(4)
LARGEST_BOOST: Final = log(8)
# No computer counts for more than this many times the median.
MEDIANS: Final = 20.0


class Week(NamedTuple):
    """What one computer did for one project in the last week: credit, and over how many days (above 0 to 7)."""

    host_id: int
    project_id: int
    credit: float
    days: float


class ProjectBalance(NamedTuple):
    """A project's share of the processing: its target, its share of the last week, and its current boost."""

    target: float
    got: float
    boost: float


def sum_up(weeks: Iterable[Week]) -> dict[int, float]:
    """Sum up a week's credit by project, from computers that are still there.

    One that arrived during the week counts as if it had done the same all week long; none counts for more than 20 times
    the median, so that a false claim starves no project.
    """
    hosts: dict[int, dict[int, float]] = {}
    for week in weeks:
        projects = hosts.setdefault(week.host_id, {})
        whole = week.credit * WEEK_DAYS / min(WEEK_DAYS, max(1.0, week.days))
        projects[week.project_id] = projects.get(week.project_id, 0.0) + whole
    totals = {host_id: total for host_id, projects in hosts.items() if (total := sum(projects.values())) > 0}
    if not totals:
        return {}
    bound = MEDIANS * median(totals.values())
    sums: dict[int, float] = {}
    for host_id, total in totals.items():
        part = min(1.0, bound / total)
        for project_id, credit in hosts[host_id].items():
            sums[project_id] = sums.get(project_id, 0.0) + part * credit
    return sums


def rebalance(
    shares: Mapping[int, float], credit: Mapping[int, float], boosts: Mapping[int, float]
) -> dict[int, ProjectBalance]:
    """Compute where each project stands for one kind of processor, and its next boost.

    ``shares``: the operator's, of the projects that can have work for it. ``credit``: what they got in the last week.
    ``boosts``: the current ones (default 1). Boosts are relative; their mean, weighted by target, is kept at 1.
    """
    able = {id_: share for id_, share in shares.items() if share > 0}
    all_shares = sum(able.values())
    all_credit = sum(credit.get(id_, 0.0) for id_ in able)
    if all_credit <= 0:
        return {id_: ProjectBalance(share / all_shares, 0.0, boosts.get(id_, 1.0)) for id_, share in able.items()}
    balances: dict[int, tuple[float, float, float]] = {}
    for id_, share in able.items():
        target, got = share / all_shares, credit.get(id_, 0.0) / all_credit
        gap = log(target / got) if got > 0 else LARGEST_STEP
        step = GAIN * max(-LARGEST_STEP, min(LARGEST_STEP, gap))
        balances[id_] = target, got, log(boosts.get(id_, 1.0)) + step
    middle = sum(target * level for target, _, level in balances.values())
    return {
        id_: ProjectBalance(target, got, exp(max(-LARGEST_BOOST, min(LARGEST_BOOST, level - middle))))
        for id_, (target, got, level) in balances.items()
    }
