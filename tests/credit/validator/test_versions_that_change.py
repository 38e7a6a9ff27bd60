"""Grants while versions of an app are withdrawn and released: feeder and validator in the database."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from credit.engine.explanation import ClaimRule
from credit.models import App, AppVersion, ProcessorType, Result, RuleSet
from credit.statistics.feeder import feed
from portal.models import Host
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.validator_runs import LATER, differences, done, validate

pytestmark = pytest.mark.django_db

# A job of 20 times its estimate, 2e14 FLOPs: 2e14 * 200 / 86400e9 credits unscaled, with the scale 0.1 a tenth of it.
UNSCALED = 462.962963
SCALED = 46.2962963


def gpu(app: App, version_num: int, **fields: Any) -> AppVersion:
    return make_version(app, version_num, processor_type=ProcessorType.NVIDIA, gpu_usage=1, **fields)


def project(rule_set: str = RuleSet.PUBLISHED) -> tuple[App, AppVersion, AppVersion]:
    """CPU average 2, GPU average 20: the GPU version's scale is 0.1."""
    app = make_app(rule_set=rule_set)
    cpu = make_version(app, pfc_n=1000, pfc_avg=2.0)
    fast = gpu(app, 100, plan_class="cuda", pfc_n=1000, pfc_avg=20.0)
    feed(NOON)
    fast.refresh_from_db()
    assert fast.pfc_scale == pytest.approx(0.1)
    return app, cpu, fast


def granted(app: App, version: AppVersion, host: Host) -> Result:
    """A job of 20 times its estimate, alone in its workunit, as it is validated now."""
    workunit = done(app, version, host, peak_flops=2e14 / 3000, processor_type=version.processor_type)
    validate(app)
    assert differences() == []
    return workunit.results.get()


@pytest.mark.parametrize(("rule_set", "after"), [(RuleSet.PUBLISHED, SCALED), (RuleSet.LETTER, UNSCALED)])
def test_a_job_that_is_out_when_its_version_is_withdrawn_brings_no_more(
    rule_set: str, after: float, hosts: list[Host]
) -> None:
    app, _, fast = project(rule_set)
    assert granted(app, fast, hosts[0]).granted_credit == pytest.approx(SCALED)
    AppVersion.objects.filter(pk=fast.pk).update(is_deprecated=True)
    feed(LATER)
    assert granted(app, fast, hosts[1]).granted_credit == pytest.approx(after)


def test_the_first_jobs_of_a_new_version_are_scaled_like_its_predecessors(hosts: list[Host]) -> None:
    app, _, fast = project()
    AppVersion.objects.filter(pk=fast.pk).update(is_deprecated=True)
    new = gpu(app, 101, plan_class="cuda")
    # Before the feeder has seen it, it is priced by the app's least average: 2 for each FLOP estimated.
    first = granted(app, new, hosts[0])
    assert first.claim_rule == ClaimRule.UNSCALED_VERSION
    assert first.granted_credit == pytest.approx(SCALED)
    feed(LATER)
    second = granted(app, new, hosts[1])
    assert second.claim_rule == ClaimRule.VERSION_ONLY
    assert second.granted_credit == pytest.approx(SCALED)
    newer = gpu(app, 102, plan_class="cuda")
    feed(LATER + dt.timedelta(minutes=10))
    assert granted(app, newer, hosts[2]).granted_credit == pytest.approx(SCALED)


@pytest.mark.parametrize(("rule_set", "credit"), [(RuleSet.PUBLISHED, SCALED), (RuleSet.LETTER, UNSCALED)])
def test_a_version_without_a_predecessor_is_priced_by_the_least_average_and_gives_samples(
    rule_set: str, credit: float, hosts: list[Host]
) -> None:
    app, _, _ = project(rule_set)
    new = gpu(app, 100, plan_class="opencl")
    feed(LATER)
    result = granted(app, new, hosts[0])
    assert result.granted_credit == pytest.approx(credit)
    assert result.is_approximate
    new.refresh_from_db()
    assert new.pfc_n == 1
    assert new.pfc_avg == pytest.approx(20)


def test_withdrawing_the_last_cpu_version_moves_nothing(hosts: list[Host]) -> None:
    app, cpu, fast = project()
    AppVersion.objects.filter(pk=cpu.pk).update(is_deprecated=True)
    for hours in range(3):
        feed(LATER + dt.timedelta(hours=hours))
    app.refresh_from_db()
    fast.refresh_from_db()
    assert app.min_avg_pfc == 2
    assert fast.pfc_scale == pytest.approx(0.1)
    assert granted(app, fast, hosts[0]).granted_credit == pytest.approx(SCALED)
