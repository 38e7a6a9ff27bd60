"""The validator's worker: tasks, slots, queues, metrics."""

from __future__ import annotations

import datetime as dt
from typing import Any

import psycopg
import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from pytest_django import Settings

from credit import tasks
from credit.models import App, Workunit
from credit.validator import worker
from portal.celery import app as celery_app
from portal.databases.params import psycopg_params
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.validator_runs import RIGHT, WRONG, done, report, volunteers

pytestmark = pytest.mark.django_db


def waiting(app: App, number: int) -> None:
    version = make_version(app)
    hosts = volunteers(2)
    for _ in range(number):
        done(app, version, *hosts)


def test_a_validator_works_until_nothing_waits(settings: Settings) -> None:
    settings.VALIDATOR_BATCH = 2
    app = make_app()
    waiting(app, 5)
    assert worker.run_until_idle(app, run_secs=60) is False
    assert Workunit.objects.filter(need_validate=True).count() == 0
    # Two, two, one
    assert cache.get("metrics:validator:alpine:passes") == 3


def test_when_its_time_is_over_there_may_be_more(settings: Settings) -> None:
    settings.VALIDATOR_BATCH = 2
    app = make_app()
    waiting(app, 5)
    assert worker.run_until_idle(app, run_secs=0) is True
    assert Workunit.objects.filter(need_validate=True).count() == 3


def test_apps_that_read_files_have_smaller_batches(settings: Settings) -> None:
    settings.VALIDATOR_FILES_BATCH = 1
    app = make_app(comparison="tolerance")
    waiting(app, 3)
    worker.run_until_idle(app, run_secs=0)
    assert Workunit.objects.filter(need_validate=True).count() == 2


def test_only_apps_with_work_that_is_due_are_waiting() -> None:
    apps = [make_app(name) for name in ("busy", "idle", "faulty")]
    waiting(apps[0], 1)
    version = make_version(apps[2])
    done(apps[2], version, validate_after=NOON + dt.timedelta(hours=1))
    assert worker.apps_to_validate(NOON) == [apps[0]]
    assert set(worker.apps_to_validate(NOON + dt.timedelta(hours=1))) == {apps[0], apps[2]}


@pytest.mark.django_db(transaction=True)
def test_no_more_validators_than_slots_work_on_an_app(settings: Settings) -> None:
    app = make_app()
    waiting(app, 1)
    with psycopg.connect(**psycopg_params()) as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", [0x6376, app.pk * 64])
        assert worker.run_until_idle(app, run_secs=60) is False
        assert Workunit.objects.filter(need_validate=True).count() == 1
        settings.VALIDATORS_PER_APP = 2
        worker.run_until_idle(app, run_secs=60)
        assert Workunit.objects.filter(need_validate=True).count() == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'")
        assert cursor.fetchone() == (0,)


def test_beat_starts_a_task_for_each_app_on_its_queue(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VALIDATOR_QUEUES = ["own"]
    apps = [make_app(name) for name in ("common", "own")]
    for app in apps:
        done(app, make_version(app))
    sent: list[tuple[Any, Any]] = []
    monkeypatch.setattr(tasks.validate, "apply_async", lambda args, **how: sent.append((args, how["queue"])))
    tasks.start_validators()
    assert sorted(sent) == [((apps[0].pk,), "celery"), ((apps[1].pk,), "validator.own")]
    assert {"credit.tasks.start_validators", "credit.tasks.feed"} <= {
        entry["task"] for entry in celery_app.conf.beat_schedule.values()
    }


def test_the_tasks_do_their_work() -> None:
    app = make_app()
    waiting(app, 1)
    tasks.validate(app.pk)
    assert Workunit.objects.filter(need_validate=True).count() == 0
    tasks.feed()
    tasks.validate(app.pk + 1)


def test_the_metrics_tell_what_passes_did(client: Client) -> None:
    app = make_app()
    version = make_version(app)
    hosts = volunteers(3)
    done(app, version, *hosts[:2])
    report(done(app, version, hosts[0], min_quorum=2, output_digest=RIGHT), version, hosts[1], output_digest=WRONG)
    worker.run_until_idle(app, run_secs=60)
    done(app, version, *hosts[:2])
    lines = client.get("/metrics").content.decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if line.startswith("cobblestone_"))
    assert float(told['cobblestone_validator_passes_total{app="alpine"}']) == 1
    assert float(told['cobblestone_validated_workunits_total{app="alpine",outcome="decided"}']) == 1
    assert float(told['cobblestone_validated_workunits_total{app="alpine",outcome="undecided"}']) == 1
    assert float(told['cobblestone_validated_results_total{app="alpine",state="valid"}']) == 2
    assert float(told['cobblestone_validated_results_total{app="alpine",state="inconclusive"}']) == 2
    # Twice the default of 1e13 FLOPs
    assert float(told['cobblestone_granted_credit_total{app="alpine"}']) == pytest.approx(2 * 23.148148, rel=1e-6)
    assert float(told['cobblestone_workunits_to_validate{app="alpine"}']) == 1
