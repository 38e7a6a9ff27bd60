"""What estimated and granted credit count as, with the sums worked out by hand."""

from __future__ import annotations

import datetime as dt

from accounting.engine.reconciliation import (
    LEAST_ESTIMATE,
    NOTHING,
    DayStand,
    closed_through,
    expected_range,
    ratio,
    stand,
)


def day(number: int) -> dt.date:
    """The so-manieth day of the example."""
    return dt.date(2026, 1, 1) + dt.timedelta(days=number - 1)


def days(amounts: dict[int, int]) -> dict[dt.date, int]:
    return {day(number): amount for number, amount in amounts.items()}


def test_without_statistics_the_estimate_is_the_total() -> None:
    found = stand(days({1: 10, 2: 20}), {}, None, None)
    assert found == {day(1): DayStand(estimated=10), day(2): DayStand(estimated=20)}


def test_up_to_the_first_statistics_the_estimate_stays_and_afterwards_grants_count() -> None:
    found = stand(days({1: 10, 2: 20, 3: 30}), days({3: 25}), since=day(2), closed=day(2))
    assert found == {
        day(1): DayStand(estimated=10),
        day(2): DayStand(estimated=20),
        # 30 estimated, 25 granted: 5 are left
        day(3): DayStand(granted=25, provisional=5),
    }


def test_a_grant_pays_the_oldest_estimate_first() -> None:
    found = stand(days({2: 10, 3: 10, 4: 10}), days({5: 15}), since=day(1), closed=day(1))
    # 15 pay 10 of day 2 and 5 of day 3.
    assert [found[day(number)].provisional for number in (2, 3, 4, 5)] == [0, 5, 10, 0]


def test_a_grant_pays_no_estimate_of_a_later_day() -> None:
    found = stand(days({2: 10, 3: 10}), days({2: 100}), since=day(1), closed=day(1))
    assert [found[day(number)].provisional for number in (2, 3)] == [0, 10]


def test_days_that_are_closed_are_neither_provisional_nor_paid() -> None:
    found = stand(days({2: 10, 9: 10}), days({3: 4, 9: 4}), since=day(1), closed=day(8))
    # Day 2 is closed: its 6 that were not granted are refused, and the 4 of day 9 pay day 9.
    assert [found[day(number)].provisional for number in (2, 3, 9)] == [0, 0, 6]
    assert [found[day(number)].settled for number in (2, 3, 9)] == [0, 4, 4]


def test_a_day_closes_thirty_days_before_the_last_statistics() -> None:
    assert closed_through(day(1), day(100), day(101)) == day(70)
    assert closed_through(day(90), day(100), day(101)) == day(90)  # before, everything counts as estimated


def test_without_statistics_for_long_a_day_closes_after_four_hundred_days() -> None:
    assert closed_through(day(1), day(10), day(300)) == day(1)
    assert closed_through(day(1), day(10), day(500)) == day(100)


def test_sums_of_days_add_up_kind_by_kind() -> None:
    assert DayStand(1, 2, 3).plus(DayStand(10, 20, 30)).plus(NOTHING) == DayStand(11, 22, 33)


def test_the_expected_ratio_is_within_a_factor_of_four_of_the_projects_median() -> None:
    assert expected_range(0.6, 8) == (0.15, 2.4)


def test_few_computers_or_a_project_that_grants_nothing_have_no_median_to_be_compared_with() -> None:
    assert expected_range(0.6, 7) == expected_range(None, 0) == expected_range(0.0, 100) == (0.05, 20.0)


def test_little_credit_has_no_ratio() -> None:
    assert ratio(500_000_000, LEAST_ESTIMATE) == 0.5
    assert ratio(500_000_000, LEAST_ESTIMATE - 1) is None
