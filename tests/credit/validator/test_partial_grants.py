"""Partial credit in the database: granted while a job runs, and never a second time when it ends."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from credit.engine.recent_credit import add_credit
from credit.engine.rules import Rules
from credit.engine.states import WorkunitError
from credit.models import (
    App,
    AppVersion,
    CreditSystem,
    HostAppVersion,
    HostCredit,
    Outcome,
    PartState,
    Result,
    ResultPart,
    RuleSet,
    ServerState,
    UserCredit,
    ValidateState,
    VersionAverage,
    Workunit,
)
from credit.pages.explanation import explain, stored_explanation
from credit.statistics.facts import workunit_facts
from credit.validator.partial_grants import grant_part
from credit.validator.settled_parts import settle_parts
from portal.models import Host
from tests.support.credit_engine_facts import recomputed_credit
from tests.support.credit_factories import NOON, make_result, make_success, make_version, make_workunit
from tests.support.validator_runs import LATER, RIGHT, differences, record, validate, volunteers

pytestmark = pytest.mark.django_db

CREDIT_PER_SEC = 4e9 * 200 / 86400e9
"""At the 4 GFLOPS of the tests' jobs."""


@pytest.fixture
def host(db: None) -> Host:
    return volunteers(1)[0]


def running(app: App, version: AppVersion, host: Host) -> Result:
    """A job alone on its workunit, sent an hour ago, whose claim is not approximate; both factors are 1."""
    AppVersion.objects.filter(pk=version.pk).update(pfc_n=200, pfc_avg=1.2, pfc_scale=1.0)
    record(host, version, pfc_n=20, pfc_avg=1.2)
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
    assert "Credited while running" not in numbers
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


def jobs(app: App, version: AppVersion, host: Host, number: int, **fields: Any) -> list[Result]:
    """As many jobs of one computer, all sent an hour ago."""
    first = running(app, version, host)
    others = [
        make_result(make_workunit(app, min_quorum=1, target_nresults=1), host, app_version=version)
        for _ in range(number - 1)
    ]
    Result.objects.filter(host=host).update(**fields)
    return [first, *others]


def test_fifty_jobs_in_hand_bring_what_one_processor_can_earn(app: App, version: AppVersion, host: Host) -> None:
    Host.objects.update(ncpus=1)
    # Each names the hour for which it is out: 4e9 × 3,600 × 200 / 86,400e9 = 100 / 3.
    for job in jobs(app, version, host, 50):
        grant_part(job.pk, 3600.0, NOON)
        grant_part(job.pk, 3600.0, NOON)
    assert HostCredit.objects.get().total_credit == pytest.approx(100 / 3)
    # It holds when jobs fail, and for others that come in their place.
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    new = make_result(make_workunit(app), host, app_version=version)
    assert grant_part(new.pk, 3600.0, NOON) == 0
    assert grant_part(new.pk, 3600.0, NOON + dt.timedelta(minutes=6)) == pytest.approx(10 / 3)
    assert differences() == []


def test_processors_and_gpus_have_their_own_time(app: App, version: AppVersion, host: Host) -> None:
    Host.objects.update(ncpus=2, coprocs=[{"type": "NVIDIA", "count": 1}])
    of_gpu = make_version(app, 101, plan_class="cuda", processor_type="NVIDIA", gpu_usage=0.5, pfc_n=200, pfc_avg=1.2)
    AppVersion.objects.filter(pk=of_gpu.pk).update(pfc_scale=1.0)
    record(host, of_gpu, pfc_n=20, pfc_avg=1.2)
    on_cpu = jobs(app, version, host, 4)
    on_gpu = [
        make_result(make_workunit(app), host, app_version=of_gpu, processor_type="NVIDIA", ninstances=used)
        for used in (None, 0.5, 0.5)
    ]
    got = [grant_part(job.pk, 3600.0, NOON) for job in (*on_cpu, *on_gpu)]
    # Two processors, and two jobs with half of the GPU each, one of them sent by another server.
    assert got == pytest.approx([100 / 3, 100 / 3, 0, 0, 100 / 3, 100 / 3, 0])


def test_a_job_of_all_processors_uses_the_time_of_all(app: App, version: AppVersion, host: Host) -> None:
    Host.objects.update(ncpus=4)
    first, second = jobs(app, version, host, 2, ninstances=4.0)
    assert grant_part(first.pk, 3600.0, NOON) == pytest.approx(100 / 3)
    assert grant_part(second.pk, 3600.0, NOON) == 0


def test_a_part_that_is_approximate_waits_and_everything_comes_once(app: App, version: AppVersion, host: Host) -> None:
    result = running(app, version, host)
    HostAppVersion.objects.update(pfc_n=9)
    assert grant_part(result.pk, 1000.0, NOON) == 0
    result.refresh_from_db()
    assert (result.partial_elapsed_secs, result.partial_credit, result.parts.count()) == (0, 0, 0)
    # With its tenth job the computer has a factor.
    HostAppVersion.objects.update(pfc_n=10)
    assert grant_part(result.pk, 2000.0, NOON) == pytest.approx(2000 * CREDIT_PER_SEC)
    finish(result, 3000.0)
    assert validate(app).credit == pytest.approx(1000 * CREDIT_PER_SEC)
    assert UserCredit.objects.get().total_credit == pytest.approx(3000 * CREDIT_PER_SEC)
    assert differences() == []


@pytest.mark.parametrize("rule_set", [RuleSet.LETTER, RuleSet.DEPLOYED])
def test_the_letter_and_the_deployed_rules_know_no_such_bounds(
    rule_set: str, app: App, version: AppVersion, host: Host
) -> None:
    App.objects.update(rule_set=rule_set)
    Host.objects.update(ncpus=1)
    both = jobs(app, version, host, 2)
    HostAppVersion.objects.update(pfc_n=0, pfc_avg=None)
    assert [grant_part(job.pk, 3600.0, NOON) for job in both] == pytest.approx([100 / 3, 100 / 3])


@pytest.mark.parametrize(
    ("ending", "is_last"),
    [
        ({"outcome": Outcome.CLIENT_ERROR}, True),
        ({"outcome": Outcome.SUCCESS, "received_at": LATER, "validate_state": ValidateState.INVALID}, True),
        # A late report brings the rest, once.
        ({"outcome": Outcome.NO_REPLY}, False),
        ({"outcome": Outcome.CLIENT_DETACHED}, False),
    ],
    ids=["an error", "an invalid result", "no reply", "detached"],
)
def test_what_a_job_got_in_parts_stays_when_it_never_ends_well(
    ending: dict[str, Any], is_last: bool, app: App, version: AppVersion, host: Host
) -> None:
    result = running(app, version, host)
    part = grant_part(result.pk, 1000.0, NOON)
    Result.objects.update(server_state=ServerState.OVER, **ending)
    assert grant_part(result.pk, 2000.0, LATER) == 0
    assert UserCredit.objects.get().total_credit == pytest.approx(part)
    assert differences() == []
    if not is_last:
        finish(result, 3000.0)
    for _ in range(2):
        Workunit.objects.update(need_validate=True)
        validate(app)
    assert UserCredit.objects.get().total_credit == pytest.approx(part if is_last else 3000 * CREDIT_PER_SEC)
    assert differences() == []


def test_each_part_is_kept_with_what_it_was_made_of(app: App, version: AppVersion, host: Host) -> None:
    result = running(app, version, host)
    AppVersion.objects.update(pfc_scale=0.5)
    parts = [grant_part(result.pk, secs, NOON) for secs in (1000.0, 2200.0)]
    kept = list(ResultPart.objects.all())
    assert [(part.from_secs, part.to_secs, part.credit) for part in kept] == [
        (0, 1000, parts[0]),
        (1000, 2200, parts[1]),
    ]
    assert [(part.raw_pfc, part.version_scale, part.host_scale) for part in kept] == [
        (4e12, 0.5, 1.0),
        (4.8e12, 0.5, 1.0),
    ]
    assert [part.credit for part in kept] == pytest.approx([1000 * CREDIT_PER_SEC / 2, 1200 * CREDIT_PER_SEC / 2])
    assert differences() == []
    ResultPart.objects.filter(from_secs=1000).delete()
    [fault] = differences()
    assert f"result {result.pk}: its parts add up to" in fault


@pytest.mark.parametrize(
    "fields", [{"credit": "NaN"}, {"credit": 0}, {"to_secs": 500}, {"to_secs": "Infinity"}, {"claim_rule": None}]
)
def test_the_database_refuses_impossible_parts(
    fields: dict[str, Any], app: App, version: AppVersion, host: Host
) -> None:
    result = running(app, version, host)
    grant_part(result.pk, 1000.0, NOON)
    grant_part(result.pk, 2000.0, NOON)
    with pytest.raises(IntegrityError), transaction.atomic():
        ResultPart.objects.filter(from_secs=1000).update(**fields)


def test_times_that_cannot_be_are_refused(app: App, version: AppVersion, host: Host) -> None:
    grant_part(running(app, version, host).pk, 1000.0, NOON)
    for text in ("infinity", "-infinity"):
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE credit_hostcredit SET cpus_credited_until = %s", [text])


# --- processors that nobody has seen, and parts that are not confirmed yet ---


def test_processors_that_a_computer_only_claims_earn_as_four(app: App, version: AppVersion, host: Host) -> None:
    """The case of 68 jobs on "1,024 processors": each names 20 s, and all are given back."""
    Host.objects.update(ncpus=1024)
    sent_at = NOON - dt.timedelta(seconds=40)
    for job in jobs(app, version, host, 68, sent_at=sent_at):
        grant_part(job.pk, 20.0, NOON)
    # 4 processors × 40 s at 4e9 FLOPS
    assert HostCredit.objects.get().total_credit == pytest.approx(4 * 40 * CREDIT_PER_SEC)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    assert settle_parts(LATER).credit_taken_back == pytest.approx(4 * 40 * CREDIT_PER_SEC)
    version.refresh_from_db()
    for account in (HostCredit.objects.get(), UserCredit.objects.get(), version):
        assert (account.total_credit, account.expavg_credit) == (0, 0)
    assert set(ResultPart.objects.values_list("state", "settled_at")) == {(PartState.TAKEN_BACK, LATER)}
    assert differences() == []


@pytest.mark.parametrize(("njobs", "ninstances"), [(10, None), (2, 5.0)])
def test_as_many_processors_count_as_valid_jobs_have_shown_to_run_at_once(
    njobs: int, ninstances: float | None, app: App, version: AppVersion, host: Host
) -> None:
    Host.objects.update(ncpus=1024)
    in_progress = jobs(app, version, host, 30, sent_at=NOON)
    shown: dict[str, Any] = {"app_version": version, "validate_state": ValidateState.VALID, "ninstances": ninstances}
    for _ in range(njobs):
        # Sent together, out for an hour, of which each ran 50 minutes: 10 × 50 / 60 processors at least
        make_success(make_workunit(app), host, **shown)
    for job in in_progress:
        grant_part(job.pk, 60.0, NOON + dt.timedelta(seconds=60))
    assert HostCredit.objects.get().total_credit == pytest.approx(10 * 5 / 6 * 60 * CREDIT_PER_SEC)


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ({"outcome": Outcome.SUCCESS, "validate_state": ValidateState.INIT}, PartState.PROVISIONAL),
        ({"outcome": Outcome.SUCCESS, "validate_state": ValidateState.VALID}, PartState.CONFIRMED),
        ({"outcome": Outcome.SUCCESS, "validate_state": ValidateState.INVALID}, PartState.TAKEN_BACK),
        ({"outcome": Outcome.VALIDATE_ERROR}, PartState.TAKEN_BACK),
        ({"outcome": Outcome.NO_REPLY}, PartState.TAKEN_BACK),
    ],
)
def test_parts_of_a_record_on_probation_are_settled_when_the_job_has_ended(
    ending: dict[str, int], state: int, app: App, version: AppVersion, host: Host
) -> None:
    job = running(app, version, host)
    part = grant_part(job.pk, 1000.0, NOON)
    settle_parts(NOON)
    assert ResultPart.objects.get().state == PartState.PROVISIONAL
    Result.objects.update(server_state=ServerState.OVER, received_at=NOON, elapsed_secs=1.0, cpu_secs=1.0, **ending)
    settle_parts(LATER)
    settle_parts(LATER)
    assert ResultPart.objects.get().state == state
    is_back = state == PartState.TAKEN_BACK
    assert UserCredit.objects.get().total_credit == pytest.approx(0 if is_back else part)
    assert UserCredit.objects.get().expavg_credit >= 0


def test_parts_of_a_job_whose_workunit_was_cancelled_are_taken_back(app: App, version: AppVersion, host: Host) -> None:
    job = running(app, version, host)
    grant_part(job.pk, 1000.0, NOON)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.SUCCESS, received_at=NOON)
    Workunit.objects.update(error_mask=WorkunitError.CANCELLED)
    assert settle_parts(LATER).ntaken_back == 1


def test_only_what_was_provisional_is_taken_back(app: App, version: AppVersion, host: Host) -> None:
    job = running(app, version, host)
    HostAppVersion.objects.update(clean_pfc_n=10, clean_pfc_avg=1.2)
    first = grant_part(job.pk, 1000.0, NOON)
    # On probation again
    HostAppVersion.objects.update(clean_pfc_n=0, clean_pfc_avg=None)
    assert grant_part(job.pk, 2000.0, NOON) > 0
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    settle_parts(LATER)
    assert UserCredit.objects.get().total_credit == pytest.approx(first)
    row = Result.objects.get()
    assert row.partial_elapsed_secs == 1000.0
    assert row.partial_credit == pytest.approx(first)


def test_a_late_report_brings_what_was_taken_back(app: App, version: AppVersion, host: Host) -> None:
    job = running(app, version, host)
    grant_part(job.pk, 1000.0, NOON)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    settle_parts(NOON)
    assert differences() == []
    finish(job, 3000.0)
    assert validate(app).credit == pytest.approx(3000 * CREDIT_PER_SEC)
    assert UserCredit.objects.get().total_credit == pytest.approx(3000 * CREDIT_PER_SEC)
    assert differences() == []


def test_parts_of_a_computer_off_probation_are_granted_for_good(app: App, version: AppVersion, host: Host) -> None:
    job = running(app, version, host)
    HostAppVersion.objects.update(clean_pfc_n=10, clean_pfc_avg=1.2)
    part = grant_part(job.pk, 1000.0, NOON)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    settle_parts(LATER)
    assert (ResultPart.objects.get().state, UserCredit.objects.get().total_credit) == (PartState.KEPT, part)
