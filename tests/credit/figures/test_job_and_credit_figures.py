"""Figures of jobs and of credit, against rows in the database."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from credit.apps import CreditConfig
from credit.engine.explanation import ClaimRule
from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, ValidateState
from credit.figures import table
from credit.models import App, AppSnapshot, AppVersionSnapshot, ConfirmingPair, HostAppVersion, Result
from credit.statistics import markers
from portal.dashboard.reads import address
from portal.models import Host, User
from tests.support.credit_factories import make_app, make_result, make_success, make_version, make_workunit
from tests.support.operating_figures import samples

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def jobs(now: dt.datetime = NOON) -> dict[tuple[str, str], float]:
    return samples(table.JOB_READINGS, now)


def credit(now: dt.datetime = NOON) -> dict[tuple[str, str], float]:
    return samples(table.CREDIT_READINGS, now)


def test_what_waits_is_counted_by_app_with_the_age_of_the_oldest(app: App, studio: Host) -> None:
    make_app("birch", user_friendly_name="Birch")
    for hours in (5, 2):
        make_result(make_workunit(app), created_at=NOON - hours * HOUR)
    make_result(make_workunit(app), studio)
    make_result(make_workunit(app), studio, deadline_at=NOON - HOUR)
    for hours in (3, 1):
        waiting = make_workunit(app, need_validate=True)
        make_success(waiting, studio, received_at=NOON - hours * HOUR)
        make_success(waiting, studio, received_at=NOON - (hours + 4) * HOUR)
    ready = make_workunit(app)
    result = make_success(ready, studio, granted_at=NOON - 2 * HOUR)
    ready.assimilate_state, ready.canonical_result = AssimilateState.READY, result
    ready.save()
    make_workunit(app, file_delete_state=FileDeleteState.READY, assimilated_at=NOON - 7 * HOUR)
    make_workunit(app, transition_at=NOON - 4 * HOUR)
    # By a clock that was ahead.
    make_workunit(app, transition_at=NOON + HOUR)
    found = jobs()
    expected = {
        "jobs.unsent": 2,
        "jobs.unsent_oldest": 5 * 3600,
        "jobs.in_progress": 2,
        "jobs.late": 1,
        "jobs.to_validate": 2,
        # Its last result came three hours ago.
        "jobs.to_validate_oldest": 3 * 3600,
        "jobs.to_assimilate": 1,
        "jobs.to_assimilate_oldest": 2 * 3600,
        "jobs.not_comparable": 0,
    }
    assert {name: found[name, "Alpine"] for name in expected} == expected
    assert {name: found[name, "Birch"] for name in expected} == dict.fromkeys(expected, 0)
    assert (found["jobs.to_delete", ""], found["jobs.to_delete_oldest", ""]) == (1, 7 * 3600)
    assert (found["jobs.to_transition", ""], found["jobs.to_transition_oldest", ""]) == (2, 4 * 3600)


def test_the_number_of_rows_is_what_the_statistics_say(app: App) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_class SET reltuples = 12345678 WHERE oid = 'credit_result'::regclass")
    assert jobs()["jobs.rows", "credit_result"] == 12345678


def test_the_part_that_fails_is_told_from_ten_results_on(app: App, studio: Host) -> None:
    # In the last full hour, 11 to 12: nine good ones and three bad ones, a quarter.
    for _ in range(9):
        make_success(make_workunit(app), studio, received_at=NOON - 0.5 * HOUR)
    for _ in range(3):
        make_success(
            make_workunit(app), studio, received_at=NOON - 0.5 * HOUR, outcome=3, exit_status=1, output_digest=None
        )
    found = jobs(NOON + 0.5 * HOUR)
    assert found["jobs.failed_share", "Alpine"] == 25
    assert found["jobs.ended", "completed"] == 9
    assert found["jobs.failed_by_app", "Alpine"] == 3


def test_the_computers_that_fail_most_come_first(app: App, studio: Host) -> None:
    attic = Host.objects.create(owner=studio.owner, domain_name="attic")
    cellar = Host.objects.create(owner=studio.owner, domain_name="cellar")
    for host, share in ((studio, 0.3), (attic, 0.9), (cellar, 0.1)):
        HostAppVersion.objects.create(host=host, app=app, failing_share=share)
    rows: Any = table.failing_hosts(NOON)
    assert [(row[0][0], row[2]) for row in rows] == [("attic", "90 %"), ("studio", "30 %")]
    assert rows[0][0][1] == f"/admin/credit/result/?host__id__exact={attic.pk}"


def test_credit_by_version_is_what_versions_have_granted(app: App) -> None:
    version = make_version(app, total_credit=1234.5, ngranted=10, pfc_n=20, pfc_avg=1.5, pfc_scale=0.8)
    App.objects.filter(pk=app.pk).update(min_avg_pfc=1.2)
    found = credit()
    assert found["credit.granted", str(version)] == 1234.5
    assert found["credit.grants", str(version)] == 10
    assert found["credit.scale", str(version)] == 0.8
    assert found["credit.average", str(version)] == 1.5
    assert found["credit.least_average", "Alpine"] == 1.2


def grant(app: App, host: Host, credits: float, **fields: Any) -> Result:
    """fpops_est is 1e13: worth 1e13 × 200 / 86400e9 = 23.148 credits."""
    return make_success(
        make_workunit(app),
        host,
        received_at=NOON - HOUR,
        granted_credit=credits,
        validate_state=ValidateState.VALID,
        **{"claim_rule": ClaimRule.VERSION_AND_HOST, "is_approximate": False, **fields},
    )


def test_spread_and_claims_are_of_the_newest_results(app: App, studio: Host) -> None:
    version = make_version(app)
    worth = 1e13 * 200 / 86400e9
    # Eleven grants from 1.0 to 2.0 times the worth: tenths at 1.1, 1.5 and 1.9.
    for place in range(11):
        grant(app, studio, worth * (1 + place / 10), app_version=version)
    grant(app, studio, 1.0, claim_rule=ClaimRule.ABOVE_BOUND, is_approximate=True)
    assert ("credit.suspicious", "Alpine") not in credit()  # one of twelve says nothing of an app
    for _ in range(8):
        grant(app, studio, 1.0)
    found = credit()
    assert found["credit.median", str(version)] == pytest.approx(1.5)
    assert found["credit.spread", str(version)] == pytest.approx(100 * 0.8 / 1.5)
    assert found["credit.approximate", "Alpine"] == pytest.approx(100 / 20)
    assert found["credit.suspicious", "Alpine"] == pytest.approx(100 / 20)


def test_programs_that_end_with_any_number_make_few_series(app: App, studio: Host) -> None:
    for status in range(1, 16):
        for _ in range(2 if status == 1 else 1):
            over: Any = {"server_state": ServerState.OVER, "outcome": Outcome.CLIENT_ERROR, "exit_status": status}
            make_result(make_workunit(app), studio, **{**over, "received_at": NOON - 0.5 * HOUR})
    found = jobs(NOON + 0.5 * HOUR)
    failed = {label: count for (name, label), count in found.items() if name == "jobs.failed"}
    assert len(failed) == table.MAX_SERIES + 1
    assert sum(failed.values()) == 16
    assert max(failed, key=lambda label: failed[label] * (label != "other")).startswith("exit status 1")
    assert failed["other"] == 16 - 2 - (table.MAX_SERIES - 1)


def test_computers_on_probation_are_counted_once_each(app: App, studio: Host) -> None:
    HostAppVersion.objects.create(host=studio, app=app)
    HostAppVersion.objects.create(host=studio, app=app, app_version=make_version(app))
    assert credit()["credit.probation", "Alpine"] == 1


def test_pairs_that_are_listed_are_counted_and_lead_to_their_list(app: App, studio: Host, desk: Client) -> None:
    assert credit()["credit.pairs", "Alpine"] == 0
    other = User.objects.create_user("other@example.org", "secret", name="Other")
    one, two = sorted((studio.owner_id, other.pk))
    pair = ConfirmingPair.objects.create(
        app=app, one_id=one, other_id=two, together=9, expected=0.1, chance=0.001, needs_another=False
    )
    assert credit()["credit.pairs", "Alpine"] == 1
    [figure] = [figure for figure in table.CREDIT if figure.name == "credit.pairs"]
    assert list(desk.get(address(figure.link)).context["cl"].queryset) == [pair]


def test_scales_of_months_come_from_the_snapshots(app: App) -> None:
    version = make_version(app)
    for days, scale in ((100, 0.5), (20, 0.6), (10, 0.7)):
        AppVersionSnapshot.objects.create(
            app_version=version, taken_at=NOON - dt.timedelta(days=days), pfc_n=1, pfc_scale=scale, expavg_credit=0
        )
    AppSnapshot.objects.create(app=app, taken_at=NOON - dt.timedelta(days=50), min_avg_pfc=1.1)
    since = NOON - dt.timedelta(days=31)
    figures = {figure.name: figure for figure in table.CREDIT}
    scales = figures["credit.scale"].history
    least = figures["credit.least_average"].history
    assert scales is not None and least is not None
    points = scales(since, NOON)[str(version)]
    # What held at the beginning, each change, and the end.
    assert [value for _, value in points] == [0.5, 0.6, 0.7, 0.7]
    assert (points[0][0], points[-1][0]) == (since.timestamp(), NOON.timestamp())
    assert [value for _, value in least(since, NOON)["Alpine"]] == [1.1, 1.1]


def test_other_parts_of_the_site_add_markers_to_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    event = markers.Event(NOON, "probation on", "/admin/")
    later = markers.Event(NOON + HOUR, "probation off")
    monkeypatch.setattr(CreditConfig, "credit_events", lambda *_: [later, event])
    assert markers.markers(None, NOON - HOUR, NOON) == [event, later]


def test_what_waits_for_deletion_leads_to_the_workunits_that_wait(app: App, desk: Client) -> None:
    waiting = make_workunit(app, file_delete_state=FileDeleteState.READY, assimilated_at=NOON)
    make_workunit(app)
    for figure in table.JOBS:
        if figure.name.startswith("jobs.to_delete"):
            assert list(desk.get(address(figure.link)).context["cl"].queryset) == [waiting]
