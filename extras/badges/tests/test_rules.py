"""When a badge is earned: by days and by months, in any order."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.engine.amounts import NO_WORK, Totals
from extras.badges.rules import BadgeKind, BadgeRule, ProjectSubjects, WorkStep, reached_in, reached_on

HOUR = 3600 * 1_000_000
FIRST = dt.date(2023, 12, 1)
ASTRONOMY, BIOLOGY = 1, 9
SUBJECTS = {
    1: ProjectSubjects(frozenset({ASTRONOMY, 3}), frozenset({ASTRONOMY})),
    2: ProjectSubjects(frozenset({BIOLOGY}), frozenset({BIOLOGY})),
}


def day(text: str, project: int = 1, credit: int = 0, **more: int) -> WorkStep:
    work = NO_WORK._replace(cpu_ec=credit * 1_000_000, **more)
    return WorkStep(dt.date.fromisoformat(text), int(credit > 0), {project: work})


def test_credit_is_reached_on_the_day_that_completes_it() -> None:
    days = [day("2026-01-01", credit=60), day("2026-01-03", credit=39), day("2026-01-04", credit=1)]
    # 60 + 39 = 99, and 1 more is 100.
    assert reached_in(BadgeRule(BadgeKind.CREDIT, 100), days, {}) == dt.date(2026, 1, 4)
    assert reached_in(BadgeRule(BadgeKind.CREDIT, 101), days, {}) is None


def test_years_are_calendar_years_with_credit() -> None:
    days = [day("2024-12-31", credit=1), day("2025-06-01", njobs_success=1), day("2026-01-05", credit=1)]
    assert reached_in(BadgeRule(BadgeKind.YEARS, 2), days, {}) == dt.date(2026, 1, 5)


def test_hours_for_a_subject_are_those_of_its_projects_alone() -> None:
    days = [day("2026-01-01", project=2, cpu_time=9 * HOUR), day("2026-01-02", cpu_time=HOUR, gpu_time=HOUR)]
    assert reached_in(BadgeRule(BadgeKind.SUBJECT_HOURS, 2, ASTRONOMY), days, SUBJECTS) == dt.date(2026, 1, 2)
    assert reached_in(BadgeRule(BadgeKind.SUBJECT_HOURS, 3, ASTRONOMY), days, SUBJECTS) is None


def test_fields_of_science_count_once_each_and_projects_about_nothing_not_at_all() -> None:
    days = [day("2026-01-01", credit=1), day("2026-01-02", credit=1), day("2026-01-03", project=7, credit=1)]
    rule = BadgeRule(BadgeKind.SUBJECTS, 2)
    assert reached_in(rule, days, SUBJECTS) is None
    assert reached_in(rule, [*days, day("2026-01-04", project=2, credit=1)], SUBJECTS) == dt.date(2026, 1, 4)


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        (BadgeKind.TASKS, {"njobs_success": 1}),
        (BadgeKind.GPU_HOURS, {"gpu_time": HOUR}),
        (BadgeKind.DAYS, {"cpu_ec": 1}),
    ],
)
def test_the_first_of_its_kind_is_dated(kind: BadgeKind, work: dict[str, int]) -> None:
    empty = WorkStep(dt.date(2026, 1, 1), 0, {1: NO_WORK})
    first = WorkStep(dt.date(2026, 1, 2), int("cpu_ec" in work), {1: NO_WORK._replace(**work)})
    assert reached_in(BadgeRule(kind, 1), [empty, first], {}) == dt.date(2026, 1, 2)


works = st.builds(
    Totals,
    st.sampled_from([0, 1, 40_000_000]),
    st.sampled_from([0, 25_000_000]),
    st.sampled_from([0, HOUR]),
    st.sampled_from([0, HOUR // 2]),
    st.integers(0, 3),
    st.integers(0, 1),
)
all_days = st.dictionaries(
    st.integers(0, 450).map(lambda number: FIRST + dt.timedelta(days=number)),
    st.dictionaries(st.sampled_from([1, 2, 7]), works, min_size=1),
    max_size=40,
).map(lambda found: [_step(start, theirs) for start, theirs in found.items()])
rules = st.builds(BadgeRule, st.sampled_from(list(BadgeKind)), st.integers(1, 60), st.just(ASTRONOMY))


def _step(start: dt.date, theirs: dict[int, Totals]) -> WorkStep:
    return WorkStep(start, int(any(work.credit for work in theirs.values())), theirs)


def _by_month(days: list[WorkStep]) -> list[WorkStep]:
    sums: dict[dt.date, dict[int, Totals]] = defaultdict(dict)
    active: dict[dt.date, int] = defaultdict(int)
    for step in days:
        month = step.start.replace(day=1)
        active[month] += step.active_days
        for project, work in step.by_project.items():
            sums[month][project] = sums[month].get(project, NO_WORK).plus(work)
    return [WorkStep(month, active[month], theirs) for month, theirs in sums.items()]


@given(all_days, rules, st.randoms(use_true_random=False))
def test_the_order_of_days_changes_nothing(days: list[WorkStep], rule: BadgeRule, random: Random) -> None:
    shuffled = list(days)
    random.shuffle(shuffled)
    assert reached_in(rule, shuffled, SUBJECTS) == reached_in(rule, days, SUBJECTS)


@given(all_days, rules)
def test_sums_of_months_and_the_days_of_one_say_the_same_as_all_days(days: list[WorkStep], rule: BadgeRule) -> None:
    months = _by_month(days)
    month = reached_in(rule, months, SUBJECTS)
    by_days = reached_in(rule, days, SUBJECTS)
    if month is None:
        assert by_days is None
    else:
        theirs = [step for step in days if step.start.replace(day=1) == month]
        assert reached_on(rule, months, month, theirs, SUBJECTS) == by_days


@given(all_days, all_days, rules)
def test_later_days_never_take_a_badge_away_or_date_it_later(
    days: list[WorkStep], later: list[WorkStep], rule: BadgeRule
) -> None:
    before = reached_in(rule, days, SUBJECTS)
    moved = [WorkStep(step.start + dt.timedelta(days=500), step.active_days, step.by_project) for step in later]
    after = reached_in(rule, [*days, *moved], SUBJECTS)
    assert before is None or after == before
