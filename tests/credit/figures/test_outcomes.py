"""Results by hour: each is counted once, whenever the roll-up runs and however often."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import Sum

from credit.engine.states import Outcome
from credit.figures import outcomes, sql
from credit.models import App, ResultHour, ServerState
from portal.models import Host
from tests.support.credit_factories import make_result, make_success, make_version, make_workunit

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


def failure(app: App, host: Host, at: dt.datetime, exit_status: int = 194, **more: Any) -> None:
    over: dict[str, Any] = {"server_state": ServerState.OVER, "outcome": Outcome.CLIENT_ERROR}
    make_result(make_workunit(app), host, **{**over, "received_at": at, "exit_status": exit_status, **more})


def total(**lookups: Any) -> int:
    return ResultHour.objects.filter(**lookups).aggregate(Sum("count"))["count__sum"] or 0


def test_each_result_is_counted_once_in_the_hour_it_was_reported(app: App, studio: Host) -> None:
    version = make_version(app)
    for minutes in (5, 10, 70):
        make_success(make_workunit(app), studio, received_at=NOON - minutes * MINUTE, app_version=version)
    failure(app, studio, NOON - 10 * MINUTE)
    outcomes.roll_up(NOON)
    outcomes.roll_up(NOON)
    rows = {(row.hour.hour, row.outcome): row for row in ResultHour.objects.all()}
    assert {key: row.count for key, row in rows.items()} == {
        (11, Outcome.SUCCESS): 2,
        (10, Outcome.SUCCESS): 1,
        (11, Outcome.CLIENT_ERROR): 1,
    }
    assert rows[11, Outcome.SUCCESS].app_version == version
    assert rows[11, Outcome.CLIENT_ERROR].app_version is None
    assert rows[11, Outcome.CLIENT_ERROR].exit_status == 194


def test_a_later_run_adds_what_came_since(app: App, studio: Host) -> None:
    make_success(make_workunit(app), studio, received_at=NOON - 5 * MINUTE)
    outcomes.roll_up(NOON)
    make_success(make_workunit(app), studio, received_at=NOON + 5 * MINUTE)
    outcomes.roll_up(NOON + 10 * MINUTE)
    assert list(ResultHour.objects.order_by("hour").values_list("hour__hour", "count")) == [(11, 1), (12, 1)]


def test_what_may_not_be_committed_yet_is_left_for_the_next_run(app: App, studio: Host) -> None:
    make_success(make_workunit(app), studio, received_at=NOON - MINUTE)
    outcomes.roll_up(NOON)
    assert total() == 0
    outcomes.roll_up(NOON + 10 * MINUTE)
    assert total() == 1


def test_after_a_break_of_days_all_is_made_up_for(app: App, studio: Host) -> None:
    outcomes.roll_up(NOON)
    for hours in range(1, 60, 7):
        make_success(make_workunit(app), studio, received_at=NOON + dt.timedelta(hours=hours))
    outcomes.roll_up(NOON + dt.timedelta(hours=72))
    assert total() == 9
    assert ResultHour.objects.count() == 9


def test_time_outs_are_counted_and_a_late_report_takes_one_back(app: App, studio: Host) -> None:
    late: dict[str, Any] = {"server_state": ServerState.OVER, "outcome": Outcome.NO_REPLY}
    results = [make_result(make_workunit(app), studio, **{**late, "deadline_at": NOON - 30 * MINUTE}) for _ in range(2)]
    outcomes.roll_up(NOON)
    outcomes.roll_up(NOON)
    assert total(outcome=Outcome.NO_REPLY) == 2
    results[0].outcome, results[0].received_at = Outcome.SUCCESS, NOON + 5 * MINUTE
    results[0].save()
    outcomes.roll_up(NOON + 10 * MINUTE)
    assert (total(outcome=Outcome.NO_REPLY), total(outcome=Outcome.SUCCESS)) == (1, 1)


def test_outputs_found_unfit_after_they_were_counted_are_no_successes(app: App, studio: Host) -> None:
    results = [make_success(make_workunit(app), studio, received_at=NOON - 30 * MINUTE) for _ in range(3)]
    outcomes.roll_up(NOON)
    for hours, result in ((1, results[0]), (48, results[1])):
        result.outcome = Outcome.VALIDATE_ERROR
        result.save()
        for _ in range(2):
            outcomes.roll_up(NOON + dt.timedelta(hours=hours))
    assert (total(outcome=Outcome.SUCCESS), total(outcome=Outcome.VALIDATE_ERROR)) == (1, 2)
    assert set(ResultHour.objects.values_list("hour__hour", flat=True)) == {11}


def test_outputs_found_unfit_before_they_are_counted_are_counted_once(app: App, studio: Host) -> None:
    make_success(make_workunit(app), studio, received_at=NOON - 30 * MINUTE)
    make_success(make_workunit(app), studio, received_at=NOON - 30 * MINUTE, outcome=Outcome.VALIDATE_ERROR)
    make_success(make_workunit(app), studio, received_at=NOON - MINUTE, outcome=Outcome.VALIDATE_ERROR)
    outcomes.roll_up(NOON)
    assert (total(outcome=Outcome.SUCCESS), total(outcome=Outcome.VALIDATE_ERROR)) == (1, 1)
    outcomes.roll_up(NOON + 10 * MINUTE)
    assert (total(outcome=Outcome.SUCCESS), total(outcome=Outcome.VALIDATE_ERROR)) == (1, 2)


def test_a_clock_that_was_ahead_leaves_nothing_out(app: App, studio: Host) -> None:
    make_success(make_workunit(app), studio, received_at=NOON - 30 * MINUTE)
    outcomes.roll_up(NOON)
    make_success(make_workunit(app), studio, received_at=NOON + dt.timedelta(days=30, minutes=-9))
    outcomes.roll_up(NOON + dt.timedelta(days=30))
    # The clock is set right.
    make_success(make_workunit(app), studio, received_at=NOON + 5 * MINUTE)
    for minutes in (10, 20):
        outcomes.roll_up(NOON + minutes * MINUTE)
    assert list(ResultHour.objects.order_by("hour").values_list("hour__hour", "count")) == [(11, 1), (12, 1)]


def test_a_clock_that_was_minutes_ahead_counts_nothing_twice(app: App, studio: Host) -> None:
    make_success(make_workunit(app), studio, received_at=NOON - 30 * MINUTE)
    outcomes.roll_up(NOON + 5 * MINUTE)
    for minutes in (0, 10):
        outcomes.roll_up(NOON + minutes * MINUTE)
    assert total() == 1


def test_programs_that_end_with_any_number_make_few_rows(app: App, studio: Host) -> None:
    for status in range(1, 2 * sql.MAX_STATUSES + 1):
        failure(app, studio, NOON - 10 * MINUTE, status)
    failure(app, studio, NOON - 10 * MINUTE, 40)
    outcomes.roll_up(NOON)
    assert total() == 2 * sql.MAX_STATUSES + 1
    assert ResultHour.objects.count() == sql.MAX_STATUSES + 1
    # The most frequent is told apart.
    assert total(exit_status=40) == 2
    assert total(exit_status=None) == sql.MAX_STATUSES


def test_hours_of_old_days_become_one_row(app: App) -> None:
    day = NOON.replace(hour=0) - dt.timedelta(days=40)
    for hour in (0, 3, 5):
        ResultHour.objects.create(
            hour=day + dt.timedelta(hours=hour), app=app, outcome=Outcome.SUCCESS, exit_status=0, count=10 + hour
        )
    ResultHour.objects.create(hour=NOON, app=app, outcome=Outcome.SUCCESS, exit_status=0, count=1)
    outcomes.roll_up(NOON)
    for _ in range(2):
        outcomes.join_hours(NOON)
        assert list(ResultHour.objects.order_by("hour").values_list("hour", "count")) == [(day, 38), (NOON, 1)]


def test_charts_tell_errors_by_their_exit_status_in_words(app: App, studio: Host) -> None:
    failure(app, studio, NOON - 10 * MINUTE, 194)
    failure(app, studio, NOON - 70 * MINUTE, 195)
    outcomes.roll_up(NOON)
    history = outcomes.by(outcomes.error_name, ["outcome", "exit_status"], outcomes.FAILURES)(
        NOON - dt.timedelta(days=1), NOON
    )
    assert len(history) == 2
    eleven, ten = (NOON - dt.timedelta(hours=hours) for hours in (1, 2))
    found = {name.split(" (")[0]: points for name, points in history.items()}
    assert found["exit status 194"] == [(ten.timestamp(), 0), (eleven.timestamp(), 1)]
    assert found["exit status 195"] == [(ten.timestamp(), 1), (eleven.timestamp(), 0)]


def test_a_chart_of_a_year_has_the_mean_of_each_day(app: App) -> None:
    day = NOON.replace(hour=0)
    for hours in (2, 5):
        ResultHour.objects.create(
            hour=day + dt.timedelta(hours=hours), app=app, outcome=Outcome.CLIENT_ERROR, exit_status=1, count=12
        )
    history = outcomes.by(lambda row: row.app, ["app_id"], outcomes.FAILURES)
    # 24 of a day are one an hour.
    tomorrow = NOON + dt.timedelta(days=1)
    assert history(tomorrow - dt.timedelta(days=366), tomorrow) == {"Alpine": [(day.timestamp(), 1.0)]}
    # Today, at noon, they are two an hour.
    assert history(NOON - dt.timedelta(days=366), NOON) == {"Alpine": [(day.timestamp(), 2.0)]}
    by_version = outcomes.by(lambda row: row.version, ["app_id", "app_version_id"], outcomes.FAILURES)
    assert list(by_version(NOON - dt.timedelta(days=366), NOON)) == ["Alpine, volunteers’ own programs"]
