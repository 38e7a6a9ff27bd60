"""Submitters share an app's computers; who may submit what."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import IntegrityError, connection
from django.db.models import F
from django.test import Client
from django.utils import timezone

from accounting.account_data.erasure import erase_due
from credit.models import App, Batch, Outcome, Result, ServerState
from portal.models import User
from portal.people.deletion import GRACE
from scheduler.models import Submitter, SubmitterPlace
from scheduler.submission import batches
from scheduler.submission.forecasts import read_forecast
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from tests.support.credit_factories import NOON, make_app

pytestmark = pytest.mark.django_db

DEFAULTS: dict[str, Any] = {"fpops_est": 1e13, "min_quorum": 1, "output_files": [{"open_name": "o", "max_nbytes": 9}]}


@pytest.fixture
def app(db: None) -> App:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.25)")
    return make_app()


@pytest.fixture
def submitter(bob: User) -> User:
    bob.user_permissions.add(Permission.objects.get(codename="add_batch"))
    return User.objects.get(pk=bob.pk)


def send(app: App, owner: User | None, njobs: int, **fields: Any) -> Batch:
    return submit(app, DEFAULTS | fields, [{}] * njobs, owner=owner, now=NOON)[0]


def head(app: App, njobs: int) -> Counter[int | None]:
    """How many of the first jobs in the queue are whose."""
    waiting = Result.objects.filter(app=app, server_state=ServerState.UNSENT)
    ordered = waiting.order_by("-priority", F("id") + F("queue_shift"))
    return Counter(ordered[:njobs].values_list("workunit__batch__owner", flat=True))


@pytest.mark.parametrize(("share", "part"), [(1.0, 200), (3.0, 300)])
def test_the_head_of_the_queue_has_jobs_of_all_submitters_by_their_shares(
    app: App, submitter: User, alice: User, share: float, part: int
) -> None:
    Submitter.objects.create(user=alice, share=share)
    send(app, submitter, 1000)
    send(app, alice, 1000)
    # Within three standard deviations of a draw of 400.
    assert abs(head(app, 400)[alice.pk] - part) < 30


def test_what_one_submits_in_parts_follows_one_another(app: App, submitter: User, alice: User) -> None:
    for _ in range(4):
        send(app, submitter, 250)
    send(app, alice, 250)
    [place] = SubmitterPlace.objects.filter(submitter=submitter.pk)
    # 1,000 jobs of 1e13 FLOPs, of which each takes ten places.
    first = Result.objects.earliest("pk").pk
    assert place.end - first == 10_000
    assert abs(head(app, 400)[alice.pk] - 200) < 40


def test_who_cancels_a_mistake_does_not_wait_behind_it(app: App, submitter: User, alice: User) -> None:
    send(app, alice, 500)
    mistake = send(app, submitter, 5000)
    # As a list: of new tables without statistics the database would look for the hundred again for each row.
    sent = list(Result.objects.filter(workunit__batch=mistake).order_by("pk").values_list("pk", flat=True)[:100])
    Result.objects.filter(pk__in=sent).update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    before = SubmitterPlace.objects.get(submitter=submitter.pk).end
    batches.cancel(mistake, NOON)
    batches.cancel(mistake, NOON)
    # Of 5,000 jobs of ten places 100 have been sent.
    assert before - SubmitterPlace.objects.get(submitter=submitter.pk).end == 49_000
    send(app, submitter, 500)
    # From 1,000 places behind the head on, before which 100 of the other's 500 jobs are, both lie side by side.
    assert abs(head(app, 300)[submitter.pk] - 100) < 30


def test_many_tiny_batches_get_no_more_than_one_large_one(app: App, submitter: User, alice: User) -> None:
    send(app, alice, 1000)
    for _ in range(250):
        send(app, submitter, 1, fpops_est=1.0)
    # A tiny job counts as a place of 1e12 FLOPs. So 250 take 250 places, where the other has 25 jobs of ten places;
    # but each is shuffled over a sixteenth of the other's 10,000 places.
    assert 25 < head(app, 250)[alice.pk] < 100
    [place] = SubmitterPlace.objects.filter(submitter=submitter.pk)
    assert place.end - Result.objects.earliest("pk").pk < 300


@pytest.mark.parametrize("share", [0.0, -1.0, 1e-300, 101.0, math.nan, math.inf])
def test_no_share_is_beyond_its_limits(submitter: User, share: float) -> None:
    with pytest.raises(IntegrityError):
        Submitter.objects.create(user=submitter, share=share)


@pytest.mark.parametrize("fpops", [5e-324, 0.99, 1e25, 1e304, math.nan, math.inf, -math.inf])
def test_estimates_that_would_bend_the_queue_are_refused(app: App, submitter: User, fpops: float) -> None:
    with pytest.raises(JobError, match="fpops_est: not a number from 1 to below"):
        send(app, submitter, 1, fpops_est=fpops)


def test_the_longest_jobs_of_the_smallest_share_hold_up_nobody(app: App, operator: User, submitter: User) -> None:
    Submitter.objects.create(user=operator, share=0.01)
    for _ in range(20):
        send(app, operator, 10, fpops_est=9e24, delay_bound_secs=86_400)
    send(app, submitter, 100)
    # No place is beyond 64 bits; others lie within a sixteenth of that, among few of these.
    assert head(app, 120)[submitter.pk] == 100


def test_what_an_erased_account_submitted_is_done_cancelled_and_in_nobodys_way(
    app: App, submitter: User, alice: User
) -> None:
    left = send(app, submitter, 100)
    User.objects.filter(pk=submitter.pk).update(deletion_asked_at=timezone.now() - GRACE)
    assert erase_due(timezone.now()) == 1
    assert not Submitter.objects.exists() and not SubmitterPlace.objects.exists()
    send(app, alice, 100)
    assert abs(head(app, 100)[alice.pk] - 50) < 20
    left.refresh_from_db()
    assert left.owner is None
    read_forecast(left, NOON)
    assert batches.cancel(left, NOON) == 100
    assert head(app, 200) == {alice.pk: 100}


def test_what_nobody_submitted_lies_anywhere_in_the_queue(app: App, submitter: User) -> None:
    send(app, submitter, 300)
    send(app, None, 300)
    assert abs(head(app, 300)[None] - 150) < 40


def test_ends_in_queues_that_are_empty_are_forgotten(app: App, submitter: User) -> None:
    send(app, submitter, 3, priority=-5)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.DIDNT_NEED)
    batch = send(app, submitter, 3)
    assert [place.priority for place in SubmitterPlace.objects.all()] == [0]
    first = batch.workunits.earliest("pk").results.get()
    assert SubmitterPlace.objects.get().end == first.pk + 30


@pytest.mark.parametrize(
    ("limits", "fields", "message"),
    [
        ({}, {"priority": 30_000}, "jobs[0].priority: at most 0 for your account"),
        ({}, {"delay_bound_secs": 60}, "jobs[0].delay_bound_secs: at least 3,600 s"),
        ({"max_jobs": 4}, {}, "jobs: your account’s open jobs (2) and these (3) would"),
        (
            {"max_fpops": 4e13},
            {},
            "jobs: your account’s open jobs (2e+13 FLOPs) and these (3e+13) would need more than 4e+13 FLOPs",
        ),
        ({"app_names": "other another"}, {}, "app: your account may not submit jobs of alpine"),
    ],
)
def test_what_exceeds_a_submitters_limits_is_refused_whole(
    app: App, submitter: User, limits: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    send(app, submitter, 2)
    Submitter.objects.filter(user=submitter).update(**limits)
    with pytest.raises(JobError) as refused:
        send(app, submitter, 3, **fields)
    assert str(refused.value).startswith(message)
    assert (Batch.objects.count(), Result.objects.count()) == (1, 2)


def test_ended_jobs_make_room_for_others(app: App, submitter: User) -> None:
    Submitter.objects.create(user=submitter, max_jobs=2)
    send(app, submitter, 2).workunits.update(error_mask=16)
    assert send(app, submitter, 2).nworkunits == 2


def test_whoever_sets_the_limits_has_none(app: App, operator: User) -> None:
    batch = send(app, operator, 1, priority=30_000, delay_bound_secs=60)
    assert batch.workunits.get().priority == 30_000


def test_an_operator_chooses_among_those_who_may_submit_and_keeps_the_row_theirs(
    desk: Client, operator: User, submitter: User, alice: User
) -> None:
    Submitter.objects.create(user=submitter)
    added = desk.get("/admin/scheduler/submitter/add/").content.decode()
    assert f'<option value="{submitter.pk}"' in added and f'<option value="{alice.pk}"' not in added
    change_page = f"/admin/scheduler/submitter/{submitter.pk}/change/"
    assert 'name="user"' not in desk.get(change_page).content.decode()
    desk.post(change_page, {"user": operator.pk, "share": "2.5", "max_priority": "3", "max_jobs": "7", "max_fpops": ""})
    rows = desk.get("/admin/scheduler/submitter/?q=bob").content.decode()
    assert all(text in rows for text in ("any number", ">2.5<", "all"))
    changed = Submitter.objects.get()
    assert (changed.user, changed.share, changed.max_priority, changed.max_fpops) == (submitter, 2.5, 3, None)
