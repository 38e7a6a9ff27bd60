"""The feeder in the database: scales, lowest averages, snapshots, one run at a time."""

from __future__ import annotations

import datetime as dt

import psycopg
import pytest

from credit.models import App, AppSnapshot, AppVersion, AppVersionSnapshot, ProcessorType, RuleSet, VersionAverage
from credit.statistics.feeder import feed
from portal.databases.params import psycopg_params
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.validator_runs import record, volunteers

pytestmark = pytest.mark.django_db


def scales(app: App) -> list[float | None]:
    return list(app.versions.order_by("pk").values_list("pfc_scale", flat=True))


def test_two_versions_are_scaled_to_their_mean() -> None:
    app = make_app()
    make_version(app, pfc_n=100, pfc_avg=2.0)
    make_version(app, plan_class="mt", pfc_n=300, pfc_avg=4.0)
    make_version(app, plan_class="new", pfc_n=99, pfc_avg=9.0)
    report = feed(NOON)
    # (100 * 2 + 300 * 4) / 400 = 3.5
    assert scales(app) == [1.75, 0.875, None]
    app.refresh_from_db()
    assert app.min_avg_pfc == 3.5
    assert (report.napps, report.nscales) == (1, 2)


@pytest.mark.parametrize(("rule_set", "scale"), [(RuleSet.LETTER, None), (RuleSet.PUBLISHED, 1)])
def test_a_version_that_is_deprecated_loses_its_scale_to_the_letter_only(rule_set: str, scale: float | None) -> None:
    app = make_app(rule_set=rule_set)
    for plan_class in ("", "a", "b"):
        make_version(app, plan_class=plan_class, pfc_n=100, pfc_avg=2.0)
    feed(NOON)
    AppVersion.objects.filter(plan_class="b").update(is_deprecated=True)
    feed(NOON + dt.timedelta(minutes=10))
    assert scales(app) == [1, 1, scale]


def test_by_the_deployed_rules_one_gpu_version_is_enough() -> None:
    app = make_app(rule_set=RuleSet.DEPLOYED)
    make_version(app, plan_class="x", processor_type=ProcessorType.NVIDIA, gpu_usage=1, pfc_n=101, pfc_avg=20.0)
    feed(NOON)
    app.refresh_from_db()
    # A tenth of 20
    assert (app.min_avg_pfc, scales(app)) == (2.0, [0.1])


def test_an_app_may_take_the_median_of_its_hosts() -> None:
    app = make_app(version_average=VersionAverage.MEDIAN)
    versions = [make_version(app, plan_class=c, pfc_n=100, pfc_avg=50.0) for c in ("", "mt")]
    for host, average in zip(volunteers(3), (1.0, 2.0, 147.0), strict=True):
        for version in versions:
            record(host, version, pfc_n=10, pfc_avg=average)
    feed(NOON)
    app.refresh_from_db()
    assert app.min_avg_pfc == 2.0
    assert {version.pfc_avg for version in app.versions.all()} == {50.0}


def test_snapshots_are_taken_of_what_moved() -> None:
    app = make_app()
    first = make_version(app, pfc_n=100, pfc_avg=2.0)
    make_version(app, plan_class="mt", pfc_n=100, pfc_avg=4.0)
    make_version(app, plan_class="unused")
    assert feed(NOON).nsnapshots == 2
    assert feed(NOON + dt.timedelta(minutes=10)).nsnapshots == 0
    AppVersion.objects.filter(pk=first.pk).update(expavg_credit=5.0)
    assert feed(NOON + dt.timedelta(minutes=20)).nsnapshots == 1
    rows = AppVersionSnapshot.objects.filter(app_version=first).order_by("taken_at")
    assert [(row.pfc_n, row.pfc_scale, row.expavg_credit) for row in rows] == [(100, 1.5, 0), (100, 1.5, 5)]
    assert list(AppSnapshot.objects.values_list("taken_at", "min_avg_pfc")) == [(NOON, 3.0)]


def test_scales_that_cannot_be_are_refused() -> None:
    app = make_app()
    make_version(app, pfc_n=100, pfc_avg=1e-40)
    make_version(app, plan_class="mt", pfc_n=100, pfc_avg=4.0)
    feed(NOON)
    # The mean is 2; 2 / 1e-40 is no scale.
    assert scales(app) == [None, 0.5]


@pytest.mark.django_db(transaction=True)
def test_one_feeder_runs_at_a_time() -> None:
    app = make_app()
    make_version(app, pfc_n=100, pfc_avg=2.0)
    with psycopg.connect(**psycopg_params()) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [0x6366])
        assert feed(NOON).is_skipped
        assert scales(app) == [None]
    assert not feed(NOON).is_skipped
    assert scales(app) == [1.0]
