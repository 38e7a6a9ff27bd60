"""Credit's sums still match after the purge: what was granted for archived tasks counts."""

from __future__ import annotations

import datetime as dt

import pytest

from credit.engine.explanation import GrantRule
from credit.models import AssimilateState, FileDeleteState, Result, Workunit
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


def test_what_a_former_server_granted_is_no_credit_of_here() -> None:
    # One that is there, and one of the archive, of different people's
    Result.objects.filter(pk=Result.objects.order_by("pk")[0].pk).update(grant_rule=GrantRule.CARRIED_OVER)
    task = ArchivedTask.objects.order_by("-pk")[0]
    task.facts["grant_rule"] = int(GrantRule.CARRIED_OVER)
    task.save()
    assert len(differences()) == 5  # two volunteers, two computers, one version
