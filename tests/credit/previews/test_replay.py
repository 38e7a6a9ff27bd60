"""A replay grants what the validator granted or, under other settings, what it would grant with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from credit.models import (
    App,
    AppVersion,
    Comparison,
    CreditSystem,
    HostAppVersion,
    ReplicaRule,
    Result,
    RuleSet,
    VersionAverage,
)
from credit.previews.replay import ReplayedResult
from credit.validator.comparison import Delivered, Fit
from tests.support.preview_site import make_site, same

pytestmark = pytest.mark.django_db

APP_CHANGES: list[dict[str, Any]] = [
    {"host_scale_check": True},
    {"max_granted_credit": 20.0},
    {"credit_system": CreditSystem.PEAK_FLOPS},
    {"credit_system": CreditSystem.ACTUAL_FLOPS, "benchmark_scale": 3.0, "replica_rule": ReplicaRule.MINIMUM},
    {"credit_system": CreditSystem.FIXED, "fixed_credit": 12.5},
    {"credit_system": CreditSystem.FIXED, "fixed_credit_per_flop": 3e-12},
    {"credit_system": CreditSystem.RUN_TIME, "max_credited_secs": 5_000.0},
    {"version_average": VersionAverage.MEDIAN},
    {"host_avg_samples": 3, "host_avg_weight": 0.2, "host_avg_limit": 2.0},
    {"version_avg_samples": 10, "version_avg_weight": 0.05, "version_avg_limit": 3.0},
    {"min_host_samples": 15, "min_version_samples": 60},
    {"max_host_scale": 1.1},
    {"rule_set": RuleSet.DEPLOYED},
    {"host_scale_check": True, "rule_set": RuleSet.LETTER},
]


@pytest.mark.parametrize("nreplicas", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_preview_grants_what_the_validator_grants_of_the_same_reports_under_the_new_settings(nreplicas: int) -> None:
    """Settings of the app; a withdrawn GPU version, and one for several CPUs; a version whose statistics are reset."""
    site = make_site(nreplicas)
    point = transaction.savepoint()
    first = site.work()
    app = site.app
    gpu, several, cpu = (AppVersion.objects.filter(app=app, plan_class=c).order_by("pk")[0] for c in ("cuda", "mt", ""))
    previews = [
        *(site.replay(app={name: [getattr(app, name), value] for name, value in c.items()})[0] for c in APP_CHANGES),
        *(site.replay(versions={str(v.pk): {"is_deprecated": [False, True]}})[0] for v in (gpu, several)),
        site.replay(reset=[cpu.pk])[0],
    ]
    changes: list[Callable[[], object]] = [
        *(partial(App.objects.filter(pk=app.pk).update, **change) for change in APP_CHANGES),
        *(partial(AppVersion.objects.filter(pk=v.pk).update, is_deprecated=True) for v in (gpu, several)),
        partial(reset, cpu),
    ]
    for number, (outcomes, change) in enumerate(zip(previews, changes, strict=True)):
        transaction.savepoint_rollback(point)
        point = transaction.savepoint()
        change()
        compare(number, outcomes, first, site.work())


def reset(version: AppVersion) -> None:
    AppVersion.objects.filter(pk=version.pk).update(pfc_n=0, pfc_avg=None, pfc_scale=None, is_counted=False)
    averages: dict[str, Any] = {"et_n": 0, "et_avg": None, "et_var": None, "et_q": 0, "lead_jobs": 0}
    for name in ("pfc", "clean_pfc", "recent_pfc", "waiting_pfc"):
        averages |= {f"{name}_n": 0, f"{name}_avg": None}
    HostAppVersion.objects.filter(app_version=version).update(samples_at=None, peak_flops=None, **averages)


def by_run_time(first: Delivered, second: Delivered) -> bool | Fit:
    """Outputs agree if they are equal; a result is worth something of its own, the same whenever the site works."""
    if first is not second:
        return first.digest == second.digest
    return Fit(credit=1 + (Result.objects.get(pk=first.result_id).elapsed_secs or 0.0) % 50)


@pytest.mark.usefixtures("registered_functions")
def test_credit_that_is_given_with_jobs_or_assigned_to_outputs_is_replayed_as_granted() -> None:
    site = make_site(1, comparison=Comparison.CUSTOM, comparison_function=f"{__name__}.{by_run_time.__name__}")
    with connection.cursor() as cursor:
        # As a submission gives it, a different one to each job.
        cursor.execute("""
            CREATE FUNCTION pg_temp.give() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN NEW.credit = NEW.fpops_est / 1e12; RETURN NEW; END $$;
            CREATE TRIGGER give BEFORE INSERT ON credit_workunit FOR EACH ROW EXECUTE FUNCTION pg_temp.give()""")
    point = transaction.savepoint()
    first = site.work()
    systems = CreditSystem.GIVEN, CreditSystem.ASSIGNED
    previews = [site.replay(app={"credit_system": [site.app.credit_system, system]})[0] for system in systems]
    for number, (system, outcomes) in enumerate(zip(systems, previews, strict=True)):
        transaction.savepoint_rollback(point)
        point = transaction.savepoint()
        App.objects.filter(pk=site.app.pk).update(credit_system=system)
        second = site.work()
        assert min(second) > 0
        assert len(set(second)) > 1
        compare(number, outcomes, first, second)


def test_single_results_that_would_wait_are_those_that_the_validator_lets_wait() -> None:
    site = make_site(1, adaptive_replication=True)
    # What every other computer's claims are worth has been seen.
    proven = HostAppVersion.objects.annotate(rest=F("pk") % 2).filter(rest=0, pfc_n__gt=0)
    proven.update(clean_pfc_n=50, clean_pfc_avg=F("pfc_avg"))
    point = transaction.savepoint()
    site.work()
    first = site.grants()
    outcomes, _ = site.replay(app={"host_scale_check": [False, True]})
    transaction.savepoint_rollback(point)
    App.objects.filter(pk=site.app.pk).update(host_scale_check=True)
    site.work()
    second = [credit for _, credit in site.grants()]
    after = {outcome.result: outcome.after.credit for outcome in outcomes}
    found = [(after.get(pk), credit) for (pk, _), credit in zip(first, second, strict=True)]
    assert all(old == new or same(old or -1.0, new or -1.0) for old, new in found)
    assert any(credit is None for credit in after.values())
    assert any(credit is not None for credit in after.values())


def compare(number: int, outcomes: list[ReplayedResult], first: list[float], second: list[float]) -> None:
    """The replay as the first run of the validator was, and as the second."""
    by_result = sorted(outcomes, key=lambda outcome: outcome.result)
    assert len(by_result) == len(first) == len(second) > 150
    wrong = [
        (outcome.workunit, outcome.before.credit, old, outcome.after.credit, new)
        for outcome, old, new in zip(by_result, first, second, strict=True)
        if not (same(outcome.before.credit or 0.0, old) and same(outcome.after.credit or 0.0, new))
    ]
    assert not wrong, f"change {number}: {len(wrong)} of {len(first)}: {wrong[:3]}"
    if number < len(APP_CHANGES):  # a withdrawn version keeps its factor
        assert not all(map(same, first, second)), f"change {number} changes nothing"
