"""Which results make a computer trusted, and raise its factor, through the database."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from credit.models import App, AppVersion, HostAppVersion, Outcome, ServerState, ValidateState
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import make_result, make_workunit
from tests.support.validator_runs import LATER, WRONG, differences, done, record, report, validate

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)
PROVEN: dict[str, Any] = {"consecutive_valid": 50, "error_rate": 0.02, "scale_probation": False}


def run(app: App, version: AppVersion, host: Host, **fields: Any) -> None:
    """One more valid result: 3,000 s at 4 GFLOPS, 1.2 FLOPs for each that was estimated."""
    done(app, version, host, sent_at=LATER - DAY, **fields)
    validate(app, LATER)


def test_samples_of_a_spell_without_a_failure_become_clean_ones(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    record(hosts[0], version, host_scale_at=LATER + DAY)
    run(app, version, hosts[0])
    run(app, version, hosts[0])
    row = HostAppVersion.objects.get()
    assert (row.spell_pfc_n, row.spell_pfc_avg, row.clean_pfc_n) == (2, about(1.2), 0)
    HostAppVersion.objects.update(host_scale_at=LATER - DAY)
    # It ends the spell, and is itself a sample of the time after it.
    run(app, version, hosts[0])
    row.refresh_from_db()
    assert (row.scale_probation, row.clean_pfc_n, row.clean_pfc_avg) == (False, 3, about(1.2))
    assert (row.spell_pfc_n, row.spell_pfc_avg, row.pfc_n) == (0, None, 3)


def test_after_a_time_out_the_samples_before_it_do_not_count(app: App, version: AppVersion, hosts: list[Host]) -> None:
    record(hosts[0], version, host_scale_at=LATER + DAY)
    run(app, version, hosts[0])
    make_result(
        make_workunit(app, transition_at=LATER),
        hosts[0],
        app_version=version,
        server_state=ServerState.IN_PROGRESS,
        sent_at=LATER - 9 * DAY,
        deadline_at=LATER - DAY,
    )
    transitioner.run(LATER)
    assert HostAppVersion.objects.get().consecutive_valid == 0
    run(app, version, hosts[0])
    row = HostAppVersion.objects.get()
    assert (row.spell_pfc_n, row.pfc_n, row.clean_pfc_n) == (1, 2, 0)


def test_a_new_version_inherits_the_clean_samples(app: App, version: AppVersion, hosts: list[Host]) -> None:
    record(hosts[0], version, pfc_n=20, pfc_avg=1.0, clean_pfc_n=15, clean_pfc_avg=1.2, **PROVEN)
    newer = AppVersion.objects.create(app=app, platform=version.platform, version_num=version.version_num + 1)
    run(app, newer, hosts[0])
    row = HostAppVersion.objects.get(app_version=newer)
    assert (row.clean_pfc_n, row.clean_pfc_avg) == (16, about(1.2))


@pytest.mark.parametrize("checks", [True, False])
def test_a_single_result_of_a_computer_on_probation_waits_for_a_second_one(
    app: App, version: AppVersion, hosts: list[Host], checks: bool
) -> None:
    App.objects.update(adaptive_replication=True, host_scale_check=checks)
    record(hosts[0], version, pfc_n=50, pfc_avg=1.2, host_scale_at=LATER + DAY, consecutive_valid=20, error_rate=0.0)
    workunit = done(app, version, hosts[0], sent_at=LATER - DAY)
    assert validate(app).nodd == checks
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
        assert (row.scale_probation, row.host_scale_at) == (True, expected)
        HostAppVersion.objects.filter(host=host).update(scale_probation=False, host_scale_at=ends[hosts.index(host)])
