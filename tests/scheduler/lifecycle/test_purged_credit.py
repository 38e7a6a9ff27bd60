"""Credit's books hold after the purge: what was granted for archived tasks counts."""

from __future__ import annotations

import datetime as dt
from importlib import import_module

import pytest
from django.db import connection, migrations

from credit.models import AppVersion, AssimilateState, FileDeleteState, Result, Workunit
from scheduler.lifecycle import purge
from scheduler.models import ArchivedTask
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.validator_runs import differences, done, validate, volunteers

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def books() -> None:
    """Two tasks were granted and purged, and two more that are still there."""
    app = make_app()
    version, hosts = make_version(app), volunteers(2)
    workunits = [done(app, version, *hosts) for _ in range(2)]
    validate(app)
    Workunit.objects.filter(pk=workunits[0].pk).update(
        assimilate_state=AssimilateState.DONE,
        assimilated_at=NOON,
        file_delete_state=FileDeleteState.DONE,
        transition_at=None,
    )
    assert purge.run(NOON + dt.timedelta(days=400)) == 1
    assert (Result.objects.count(), ArchivedTask.objects.count()) == (2, 2)


def test_the_books_hold_after_tasks_were_archived() -> None:
    assert differences() == []
    ArchivedTask.objects.all()[:1].get().delete()
    # Its owner's, its computer's and its version's
    assert len(differences()) == 3


def test_upgrading_makes_versions_totals_of_what_was_granted_before() -> None:
    AppVersion.objects.update(total_credit=0, ngranted=0)
    assert len(differences()) == 1
    for name in ("credit.migrations.0009_version_totals", "scheduler.migrations.0005_version_totals_of_archived"):
        [filling] = [op for op in import_module(name).Migration.operations if isinstance(op, migrations.RunSQL)]
        assert isinstance(filling.sql, str)
        with connection.cursor() as cursor:
            cursor.execute(filling.sql)
    assert AppVersion.objects.get().ngranted == 4
    assert differences() == []
