"""Jobs for their submitter's own computers: nobody else can confirm them, so they earn no credit."""

from __future__ import annotations

import pytest

from credit.engine.explanation import GrantRule
from credit.models import App, AppVersion, CreditSystem, HostAppVersion, Result, ServerState, UserCredit
from credit.previews.facts import replay_of
from credit.previews.settings import checked
from credit.statistics import pass_log
from credit.validator.partial_grants import grant_part
from portal.models import Host
from tests.support.credit_factories import NOON, make_result, make_workunit
from tests.support.validator_runs import differences, done, record, validate

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("system", [CreditSystem.CREDITNEW, CreditSystem.FIXED, CreditSystem.GIVEN])
def test_they_bring_no_credit_and_count_in_no_average(
    app: App, version: AppVersion, hosts: list[Host], system: CreditSystem
) -> None:
    App.objects.update(adaptive_replication=True, credit_system=system, fixed_credit=50.0)
    record(hosts[0], version, pfc_n=50, pfc_avg=1.0, consecutive_valid=500, error_rate=0.0)
    # Ten times as long as usual: were it for everybody, somebody would have to confirm it.
    own = done(app, version, hosts[0], is_own=True, credit=1e6, elapsed_secs=30_000.0)
    others = done(app, version, hosts[1], credit=7.0)
    assert (validate(app).ndecided, differences()) == (2, [])
    result = own.results.get()
    assert (result.granted_credit, result.grant_rule) == (0, GrantRule.OWN)
    own.refresh_from_db()
    assert own.canonical_result_id == result.pk
    assert others.results.get().granted_credit
    assert UserCredit.objects.get(user=hosts[0].owner).total_credit == 0
    assert HostAppVersion.objects.get(host=hosts[0]).pfc_n == 50
    version.refresh_from_db()
    assert version.pfc_n == 1


def test_a_preview_grants_nothing_either(app: App, version: AppVersion, hosts: list[Host]) -> None:
    own = done(app, version, hosts[0], is_own=True)
    validate(app)
    window = pass_log.window(app.pk, 100)
    assert window is not None
    as_is = [app.credit_system, app.credit_system]
    app.refresh_from_db()
    replay = replay_of(app, checked(app, {"app": {"credit_system": as_is}}), *window[:2])
    [outcome] = [outcome for logged in pass_log.read(app.pk, *window[:2]) for outcome in replay.step(logged)]
    assert (outcome.workunit, outcome.after.credit, outcome.after.grant_rule) == (own.pk, 0, GrantRule.OWN)


def test_nor_do_they_while_they_run(app: App, version: AppVersion, hosts: list[Host]) -> None:
    version.pfc_n, version.pfc_avg, version.pfc_scale = 200, 1.2, 1.0
    version.save()
    record(hosts[0], version, pfc_n=20, pfc_avg=1.2)
    jobs = [make_result(make_workunit(app, is_own=is_own), hosts[0], app_version=version) for is_own in (True, False)]
    assert [bool(grant_part(job.pk, 1000.0, NOON)) for job in jobs] == [False, True]
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 2
