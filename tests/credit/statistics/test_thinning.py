"""Old snapshots are thinned out to the last of each day."""

from __future__ import annotations

import datetime as dt

import pytest

from credit.models import AppSnapshot, AppVersionSnapshot
from credit.statistics.thinning import thin_snapshots
from credit.tasks import thin_snapshots as task
from tests.support.credit_factories import NOON, make_app, make_version

pytestmark = pytest.mark.django_db

NOW = NOON
DAY = dt.timedelta(days=1)
MIDNIGHT = NOON - dt.timedelta(hours=12)


def times(*, of_apps: bool = False) -> list[dt.datetime]:
    rows = AppSnapshot.objects if of_apps else AppVersionSnapshot.objects
    return list(rows.order_by("taken_at").values_list("taken_at", flat=True))


@pytest.mark.parametrize("batch", [1, 2, 10_000])
def test_the_last_snapshot_of_each_day_older_than_a_month_stays(batch: int) -> None:
    app = make_app()
    first, second = make_version(app), make_version(app, 101)
    bound = MIDNIGHT - 31 * DAY
    kept = [bound - DAY - dt.timedelta(seconds=1), bound - dt.timedelta(minutes=10), bound, bound + DAY / 2, NOW]
    gone = [bound - DAY - dt.timedelta(hours=5), bound - DAY, bound - DAY / 2, bound - dt.timedelta(minutes=20)]
    AppVersionSnapshot.objects.bulk_create(
        AppVersionSnapshot(app_version=first, taken_at=at, pfc_n=1, pfc_avg=1.0, expavg_credit=0.0)
        for at in kept + gone
    )
    # The only one of its day, though another version has later ones
    AppVersionSnapshot.objects.create(
        app_version=second, taken_at=bound - DAY / 2, pfc_n=1, pfc_avg=1.0, expavg_credit=0.0
    )
    AppSnapshot.objects.bulk_create(AppSnapshot(app=app, taken_at=at, min_avg_pfc=1.0) for at in kept + gone)
    assert thin_snapshots(NOW, batch) == 2 * len(gone)
    assert times(of_apps=True) == kept
    assert times() == sorted([*kept, bound - DAY / 2])
    assert thin_snapshots(NOW, batch) == 0


def test_the_task_thins_out() -> None:
    app = make_app()
    old = NOON - 400 * DAY
    for minutes in (0, 10):
        AppSnapshot.objects.create(app=app, taken_at=old + dt.timedelta(minutes=minutes), min_avg_pfc=1.0)
    task()
    assert times(of_apps=True) == [old + dt.timedelta(minutes=10)]
