"""A site whose rows are out of the ranges of today is upgraded all the same: the rows are mended first."""

from __future__ import annotations

from importlib import import_module
from math import inf, nan

import pytest
from django.apps import apps
from django.db import connection, migrations

from credit.models import App, HostAppVersion, Outcome, Result, ServerState
from tests.support.credit_factories import make_app, make_result, make_version
from tests.support.validator_runs import done, record, validate, volunteers

pytestmark = pytest.mark.django_db
ranges = import_module("credit.migrations.0011_ranges")


@pytest.fixture
def at_the_time_before() -> list[migrations.AddConstraint]:
    """The database without the constraints that the upgrade adds."""
    added = [each for each in ranges.Migration.operations if isinstance(each, migrations.AddConstraint)]
    with connection.cursor() as cursor:
        for each in added:
            cursor.execute(f"ALTER TABLE credit_{each.model_name} DROP CONSTRAINT {each.constraint.name}")
    return added


def upgrade(added: list[migrations.AddConstraint]) -> None:
    with connection.cursor() as cursor:
        for statement in ranges.MENDED:
            cursor.execute(statement)
    with connection.schema_editor() as editor:
        for each in added:
            editor.add_constraint(apps.get_model("credit", each.model_name), each.constraint)


def test_what_is_out_of_range_is_emptied_or_made_the_nearest_that_may_be(
    at_the_time_before: list[migrations.AddConstraint],
) -> None:
    app = make_app(
        version_avg_weight=0, host_avg_samples=0, max_host_scale=inf, min_host_samples=5, max_jobs_per_day_init=0,
        benchmark_scale=nan, comparison_tolerance=3, credit_system="fixed", fixed_credit=inf,
    )  # fmt: skip
    version = make_version(app, cross_project_scale=0, avg_ncpus=5000, total_credit=nan, pfc_n=4)
    no_number = make_version(app, 101, processor_type="NVIDIA", avg_ncpus=nan, gpu_usage=nan)
    [host] = volunteers(1)
    one = record(host, version, et_n=3, et_avg=inf, et_var=1.0, et_q=1.0, turnaround_n=3, turnaround_avg=7.0)
    upgrade(at_the_time_before)
    for row in (app, version, no_number, one):
        row.refresh_from_db()
    assert (app.version_avg_weight, app.host_avg_samples, app.max_host_scale) == (None, None, None)
    assert (app.min_host_samples, app.max_jobs_per_day_init, app.benchmark_scale) == (5, 1, 1e-6)
    assert (app.comparison_tolerance, app.fixed_credit) == (1, 0)
    assert (version.cross_project_scale, version.avg_ncpus, version.total_credit, version.pfc_n) == (None, 1024, 0, 0)
    assert (no_number.avg_ncpus, no_number.gpu_usage) == (1024, 64)
    assert (one.et_n, one.et_avg, one.et_q) == (0, None, 0)
    assert (one.turnaround_n, one.turnaround_avg) == (3, 7.0)


def test_jobs_of_devices_that_the_site_does_not_know_end_without_credit(
    at_the_time_before: list[migrations.AddConstraint],
) -> None:
    app = make_app()
    host, other = volunteers(2)
    HostAppVersion.objects.create(host=host, app=app, processor_type="miner_asic")
    HostAppVersion.objects.create(host=host, app=app, processor_type="CPU")
    reported = done(app, None, host, processor_type="miner_asic")
    running = make_result(done(app, make_version(app), other), host, processor_type="miner_asic")
    upgrade(at_the_time_before)
    assert [each.processor_type for each in HostAppVersion.objects.filter(app_version=None)] == ["CPU"]
    for result in (reported.results.get(), Result.objects.get(pk=running.pk)):
        assert (result.server_state, result.outcome) == (ServerState.OVER, Outcome.VALIDATE_ERROR)
        result.workunit.refresh_from_db()
        assert result.workunit.transition_at is not None
    validate(App.objects.get())
    granted = {each.host: each.granted_credit for each in Result.objects.all()}
    assert granted[host] is None
    assert granted[other] is not None
