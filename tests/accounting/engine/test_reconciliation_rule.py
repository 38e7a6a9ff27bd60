"""What estimated and granted credit count as, with the sums worked out by hand."""

from __future__ import annotations

import datetime as dt

from accounting.engine.reconciliation import (
    LEAST_ESTIMATE,
    DayStand,
    SettledCredit,
    expected_range,
    open_days,
    ratio,
    stand,
)

TODAY = 20


def day(number: int) -> dt.date:
    """The so-manieth day of the example."""
    return dt.date(2026, 1, 1) + dt.timedelta(days=number - 1)


def days(amounts: dict[int, int]) -> dict[dt.date, int]:
    return {day(number): amount for number, amount in amounts.items()}


def seen(on: int, read: int = TODAY, estimated: int = 0, granted: int = 0, *, is_whole: bool = False) -> SettledCredit:
    return SettledCredit(day(on), day(read), estimated, granted, is_whole)


def waiting(seen: SettledCredit, estimates: dict[int, int], grants: dict[int, int], today: int = TODAY) -> list[int]:
    return [open_day.provisional for open_day in open_days(seen, days(estimates), days(grants), day(today)).values()]


def test_without_statistics_the_estimate_is_the_total() -> None:
    stands = stand(None, days({1: 10, 2: 20}), {}, day(TODAY))
    assert stands == {day(1): DayStand(estimated=10), day(2): DayStand(estimated=20)}


def test_up_to_the_first_statistics_the_estimate_stays_and_afterwards_grants_count() -> None:
    computer = seen(2, estimated=30, granted=25)
    assert stand(computer, days({1: 10, 2: 20, 3: 30}), days({3: 25}), day(TODAY)) == {
        day(1): DayStand(estimated=10),
        day(2): DayStand(estimated=20),
        # 30 estimated, 25 granted: 5 are left
        day(3): DayStand(granted=25, provisional=5),
    }
    assert computer.settled == 55  # 10 + 20 + 25


def test_grants_that_have_all_work_in_them_first_confirm_what_the_total_had_already() -> None:
    # 30 were estimated until the statistics first had the computer, with 12 that it was granted for them.
    computer = seen(2, estimated=30, granted=12, is_whole=True)
    assert computer.settled == 30
    # 12 pay 10 of day 1 and 2 of day 2. The other 18 of day 2 are in the total already; day 3 is not.
    assert stand(computer, days({1: 10, 2: 20, 3: 5}), days({2: 12}), day(TODAY)) == {
        day(1): DayStand(),
        day(2): DayStand(granted=12, estimated=18),
        day(3): DayStand(provisional=5),
    }
    assert seen(2, estimated=30, granted=31, is_whole=True).settled == 31


def test_a_grant_pays_the_oldest_estimate_first() -> None:
    # 15 pay 10 of day 2 and 5 of day 3.
    assert waiting(seen(1), {2: 10, 3: 10, 4: 10}, {5: 15}) == [0, 5, 10, 0]


def test_a_grant_pays_no_estimate_of_a_later_day() -> None:
    assert waiting(seen(1), {2: 10, 3: 10}, {2: 100}) == [0, 10]


def test_a_day_closes_thirty_days_before_the_last_statistics() -> None:
    assert seen(1, read=100).closed_through(day(101)) == day(70)
    assert seen(90, read=100).closed_through(day(101)) == day(90)  # before, everything counts as estimated


def test_without_statistics_for_long_a_day_closes_after_four_hundred_days() -> None:
    assert seen(1, read=10).closed_through(day(300)) == day(1)
    assert seen(1, read=10).closed_through(day(500)) == day(100)


def test_a_closed_day_is_neither_provisional_nor_paid() -> None:
    # Day 2 is closed: its 6 that were not granted are refused, and the 4 of day 39 pay day 39.
    assert waiting(seen(1, read=38), {2: 10, 39: 10}, {3: 4, 39: 4}, today=40) == [6]


def test_sums_of_days_add_up_kind_by_kind() -> None:
    assert DayStand(1, 2, 3).plus(DayStand(10, 20, 30)) == DayStand(11, 22, 33)


def test_the_expected_ratio_is_within_a_factor_of_four_of_the_projects_median() -> None:
    assert expected_range(0.6, 8) == (0.15, 2.4)


def test_few_computers_or_a_project_that_grants_nothing_have_no_median_to_be_compared_with() -> None:
    assert expected_range(0.6, 7) == expected_range(None, 0) == expected_range(0.0, 100) == (0.05, 20.0)


def test_little_credit_has_no_ratio() -> None:
    assert ratio(500_000_000, LEAST_ESTIMATE) == 0.5
    assert ratio(500_000_000, LEAST_ESTIMATE - 1) is None
