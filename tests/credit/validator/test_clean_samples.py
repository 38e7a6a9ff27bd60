"""Which results make a computer trusted, and raise its factor, through the database."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from credit.engine.rules import RuleSet
from credit.models import App, AppVersion, HostAppVersion, Outcome, ServerState, ValidateState
from credit.statistics.host_records import create_missing
from credit.validator import passes
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import make_result, make_version, make_workunit
from tests.support.validator_runs import LATER, WRONG, differences, done, record, report, validate

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)
PROVEN: dict[str, Any] = {"consecutive_valid": 50, "error_rate": 0.02, "scale_probation": False}


def run(app: App, version: AppVersion, host: Host, **fields: Any) -> None:
    """One more valid result: 3,000 s at 4 GFLOPS, 1.2 FLOPs for each that was estimated."""
    done(app, version, host, sent_at=LATER - DAY, **fields)
    validate(app, LATER)


def test_samples_become_clean_when_they_have_waited_for_a_delay_bound(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    record(hosts[0], version, recent_pfc_n=12, recent_pfc_avg=1.1, samples_at=LATER - 8 * DAY, pfc_n=12, pfc_avg=1.1)
    run(app, version, hosts[0], delay_bound_secs=7 * 86400)
    row = HostAppVersion.objects.get()
    assert (row.waiting_pfc_n, row.waiting_pfc_avg, row.samples_at) == (12, about(1.1), LATER)
    assert (row.recent_pfc_n, row.recent_pfc_avg, row.clean_pfc_n) == (1, about(1.2), 0)
    run(app, version, hosts[0], delay_bound_secs=7 * 86400)
    row.refresh_from_db()
    assert (row.recent_pfc_n, row.waiting_pfc_n, row.clean_pfc_n) == (2, 12, 0)
    HostAppVersion.objects.update(samples_at=LATER - 8 * DAY)
    run(app, version, hosts[0], delay_bound_secs=7 * 86400)
    row.refresh_from_db()
    assert (row.clean_pfc_n, row.clean_pfc_avg) == (12, about(1.1))
    assert (row.recent_pfc_n, row.waiting_pfc_n, row.pfc_n) == (1, 2, 15)


def test_when_jobs_that_were_held_back_time_out_the_short_ones_beside_them_do_not_count(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    waiting = {"recent_pfc_n": 12, "recent_pfc_avg": 0.2, "waiting_pfc_n": 12, "waiting_pfc_avg": 0.2}
    record(hosts[0], version, clean_pfc_n=15, clean_pfc_avg=1.2, samples_at=LATER - 8 * DAY, **waiting)
    for _ in range(6):
        make_result(
            make_workunit(app, transition_at=LATER),
            hosts[0],
            app_version=version,
            server_state=ServerState.IN_PROGRESS,
            sent_at=LATER - 9 * DAY,
            deadline_at=LATER - DAY,
        )
    transitioner.run(LATER)
    # 1 − 0.99^6
    assert HostAppVersion.objects.get().failing_share == about(0.0585198506)
    run(app, version, hosts[0])
    row = HostAppVersion.objects.get()
    assert (row.recent_pfc_n, row.waiting_pfc_n, row.clean_pfc_n, row.samples_at) == (1, 0, 15, LATER)
    assert row.failing_share == about(0.0585198506 * 0.99)


def test_a_new_version_inherits_the_samples_and_the_failing_share(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    known = {"clean_pfc_n": 15, "clean_pfc_avg": 1.2, "waiting_pfc_n": 7, "waiting_pfc_avg": 1.1}
    record(hosts[0], version, pfc_n=20, pfc_avg=1.0, failing_share=0.04, samples_at=LATER - DAY, **known, **PROVEN)
    newer = AppVersion.objects.create(app=app, platform=version.platform, version_num=version.version_num + 1)
    run(app, newer, hosts[0])
    row = HostAppVersion.objects.get(app_version=newer)
    assert (row.clean_pfc_n, row.clean_pfc_avg, row.waiting_pfc_n) == (15, about(1.2), 7)
    assert (row.recent_pfc_n, row.failing_share, row.samples_at) == (1, about(0.0396), LATER - DAY)


@pytest.mark.parametrize("checks", [True, False])
def test_a_single_result_of_a_computer_on_probation_waits_for_a_second_one(
    app: App, version: AppVersion, hosts: list[Host], checks: bool
) -> None:
    App.objects.update(adaptive_replication=True, host_scale_check=checks)
    record(hosts[0], version, pfc_n=50, pfc_avg=1.2, host_scale_at=LATER + DAY, consecutive_valid=20, error_rate=0.0)
    workunit = done(app, version, hosts[0], sent_at=LATER - DAY)
    assert validate(app).nwaiting == checks
    transitioner.run(LATER)
    workunit.refresh_from_db()
    assert workunit.results.count() == 1 + checks
    assert differences() == []


def test_single_results_bring_no_trust_and_compared_ones_do(app: App, version: AppVersion, hosts: list[Host]) -> None:
    App.objects.update(adaptive_replication=True)
    for host in hosts[:2]:
        record(host, version, **PROVEN)
    run(app, version, hosts[0])
    trust = HostAppVersion.objects.values_list("consecutive_valid", "error_rate")
    assert trust.get(host=hosts[0]) == (50, 0.02)
    done(app, version, *hosts[:2], sent_at=LATER - DAY)
    validate(app)
    assert trust.get(host=hosts[0]) == trust.get(host=hosts[1]) == (51, about(0.019))


def test_in_an_app_without_replicas_valid_results_bring_trust(app: App, version: AppVersion, hosts: list[Host]) -> None:
    record(hosts[0], version, **PROVEN)
    run(app, version, hosts[0])
    assert HostAppVersion.objects.get().consecutive_valid == 51


def test_a_wrong_result_begins_a_spell_and_never_shortens_one(app: App, version: AppVersion, hosts: list[Host]) -> None:
    ends = [None, LATER - DAY, LATER + 30 * DAY]
    for host, end in zip(hosts, ends, strict=False):
        record(host, version, host_scale_at=end, **PROVEN)
    for host in hosts[:3]:
        good = done(app, version, *[h for h in hosts if h != host][:2], delay_bound_secs=7 * 86400)
        wrong = report(good, version, host, output_digest=WRONG)
        validate(app)
        wrong.refresh_from_db()
        assert (wrong.validate_state, wrong.outcome) == (ValidateState.INVALID, Outcome.SUCCESS)
        row = HostAppVersion.objects.get(host=host)
        expected = max(row_end for row_end in (ends[hosts.index(host)], LATER + 7 * DAY) if row_end is not None)
        assert (row.scale_probation, row.host_scale_at, row.failing_share) == (True, expected, about(0.01))
        HostAppVersion.objects.filter(host=host).update(scale_probation=False, host_scale_at=ends[hosts.index(host)])


def shares(version: AppVersion) -> list[float]:
    rows = HostAppVersion.objects.filter(app_version=version).order_by("host_id")
    return list(rows.values_list("failing_share", flat=True))


@pytest.mark.parametrize("has_both", [False, True])
def test_wrong_results_of_the_version_before_count_for_the_new_ones_share(
    app: App, version: AppVersion, hosts: list[Host], has_both: bool
) -> None:
    """Otherwise who holds long jobs back until the next release would hand in wrong outputs for them."""
    newer, other = make_version(app, 101), make_version(app, 102, plan_class="mt")
    for host in hosts[:3]:
        for each in (newer, other):
            record(host, each, failing_share=0.5, **PROVEN)
    workunits = [done(app, version, *hosts[:2]) for _ in range(2)]
    for workunit in workunits:
        report(workunit, version, hosts[2], output_digest=WRONG)
    if has_both:
        done(app, newer, *hosts[1:3])
    validate(app, LATER)
    # Two more failures of the third computer: 1 − 0.5 × 0.99²; a valid result before them: 0.5 × 0.99.
    kept = 0.5 * 0.99 if has_both else 0.5
    assert shares(newer) == pytest.approx([0.5, kept, 1 - (1 - kept) * 0.99**2])
    assert shares(version) == pytest.approx([0, 0, 1 - 0.99**2])
    assert shares(other) == [0.5] * 3
    row = HostAppVersion.objects.get(host=hosts[2], app_version=newer)
    assert (row.scale_probation, row.consecutive_valid) == (False, 51 if has_both else 50)
    assert differences() == []


def test_wrong_results_found_late_count_for_the_new_versions_share_too(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit = done(app, version, *hosts[:2])
    validate(app, LATER)
    newer = make_version(app, 101)
    record(hosts[2], newer)
    report(workunit, version, hosts[2], output_digest=WRONG)
    type(workunit).objects.update(need_validate=True)
    validate(app, LATER)
    assert shares(newer) == pytest.approx([0.01])


def test_a_pass_that_starts_again_counts_no_wrong_results_of_workunits_that_another_pass_took(
    app: App, version: AppVersion, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = make_version(app, 101)
    record(hosts[2], newer, failing_share=0.5)
    report(done(app, version, *hosts[:2]), version, hosts[2], output_digest=WRONG)
    other = done(app, version, *hosts[:2])

    def while_another_pass_takes_the_first(*args: Any) -> None:
        monkeypatch.setattr(passes, "create_missing", create_missing)
        create_missing(*args)
        assert validate(app, LATER, limit=1).ninvalid == 1

    # Records of the older version are missing, so the first attempt ends after it has compared the outputs.
    monkeypatch.setattr(passes, "create_missing", while_another_pass_takes_the_first)
    made = validate(app, LATER)
    assert (made.nfaults, made.ninvalid, made.ndecided) == (0, 0, 1)
    other.refresh_from_db()
    assert (other.need_validate, other.canonical_result_id is None) == (False, False)
    assert shares(newer) == pytest.approx([1 - 0.5 * 0.99])


def test_to_the_letter_wrong_results_count_for_no_share(app: App, version: AppVersion, hosts: list[Host]) -> None:
    App.objects.update(rule_set=RuleSet.LETTER)
    newer = make_version(app, 101)
    record(hosts[2], newer)
    report(done(app, version, *hosts[:2]), version, hosts[2], output_digest=WRONG)
    validate(app, LATER)
    assert shares(newer) == [0]
