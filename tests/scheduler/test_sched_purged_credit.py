"""Credit's books hold after the purge: what was granted for archived tasks counts."""

from __future__ import annotations

import datetime as dt

import pytest

from credit.models import AssimilateState, FileDeleteState, Result, Workunit
from scheduler import purge
from scheduler.models import ArchivedTask
from tests.credit.factories import NOON, make_app, make_version
from tests.credit.validating import differences, done, validate, volunteers

pytestmark = pytest.mark.django_db


def test_the_books_hold_after_tasks_were_archived() -> None:
    app = make_app()
    done(app, make_version(app), *volunteers(2))
    validate(app)
    Workunit.objects.update(
        assimilate_state=AssimilateState.DONE,
        assimilated_at=NOON,
        file_delete_state=FileDeleteState.DONE,
        transition_at=None,
    )
    assert purge.run(NOON + dt.timedelta(days=400)) == 1
    assert (Result.objects.count(), ArchivedTask.objects.count()) == (0, 2)
    assert differences() == []
    ArchivedTask.objects.all()[:1].get().delete()
    # Its owner's, its computer's and its version's
    assert len(differences()) == 3
