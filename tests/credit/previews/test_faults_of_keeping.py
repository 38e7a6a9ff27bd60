"""The log for previews is optional: a fault in writing it stops neither credit nor the feeder."""

from __future__ import annotations

import pytest
from django.db import connection

from credit.models import App, AppSnapshot, LoggedPass, Result
from credit.statistics import pass_log
from credit.statistics.feeder import feed
from credit.validator import logged
from tests.support.credit_factories import make_app, make_version
from tests.support.validator_runs import LATER, differences, done, validate, volunteers

pytestmark = pytest.mark.django_db


@pytest.fixture
def app() -> App:
    return make_app(min_avg_pfc=1.0)


def grants_one(app: App) -> bool:
    workunit = done(app, make_version(app), *volunteers(2))
    report = validate(app)
    granted = Result.objects.filter(workunit=workunit, granted_credit__gt=0).count()
    return (report.ndecided, report.nfaults, granted, differences()) == (1, 0, 2, [])


def test_a_table_that_lacks_a_column_stops_neither_credit_nor_the_feeder(app: App) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE credit_loggedpass DROP COLUMN nworkunits")
    assert grants_one(app)
    feed(LATER, app)
    assert AppSnapshot.objects.filter(app=app).exists()


@pytest.mark.parametrize("step", ["version_rows", "encode", "decode", "_columns"])
def test_an_error_in_what_is_kept_does_not_stop_credit(app: App, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise KeyError("a column that is not known")

    monkeypatch.setattr(logged, step, fail)
    assert grants_one(app)
    assert not LoggedPass.objects.exists()


def test_passes_that_find_only_wrong_results_are_not_kept_without_end(app: App) -> None:
    """As while a comparison is broken: nothing is granted, and what is kept is counted by grants."""
    rows = LoggedPass.objects.bulk_create(LoggedPass(app=app, at=LATER, versions=b"") for _ in range(30))
    pass_log.prune(app.pk, 10)
    assert list(LoggedPass.objects.order_by("pk")) == rows[-20:]
