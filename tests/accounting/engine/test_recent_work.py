"""The work of the last 24 hours, from days and the time of the last report."""

from __future__ import annotations

import datetime as dt

import pytest

from accounting.engine.recent_work import ReportedDays, Work, last_24_hours

MIDNIGHT = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("now", "last", "yesterday", "today", "reported", "to_come"),
    [
        # At 6:00: of yesterday's 24 hours the last 18 count, 240 x 18 / 24, and all of today.
        (6.0, 6.0, 240, 60, 180 + 60, 0),
        # Last report at 2:00: 180 + 20 in 20 hours; four more at that rate are 40.
        (6.0, 2.0, 240, 20, 200, 40),
        # Nothing of today yet: yesterday's 220 are of 22 hours, of which 21 are within the last 24; 10 an hour.
        (1.0, -2.0, 220, 0, 220 * (22 - 1) / 22, 210 / 21 * 3),
        # Just after midnight all of yesterday counts.
        (0.0, 0.0, 240, 0, 240, 0),
        # Silent for longer than that.
        (6.0, -20.0, 40, 0, 0, 0),
    ],
)
def test_yesterday_counts_in_part_and_what_is_to_come_is_estimated(
    now: float, last: float, yesterday: int, today: int, reported: float, to_come: float
) -> None:
    report = ReportedDays(MIDNIGHT + last * HOUR, Work(ec=yesterday), Work(ec=today), is_active=True)
    recent = last_24_hours([report], MIDNIGHT + now * HOUR)
    assert (recent.work.ec, recent.to_come_ec) == pytest.approx((reported, to_come), abs=1)


def test_nothing_is_expected_of_a_computer_out_of_contact() -> None:
    report = ReportedDays(MIDNIGHT + 2 * HOUR, Work(ec=240, succeeded=4), Work(ec=20, succeeded=1), is_active=False)
    recent = last_24_hours([report, report], MIDNIGHT + 6 * HOUR)
    assert (recent.work.ec, recent.work.succeeded, recent.to_come_ec) == (400, 2 * (3 + 1), 0)
