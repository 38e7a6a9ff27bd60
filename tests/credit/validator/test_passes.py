"""A validator's pass in the database: what is decided, granted and kept, and in which order."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from pytest_django import Settings

from credit.engine.explanation import GrantRule
from credit.models import (
    App,
    AppVersion,
    AssimilateState,
    Comparison,
    CreditSystem,
    HostAppVersion,
    HostCredit,
    Outcome,
    ProcessorType,
    Result,
    ServerState,
    UserCredit,
    ValidateState,
    Workunit,
)
from credit.pages.explanation import stored_explanation
from credit.statistics.facts import workunit_facts
from credit.validator.comparison import RUNTIME_OUTLIER, Delivered, Fit
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.credit_engine_facts import about, recomputed_credit
from tests.support.credit_factories import make_app, make_result, make_version
from tests.support.validator_runs import EST, LATER, RIGHT, WRONG, differences, done, record, report, validate
from tools.benchmarks.harness.statements import statements

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]

# 1e13 FLOPs are 1e13 * 200 / 86400e9 = 23.148… credits: the default, without least average.
DEFAULT = EST * 200 / 86400e9


def states(workunit: Workunit) -> list[int]:
    return list(workunit.results.order_by("pk").values_list("validate_state", flat=True))


def test_results_that_agree_are_granted_and_the_workunit_goes_on(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit = done(app, version, *hosts[:2])
    made = validate(app)
    assert (made.nworkunits, made.ndecided, made.nvalid, made.ninvalid) == (1, 1, 2, 0)
    assert made.credit == pytest.approx(2 * DEFAULT)
    workunit.refresh_from_db()
    first = workunit.results.order_by("pk")[0]
    assert workunit.canonical_result == first
    # Nothing is normalised yet, so both claims are approximate, and the default is granted.
    assert workunit.canonical_credit == first.granted_credit == pytest.approx(DEFAULT)
    # The transitioner, who looks at it next, makes it ready to be assimilated.
    assert (workunit.need_validate, workunit.transition_at) == (False, LATER)
    assert first.granted_at == LATER
    transitioner.run(LATER)
    workunit.refresh_from_db()
    assert workunit.assimilate_state == AssimilateState.READY
    assert states(workunit) == [ValidateState.VALID] * 2
    assert differences() == []


def test_totals_and_recent_averages_move_by_what_is_granted(app: App, version: AppVersion, hosts: list[Host]) -> None:
    done(app, version, *hosts[:2])
    done(app, version, hosts[0], hosts[2])
    done(app, version, hosts[3], sent_at=LATER - dt.timedelta(days=2))
    validate(app)
    credit = UserCredit.objects.get(user=hosts[0].owner_id)
    assert credit.total_credit == pytest.approx(2 * DEFAULT)
    # The first grant is spread over the 2 h since the job was sent, the second is at the same moment: ln 2 / 7 of it.
    assert credit.expavg_credit == pytest.approx(DEFAULT * 12 + DEFAULT * 0.6931471805599453 / 7)
    assert credit.expavg_at == LATER
    assert HostCredit.objects.get(host=hosts[2]).total_credit == pytest.approx(DEFAULT)
    # Alone it is granted its claim, 1.2 times the default, spread over the time since this owner's own job was sent.
    assert UserCredit.objects.get(user=hosts[3].owner_id).expavg_credit == pytest.approx(1.2 * DEFAULT / 2)
    version.refresh_from_db()
    # Five grants: one spread over 2 h, four at the same moment.
    assert version.expavg_credit == pytest.approx(DEFAULT * 12 + 4.2 * DEFAULT * 0.6931471805599453 / 7)


def test_a_recent_average_of_a_later_time_keeps_it_when_the_clock_was_set_back(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    ahead = LATER + dt.timedelta(hours=1)
    UserCredit.objects.create(user=hosts[0].owner, total_credit=1.0, expavg_credit=1.0, expavg_at=ahead)
    done(app, version, hosts[0])
    validate(app)
    credit = UserCredit.objects.get(user=hosts[0].owner_id)
    # As if at the same moment: alone it is granted its claim, 1.2 times the default.
    assert credit.expavg_credit == pytest.approx(1 + 1.2 * DEFAULT * 0.6931471805599453 / 7)
    assert credit.expavg_at == ahead


def test_averages_of_host_and_version_get_a_sample_for_each_result(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    done(app, version, *hosts[:2])
    done(app, version, hosts[0], hosts[2], elapsed_secs=3500.0)
    validate(app)
    kept = HostAppVersion.objects.get(host=hosts[0])
    # 1.2 and 1.4 times the estimate
    assert (kept.pfc_n, kept.pfc_avg) == pytest.approx((2, 1.3))
    assert (kept.et_n, kept.et_avg) == pytest.approx((2, 3250 / EST))
    assert (kept.turnaround_n, kept.turnaround_avg) == pytest.approx((2, 3600))
    assert (kept.consecutive_valid, kept.error_rate) == pytest.approx((2, 0.1 * 0.95**2))
    version.refresh_from_db()
    assert (version.pfc_n, version.pfc_avg) == pytest.approx((4, 1.3))


def test_a_version_whose_first_sample_is_next_to_nothing_counts_the_next_ones_in_full(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    """Else one report would keep the version's average, and with it all claims of the app, near 0 for long."""
    done(app, version, hosts[0], elapsed_secs=1e-6)
    validate(app)
    for host in hosts[1:4]:
        done(app, version, host)
    validate(app)
    version.refresh_from_db()
    # (0 + 3 × 1.2) / 4
    assert (version.pfc_n, version.pfc_avg) == (4, about(0.9))


def test_claims_of_a_workunit_use_the_averages_from_before_it(app: App, hosts: list[Host]) -> None:
    version = make_version(app, pfc_n=100, pfc_avg=1.2, pfc_scale=1.0)
    record(hosts[0], version, pfc_n=10, pfc_avg=2.4)
    first = done(app, version, hosts[0], min_quorum=1)
    second = done(app, version, hosts[0], min_quorum=1)
    validate(app)
    one, two = first.results.get(), second.results.get()
    # The host is at 2.4 with 10 samples, the version at 1.2: half of 12e12 FLOPs.
    assert (one.host_pfc_n, one.host_pfc_avg, one.host_scale) == pytest.approx((10, 2.4, 0.5))
    assert one.granted_credit == pytest.approx(6e12 * 200 / 86400e9)
    # The 11th sample counts 0.01: 2.4 + 0.01 * (1.2 - 2.4) = 2.388. The version's average stays within the pass.
    assert (two.host_pfc_n, two.host_pfc_avg, two.version_pfc_n) == pytest.approx((11, 2.388, 100))
    assert not two.is_approximate


def test_a_wrong_result_is_invalid_and_gets_nothing(app: App, version: AppVersion, hosts: list[Host]) -> None:
    workunit = done(app, version, *hosts[:2])
    report(workunit, version, hosts[2], output_digest=WRONG)
    record(hosts[2], version, consecutive_valid=7, error_rate=0.3)
    validate(app)
    assert states(workunit) == [1, 1, 2]
    wrong = workunit.results.get(host=hosts[2])
    assert (wrong.granted_credit, wrong.claim_rule, wrong.granted_at) == (None, None, None)
    assert UserCredit.objects.get(user=hosts[2].owner_id).total_credit == 0
    kept = HostAppVersion.objects.get(host=hosts[2])
    assert (kept.consecutive_valid, kept.error_rate, kept.pfc_n) == pytest.approx((0, 0.4, 0))
    assert differences() == []


@pytest.mark.parametrize(
    ("digests", "min_quorum", "state", "outcome"),
    [
        pytest.param([RIGHT, WRONG], 2, ValidateState.INCONCLUSIVE, Outcome.SUCCESS, id="two that disagree"),
        pytest.param([RIGHT], 2, ValidateState.INIT, Outcome.SUCCESS, id="one of a quorum of two"),
        pytest.param([None], 1, ValidateState.INIT, Outcome.VALIDATE_ERROR, id="one whose outputs are not known"),
    ],
)
def test_results_that_do_not_decide_leave_the_workunit_to_the_transitioner(
    digests: list[bytes | None],
    min_quorum: int,
    state: int,
    outcome: int,
    app: App,
    version: AppVersion,
    hosts: list[Host],
) -> None:
    workunit = done(app, version, min_quorum=min_quorum, target_nresults=min_quorum)
    for host, digest in zip(hosts, digests, strict=False):
        report(workunit, version, host, output_digest=digest)
    assert validate(app).ninconclusive == (len(digests) if state == ValidateState.INCONCLUSIVE else 0)
    workunit.refresh_from_db()
    assert (workunit.canonical_result, workunit.need_validate, workunit.transition_at) == (None, False, LATER)
    assert set(workunit.results.values_list("validate_state", "outcome")) == {(state, outcome)}
    assert HostAppVersion.objects.filter(consecutive_valid__gt=0).count() == 0
    # Others decide.
    for host in hosts[len(digests) : 3]:
        report(workunit, version, host)
    Workunit.objects.update(need_validate=True)
    validate(app)
    decided = {RIGHT: ValidateState.VALID, WRONG: ValidateState.INVALID, None: state}
    assert states(workunit) == [decided[digest] for digest in [*digests, *[RIGHT] * (3 - len(digests))]]
    assert differences() == []


def test_a_late_valid_result_gets_the_grant_and_a_wrong_one_nothing(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit = done(app, version, *hosts[:2])
    validate(app)
    workunit.refresh_from_db()
    before = workunit.canonical_credit
    report(workunit, version, hosts[2], elapsed_secs=3500.0)
    report(workunit, version, hosts[3], output_digest=WRONG)
    Workunit.objects.update(need_validate=True, assimilate_state=AssimilateState.DONE)
    version.refresh_from_db()
    samples = version.pfc_n
    made = validate(app, LATER + dt.timedelta(hours=1))
    assert (made.nvalid, made.ninvalid, made.ndecided) == (1, 1, 0)
    workunit.refresh_from_db()
    assert states(workunit) == [1, 1, 1, 2]
    late = workunit.results.get(host=hosts[2])
    assert workunit.canonical_credit == before == late.granted_credit
    assert late.claimed_credit != before
    assert workunit.assimilate_state == AssimilateState.DONE
    # Its claim feeds the statistics.
    version.refresh_from_db()
    assert version.pfc_n == samples + 1
    assert differences() == []


def test_trickles_have_had_part_of_the_grant(app: App, version: AppVersion, hosts: list[Host]) -> None:
    workunit = done(app, version, *hosts[:2])
    part = workunit.results.order_by("pk")[0]
    part.partial_credit, part.partial_elapsed_secs = 10.0, 1000.0
    part.save()
    UserCredit.objects.create(user=hosts[0].owner, total_credit=10)
    HostCredit.objects.create(host=hosts[0], total_credit=10)
    AppVersion.objects.update(total_credit=10)
    made = validate(app)
    assert made.credit == pytest.approx(2 * DEFAULT - 10)
    assert UserCredit.objects.get(user=hosts[0].owner_id).total_credit == pytest.approx(DEFAULT)
    assert differences() == []


def test_missing_records_are_made_and_a_new_version_inherits_the_newest_older_one(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    middle, new = make_version(app, 101), make_version(app, 102)
    other_class = make_version(app, 101, plan_class="mt")
    record(hosts[0], version, pfc_n=3, pfc_avg=9.0)
    record(hosts[0], middle, pfc_n=4, pfc_avg=1.5, consecutive_valid=5, error_rate=0.02)
    record(hosts[1], other_class, pfc_n=7, pfc_avg=9.0)
    done(app, new, *hosts[:2])
    validate(app)
    heir = HostAppVersion.objects.get(host=hosts[0], app_version=new)
    # 4 samples of 1.5 on average and one of 1.2: 7.2 / 5
    assert (heir.pfc_n, heir.pfc_avg, heir.consecutive_valid) == pytest.approx((5, 1.44, 6))
    fresh = HostAppVersion.objects.get(host=hosts[1], app_version=new)
    assert (fresh.pfc_n, fresh.pfc_avg, fresh.consecutive_valid) == pytest.approx((1, 1.2, 1))
    assert HostAppVersion.objects.get(host=hosts[0], app_version=middle).pfc_n == 4


def test_anonymous_platform_has_a_record_for_each_type_of_processor(app: App, hosts: list[Host]) -> None:
    done(app, None, *hosts[:2])
    done(app, None, hosts[0], hosts[2], processor_type=ProcessorType.NVIDIA)
    validate(app)
    kept = HostAppVersion.objects.filter(host=hosts[0], app=app, app_version=None)
    assert sorted(kept.values_list("processor_type", "pfc_n")) == [("CPU", 1), ("NVIDIA", 1)]
    assert set(Result.objects.values_list("claim_rule", flat=True)) == {5}


def test_results_of_erased_owners_and_computers_are_granted_to_nobody(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit = done(app, version, *hosts[:2])
    workunit.results.filter(host=hosts[0]).update(host=None, user=None)
    made = validate(app)
    assert made.nvalid == 2
    assert UserCredit.objects.count() == HostCredit.objects.count() == 1
    assert differences() == []


@pytest.mark.parametrize("elapsed", [float("nan"), float("inf"), -1.0, 1e304, 0.0, None])
def test_impossible_run_times_are_decided_all_the_same(
    elapsed: float | None, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit = done(app, version, *hosts[:2], elapsed_secs=elapsed)
    validate(app)
    workunit.refresh_from_db()
    assert workunit.canonical_credit == pytest.approx(DEFAULT)
    version.refresh_from_db()
    assert (version.pfc_n, version.pfc_avg) == (0, None)
    assert differences() == []


def raising(first: object, second: object) -> bool:
    """A project's function with a mistake that the database notices."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")
    return True


def test_a_comparison_that_raises_judges_nobody_says_so_and_is_tried_again(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    App.objects.update(comparison=Comparison.CUSTOM, comparison_function=f"{__name__}.raising")
    workunit = done(app, version, *hosts[:2])
    made = validate(app)
    assert (made.nfaults, made.nvalid, made.ninvalid) == (1, 0, 0)
    workunit.refresh_from_db()
    assert states(workunit) == [ValidateState.INIT] * 2
    assert workunit.need_validate
    assert "division by zero" in workunit.validate_fault or "cannot be imported" in workunit.validate_fault
    assert validate(app).nworkunits == 0
    App.objects.update(comparison=Comparison.BITWISE)
    assert validate(app, LATER + dt.timedelta(hours=2)).nvalid == 2
    workunit.refresh_from_db()
    assert (workunit.validate_fault, workunit.validate_after) == ("", None)


def test_a_pass_leaves_other_apps_alone_and_takes_the_first_ones_first(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    other = make_app("other")
    strange = done(other, make_version(other), *hosts[:2])
    workunits = [done(app, version, *hosts[:2]) for _ in range(3)]
    assert validate(app, limit=2).nworkunits == 2
    waiting = set(Workunit.objects.filter(need_validate=True))
    assert waiting == {strange, workunits[2]}


def test_a_pass_over_nothing_new_changes_nothing(app: App, version: AppVersion, hosts: list[Host]) -> None:
    done(app, version, *hosts[:2])
    validate(app)
    tables = (Workunit, Result, HostAppVersion, AppVersion, UserCredit, HostCredit)
    before = [list(table.objects.order_by("pk").values()) for table in tables]
    assert validate(app).nworkunits == 0
    assert [list(table.objects.order_by("pk").values()) for table in tables] == before
    # Somebody asks for a workunit that is decided: nothing is granted twice.
    Workunit.objects.update(need_validate=True, transition_at=None)
    made = validate(app)
    assert (made.nworkunits, made.nresults, made.credit) == (1, 0, 0)
    after = [list(table.objects.order_by("pk").values()) for table in tables[1:]]
    assert after == before[1:]


def test_every_stored_claim_can_be_computed_again(app: App, hosts: list[Host]) -> None:
    version = make_version(app, pfc_n=100, pfc_avg=1.2, pfc_scale=0.7)
    App.objects.update(min_avg_pfc=0.8)
    record(hosts[0], version, pfc_n=10, pfc_avg=2.4)
    for elapsed in (3000.0, 0.0, 1e300, 123.456):
        done(app, version, hosts[0], hosts[1], elapsed_secs=elapsed)
        done(app, None, hosts[0], hosts[1], elapsed_secs=elapsed)
    validate(app)
    rules = set()
    for result in Result.objects.select_related("workunit"):
        claim = stored_explanation(result)
        assert claim is not None
        rules.add(claim.claim_rule)
        assert recomputed_credit(claim, workunit_facts(result.workunit)) == pytest.approx(
            result.claimed_credit, rel=1e-12
        )
    # Above the bound, no run time, anonymous default, first jobs, version and host, version only
    assert rules == {2, 4, 5, 9, 11, 12}
    assert differences() == []


@pytest.mark.parametrize("system", [system for system in CreditSystem if system != CreditSystem.CREDITNEW])
def test_the_other_credit_systems_grant_by_their_own_count(
    system: str, app: App, version: AppVersion, hosts: list[Host], settings: Settings
) -> None:
    App.objects.update(
        credit_system=system, fixed_credit=5.0, actual_flops_scale=2.0, max_credited_secs=1500.0,
        comparison=Comparison.CUSTOM, comparison_function=f"{__name__}.worth_seven",
    )  # fmt: skip
    settings.APP_FUNCTIONS = [f"{__name__}.worth_seven"]
    workunit = done(app, version, *hosts[:2], cpu_secs=2000.0, fpops_cumulative=9e12)
    Workunit.objects.update(credit=12.5)
    validate(app)
    workunit.refresh_from_db()
    expected = {
        CreditSystem.PEAK_FLOPS: 4e9 * 2000 * 200 / 86400e9,
        CreditSystem.ACTUAL_FLOPS: 2 * 9e12 * 200 / 86400e9,
        CreditSystem.FIXED: 5.0,
        CreditSystem.GIVEN: 12.5,
        # 3,000 s at 4 GFLOPS, of which 1,500 s are credited
        CreditSystem.RUN_TIME: 4e9 * 1500 * 200 / 86400e9,
        CreditSystem.ASSIGNED: 7.0,
    }
    assert workunit.canonical_credit == pytest.approx(expected[CreditSystem(system)])
    assert differences() == []


@pytest.mark.django_db(transaction=True)
def test_the_number_of_statements_does_not_depend_on_the_number_of_workunits(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    def workunits(number: int) -> None:
        for n in range(number):
            done(app, version, hosts[n % 4], hosts[(n + 1) % 4])

    # Records are made once, and statements prepared.
    workunits(8)
    validate(app)
    counts = []
    for number in (4, 60):
        workunits(number)
        counts.append(statements(lambda: validate(app)))
    # Two of them are the savepoint without which a fault in what is kept for previews would stop the pass.
    assert counts[0] == counts[1] <= 28
    # A pass that finds nothing: begin, a setting, the look for work, commit.
    assert statements(lambda: validate(app)) == 4


@pytest.mark.parametrize(("elapsed_secs", "looks_again"), [(3000.0, False), (150.0, True), (30_000.0, True)])
def test_an_odd_single_result_of_a_trusted_computer_waits_for_a_second_one(
    app: App, version: AppVersion, hosts: list[Host], elapsed_secs: float, looks_again: bool
) -> None:
    App.objects.update(adaptive_replication=True)
    # 3,000 s at 4 GFLOPS are 1.2 for each FLOP estimated, 150 s are 0.06, and 30,000 s are 12.
    record(hosts[0], version, pfc_n=50, pfc_avg=1.0, consecutive_valid=500, error_rate=0.0)
    workunit = done(app, version, hosts[0], elapsed_secs=elapsed_secs, sent_at=LATER - dt.timedelta(days=1))
    made = validate(app)
    assert (made.ndecided, made.nwaiting) == ((0, 1) if looks_again else (1, 0))
    transitioner.run(LATER)
    workunit.refresh_from_db()
    assert workunit.min_quorum == workunit.results.count() == (2 if looks_again else 1)
    if looks_again:
        assert states(workunit) == [ValidateState.INIT] * 2
        # The other's output differs: a third has to decide between them.
        Result.objects.filter(workunit=workunit, host=None).delete()
        report(workunit, version, hosts[1], output_digest=WRONG)
        Workunit.objects.filter(pk=workunit.pk).update(transition_at=LATER)
        transitioner.run(LATER)
        assert validate(app).ninconclusive == 2
    assert differences() == []


@pytest.mark.parametrize(("elapsed_secs", "granted_secs"), [(150.0, 150.0), (30_000.0, 2500.0)])
def test_an_odd_single_result_that_nobody_confirms_in_time_gets_no_more_than_the_default(
    app: App, version: AppVersion, hosts: list[Host], settings: Settings, elapsed_secs: float, granted_secs: float
) -> None:
    App.objects.update(adaptive_replication=True)
    record(hosts[0], version, pfc_n=50, pfc_avg=1.0, consecutive_valid=500, error_rate=0.0)
    workunit = done(app, version, hosts[0], elapsed_secs=elapsed_secs, sent_at=LATER - dt.timedelta(days=1))
    validate(app)
    transitioner.run(LATER)
    late = LATER + settings.PAIR_WAIT
    assert validate(app, late - dt.timedelta(seconds=1)).nworkunits == 0
    assert validate(app, late).nvalid == 1
    row = workunit.results.get(host=hosts[0])
    assert row.grant_rule == GrantRule.UNCONFIRMED_SINGLE
    # At 4 GFLOPS; the default of a job of 1e13 FLOPs is 2,500 s.
    assert row.granted_credit == pytest.approx(granted_secs * 4e9 * 200 / 86400e9)
    assert differences() == []
    # The copy that nobody took is not needed any more.
    transitioner.run(late)
    assert set(workunit.results.values_list("server_state", flat=True)) == {ServerState.OVER}


@pytest.mark.parametrize(("nfailed", "most"), [(2, 4), (99, 100)], ids=["room", "at the limit of 100"])
def test_an_odd_result_after_failures_has_room_for_a_second_one(
    app: App, version: AppVersion, hosts: list[Host], nfailed: int, most: int
) -> None:
    App.objects.update(adaptive_replication=True)
    record(hosts[0], version, pfc_n=50, pfc_avg=1.0, consecutive_valid=500, error_rate=0.0)
    workunit = done(app, version, hosts[0], elapsed_secs=150.0, sent_at=LATER - dt.timedelta(days=1))
    for _ in range(nfailed):
        make_result(workunit, server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    Workunit.objects.update(max_total_results=nfailed + 1, max_error_results=nfailed + 1, max_success_results=1)
    assert validate(app).nwaiting == 1
    transitioner.run(LATER)
    workunit.refresh_from_db()
    assert (workunit.error_mask, workunit.max_total_results, workunit.results.count()) == (0, most, most)
    assert workunit.max_success_results == 2


def test_the_first_system_uses_the_benchmark_of_when_the_job_was_sent(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    App.objects.update(credit_system=CreditSystem.PEAK_FLOPS)
    sent_with = done(app, version, hosts[0], p_fpops=1e9)
    before_it_was_kept = done(app, version, hosts[1])
    Host.objects.update(p_fpops=3e9)
    validate(app)
    # 2,900 s of CPU time at 1 GFLOPS, and at today's 3 GFLOPS
    assert sent_with.results.get().claimed_pfc == 2900 * 1e9
    assert before_it_was_kept.results.get().claimed_pfc == 2900 * 3e9


def worth_seven(first: Delivered, second: Delivered) -> Fit:
    return Fit(credit=7.0)


def says_outlier(first: Delivered, second: Delivered) -> bool | str:
    """Outputs agree; those of files that are called early come from jobs that ended early."""
    is_early = any(output.path == "early" for output in first.outputs)
    return RUNTIME_OUTLIER if first is second and is_early else True


@pytest.mark.parametrize(("rule_set", "nsamples"), [("published", 1), ("deployed", 1), ("letter", 2)])
def test_a_run_time_that_the_project_calls_an_outlier_is_marked_and_gives_no_samples(
    rule_set: str, nsamples: int, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    App.objects.update(
        rule_set=rule_set, comparison=Comparison.CUSTOM, comparison_function=f"{__name__}.{says_outlier.__name__}"
    )
    workunit = done(app, version, hosts[0], min_quorum=2)
    report(workunit, version, hosts[1], outputs=[{"name": "r_0", "path": "early", "nbytes": 1, "md5": "m"}])
    assert validate(app).nvalid == 2
    assert list(workunit.results.order_by("pk").values_list("is_runtime_outlier", flat=True)) == [False, True]
    version.refresh_from_db()
    assert version.pfc_n == nsamples
    assert HostAppVersion.objects.get(host=hosts[1]).pfc_n == nsamples - 1
