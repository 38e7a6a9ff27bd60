"""When a batch will be done, on its page and over REST, from recent results."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from credit.models import App, Batch, Result, ServerState, ValidateState
from portal.models import Host, User
from scheduler.submission import forecasts
from scheduler.submission.submit import submit
from tests.support.rest_api import bearer

pytestmark = pytest.mark.django_db

JOB = {"fpops_est": 1e13, "min_quorum": 1, "output_files": [{"open_name": "o", "max_nbytes": 9}]}


@pytest.fixture
def now() -> dt.datetime:
    return timezone.now()


def returned(app: App, host: Host, njobs: int, now: dt.datetime) -> None:
    """One result each hour until now, each of which was out for two hours."""
    batch, _ = submit(app, JOB, [{}] * njobs, owner=None, now=now - dt.timedelta(days=7))
    for number, result in enumerate(Result.objects.filter(workunit__batch=batch)):
        result.server_state, result.outcome, result.validate_state = ServerState.OVER, 1, ValidateState.VALID
        result.host, result.user = host, host.owner
        result.received_at = now - dt.timedelta(hours=number + 0.5)
        result.sent_at = result.received_at - dt.timedelta(hours=2)
        result.granted_credit, result.granted_at = 1.0, result.received_at
        result.save()
    batch.workunits.update(error_mask=16)


@pytest.fixture
def waiting(app: App, studio: Host, submitter: User, now: dt.datetime) -> Batch:
    """Twenty jobs, with as many of nobody before them or among them."""
    returned(app, studio, 168, now)
    submit(app, JOB, [{}] * 20, owner=None, now=now)
    return submit(app, JOB, [{}] * 20, owner=submitter, now=now)[0]


def test_a_batch_is_done_when_the_queue_has_moved_on_to_its_last_job(waiting: Batch, now: dt.datetime) -> None:
    batch_forecast = forecasts.read_forecast(waiting, now)
    assert batch_forecast.earliest_at is not None and batch_forecast.latest_at is not None
    hours = [(at - now).total_seconds() / 3600 for at in (batch_forecast.earliest_at, batch_forecast.latest_at)]
    # Of 40 jobs, one an hour, its last is among the last ones; and two hours more.
    assert 28 <= hours[0] <= hours[1] <= 45


def test_the_page_and_rest_tell_the_same(client: Client, waiting: Batch, submitter: User) -> None:
    answer = client.get(f"/api/v1/batches/{waiting.pk}/forecast/", headers=bearer(submitter)).json()
    assert answer["batch"] == waiting.pk and answer["earliest_at"] <= answer["latest_at"]
    client.force_login(submitter)
    assert "It will probably be done between" in client.get(f"/project/batches/{waiting.pk}/").content.decode()
    # For a minute it is not read again.
    waiting.workunits.update(fpops_est=1e15, fpops_bound=1e17)
    assert client.get(f"/api/v1/batches/{waiting.pk}/forecast/", headers=bearer(submitter)).json() == answer


def test_without_results_nothing_is_said(client: Client, app: App, submitter: User) -> None:
    batch, _ = submit(app, JOB, [{}], owner=submitter, now=timezone.now())
    answer = client.get(f"/api/v1/batches/{batch.pk}/forecast/", headers=bearer(submitter)).json()
    assert (answer["earliest_at"], answer["latest_at"]) == (None, None)
    client.force_login(submitter)
    assert "too early to say" in client.get(f"/project/batches/{batch.pk}/").content.decode()


def test_others_batches_have_no_forecast(client: Client, waiting: Batch, bob: User) -> None:
    assert client.get(f"/api/v1/batches/{waiting.pk}/forecast/", headers=bearer(bob)).status_code == 403
