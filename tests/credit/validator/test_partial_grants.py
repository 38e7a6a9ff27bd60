"""Partial credit in the database: granted while a job runs, and never a second time when it ends."""

from __future__ import annotations

import datetime as dt

import pytest

from credit.engine.recent_credit import add_credit
from credit.engine.rules import Rules
from credit.models import (
    App,
    AppVersion,
    CreditSystem,
    HostCredit,
    Outcome,
    Result,
    RuleSet,
    ServerState,
    UserCredit,
    VersionAverage,
    Workunit,
)
from credit.pages.explanation import explain, stored_explanation
from credit.statistics.facts import workunit_facts
from credit.validator.partial_grants import grant_part
from portal.models import Host
from tests.support.credit_engine_facts import recomputed_credit
from tests.support.credit_factories import NOON, make_result, make_version, make_workunit
from tests.support.validator_runs import LATER, RIGHT, differences, record, validate, volunteers

pytestmark = pytest.mark.django_db

CREDIT_PER_SEC = 4e9 * 200 / 86400e9
"""At the 4 GFLOPS of the tests' jobs."""


@pytest.fixture
def host(db: None) -> Host:
    return volunteers(1)[0]


def running(app: App, version: AppVersion, host: Host) -> Result:
    """A job alone on its workunit, sent an hour ago; its record is there, as the scheduler makes it."""
    record(host, version)
    return make_result(make_workunit(app, min_quorum=1, target_nresults=1), host, app_version=version)


def finish(result: Result, elapsed_secs: float, **fields: object) -> None:
    reported = {"server_state": ServerState.OVER, "outcome": Outcome.SUCCESS, "received_at": NOON, "cpu_secs": 2000.0}
    Result.objects.filter(pk=result.pk).update(**reported, elapsed_secs=elapsed_secs, output_digest=RIGHT, **fields)
    Workunit.objects.filter(pk=result.workunit_id).update(need_validate=True)


def test_parts_and_the_rest_make_the_whole_once_for_volunteer_computer_and_version(
    app: App, version: AppVersion, host: Host
) -> None:
    result = running(app, version, host)
    at = [NOON - dt.timedelta(minutes=40), NOON - dt.timedelta(minutes=20)]
    parts = [grant_part(result.pk, secs, now) for secs, now in zip((1000.0, 2200.0), at, strict=True)]
    assert parts == pytest.approx([1000 * CREDIT_PER_SEC, 1200 * CREDIT_PER_SEC])
    assert grant_part(result.pk, 2200.0, at[1]) == 0
    assert differences() == []
    finish(result, 3000.0)
    assert validate(app).credit == pytest.approx(800 * CREDIT_PER_SEC)
    assert grant_part(result.pk, 3500.0, LATER) == 0
    whole = 3000 * CREDIT_PER_SEC
    assert UserCredit.objects.get().total_credit == HostCredit.objects.get().total_credit == pytest.approx(whole)
    # The same three amounts at the same times for each.
    average, since, since_sent = 0.0, None, (NOON - dt.timedelta(hours=1)).timestamp()
    for credit, now in zip((*parts, 800 * CREDIT_PER_SEC), (*at, LATER), strict=True):
        average, since = add_credit(average, since, now.timestamp(), credit, since_sent, Rules.published())
    version.refresh_from_db()
    assert version.expavg_credit == pytest.approx(average)
    assert UserCredit.objects.get().expavg_credit == pytest.approx(average)
    assert differences() == []


def test_by_the_deployed_rules_a_version_counts_what_trickles_brought_once(
    app: App, version: AppVersion, host: Host
) -> None:
    App.objects.update(rule_set=RuleSet.DEPLOYED)
    result = running(app, version, host)
    grant_part(result.pk, 1000.0, NOON)
    version.refresh_from_db()
    before = version.expavg_credit
    finish(result, 1000.0)
    validate(app, NOON)
    version.refresh_from_db()
    # Nothing is left to be claimed.
    assert version.expavg_credit == pytest.approx(before)
    assert differences() == []


@pytest.mark.parametrize("system", [CreditSystem.FIXED, CreditSystem.PEAK_FLOPS, CreditSystem.ACTUAL_FLOPS])
def test_an_app_may_change_its_credit_system_while_parts_are_granted(
    system: str, app: App, version: AppVersion, host: Host
) -> None:
    result = running(app, version, host)
    part = grant_part(result.pk, 100.0, NOON)
    App.objects.update(credit_system=system, fixed_credit=50.0)
    finish(result, 3000.0)
    validate(app)
    result.refresh_from_db()
    expected = 50.0 if system == CreditSystem.FIXED else 2000 * CREDIT_PER_SEC
    # What trickles brought is part of the whole amount, not added to it.
    assert result.granted_credit == result.claimed_credit == pytest.approx(expected)
    assert UserCredit.objects.get().total_credit == pytest.approx(expected)
    assert differences() == []
    claim = stored_explanation(result)
    assert claim is not None
    assert recomputed_credit(claim, workunit_facts(result.workunit), result.partial_credit) == pytest.approx(expected)
    ladder = explain(result, result.workunit)
    assert ladder is not None
    numbers = {step.label: step.number for step in ladder.steps}
    assert "Credited while it ran" not in numbers
    assert numbers["Granted now (credit)"] == pytest.approx(expected - part)


def test_parts_too_are_scaled_by_the_median_where_the_app_wants_it(app: App, host: Host) -> None:
    App.objects.update(version_average=VersionAverage.MEDIAN)
    version = make_version(app, pfc_n=500, pfc_avg=9.0, pfc_scale=1.0)
    job = make_result(make_workunit(app, min_quorum=1, target_nresults=1), host, app_version=version)
    record(host, version, pfc_n=20, pfc_avg=2.0)
    for other, average in zip(volunteers_of(3), (1.0, 1.0, 50.0), strict=True):
        record(other, version, pfc_n=20, pfc_avg=average)
    # The median of 1, 1, 2 and 50 is 1.5, which over this host's 2 is 0.75. The mean, 9, would make 4.5.
    assert grant_part(job.pk, 1000.0, NOON) == pytest.approx(0.75 * 1000 * CREDIT_PER_SEC)


def volunteers_of(number: int) -> list[Host]:
    owner = Host.objects.get().owner
    return [Host.objects.create(owner=owner, p_fpops=4e9) for _ in range(number)]
