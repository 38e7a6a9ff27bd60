"""The transitioner on the tables: time-outs, replacements, hosts' records, locks, and a fixed number of statements."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from credit.engine.rules import Rules
from credit.models import (
    App,
    AssimilateState,
    HostAppVersion,
    Outcome,
    Result,
    ServerState,
    ValidateState,
    Workunit,
    WorkunitError,
)
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.credit_factories import NOON, make_app, make_result, make_success, make_version, make_workunit

pytestmark = pytest.mark.django_db

WEEK_LATER = NOON + dt.timedelta(days=7)


def due(app: App, **fields: Any) -> Workunit:
    return make_workunit(app, transition_at=NOON, **fields)


def test_a_new_workunit_gets_its_results(app: App) -> None:
    workunit = due(app, target_nresults=3, priority=7)
    assert transitioner.run_pass(NOON) == transitioner.Pass(1, 0, 3)
    made = list(workunit.results.order_by("id"))
    assert [result.name for result in made] == [f"{workunit.name}_{number}" for number in range(3)]
    assert {(result.server_state, result.app_id, result.priority, result.created_at) for result in made} == {
        (ServerState.UNSENT, app.pk, 7, NOON)
    }
    workunit.refresh_from_db()
    assert workunit.transition_at is None


def test_what_a_clock_that_was_ahead_marked_is_looked_at_at_once(app: App) -> None:
    workunit = make_workunit(app, transition_at=NOON + dt.timedelta(hours=1), min_quorum=1, target_nresults=1)
    assert transitioner.run_pass(NOON) == transitioner.Pass(1, 0, 1)
    workunit.refresh_from_db()
    assert workunit.transition_at is None


def test_a_result_made_in_bulk_is_as_one_that_django_makes(app: App) -> None:
    workunit = due(app, min_quorum=1, target_nresults=1)
    transitioner.run_pass(NOON)
    bulk = workunit.results.get()
    single = Result.objects.create(workunit=workunit, app=app, name="by_hand", created_at=NOON)
    single.refresh_from_db()
    different = {
        field.name
        for field in Result._meta.concrete_fields
        if getattr(bulk, field.attname) != getattr(single, field.attname)
    }
    assert different == {"id", "name", "queue_shift"}


def test_a_late_result_is_replaced_by_one_that_goes_first(app: App, studio: Host) -> None:
    workunit = make_workunit(app)
    late = make_result(workunit, studio)
    make_result(workunit)
    assert transitioner.run(NOON) == transitioner.Pass()
    assert transitioner.run(WEEK_LATER) == transitioner.Pass(1, 1, 1)
    late.refresh_from_db()
    assert (late.server_state, late.outcome) == (ServerState.OVER, Outcome.NO_REPLY)
    replacement = Result.objects.get(name=f"{workunit.name}_2")
    assert replacement.priority == 1
    assert transitioner.run(WEEK_LATER) == transitioner.Pass()


def record(host: Host, app: App, **fields: Any) -> HostAppVersion:
    return HostAppVersion.objects.create(host=host, app=app, **fields)


def test_a_time_out_counts_against_the_host_as_the_rules_say(app: App, studio: Host) -> None:
    version = make_version(app)
    fields = {"error_rate": 0.02, "consecutive_valid": 12, "max_jobs_per_day": 40, "scale_probation": False}
    blamed = record(studio, app, app_version=version, **fields)
    untouched = record(studio, app, app_version=make_version(app, 101), **fields)
    own_program = record(studio, app, **fields)
    for _ in range(2):
        make_result(make_workunit(app, delay_bound_secs=86_400), studio, app_version=version)
    transitioner.run(WEEK_LATER)
    expected = HostVersionFacts(error_rate=0.02, consecutive_valid=12, max_jobs_per_day=40, scale_probation=False)
    for _ in range(2):
        probation.count_error(expected, WEEK_LATER.timestamp(), 86_400, Rules.published())
        probation.count_crash(expected, most=100)
    blamed.refresh_from_db()
    assert blamed.host_scale_at is not None
    assert blamed.error_rate == pytest.approx(expected.error_rate)  # 0.02 + 2 × 0.1
    assert (blamed.max_jobs_per_day, blamed.consecutive_valid, blamed.scale_probation) == (38, 0, True)
    assert (expected.max_jobs_per_day, expected.consecutive_valid, expected.scale_probation) == (38, 0, True)
    assert blamed.host_scale_at.timestamp() == expected.host_scale_time
    for other in (untouched, own_program):
        other.refresh_from_db()
        assert (other.error_rate, other.max_jobs_per_day) == (0.02, 40)


@pytest.mark.parametrize(
    ("processor_type", "before", "after"),
    [
        # A quota of 4 after 5, and an error rate that ends at 1.
        pytest.param("NVIDIA", (5, 0.95), (4, 1.0), id="one of a GPU counts for the GPU"),
        pytest.param("CPU", (1, 0.0), (1, 0.1), id="no quota falls below one"),
        pytest.param("CPU", (0, 0.0), (0, 0.1), id="a quota that is not set yet stays so"),
    ],
)
def test_a_time_out_of_a_hosts_own_program_counts_for_its_processor_type(
    app: App, studio: Host, processor_type: str, before: tuple[int, float], after: tuple[int, float]
) -> None:
    others = {"CPU": "NVIDIA", "NVIDIA": "CPU"}
    own = record(studio, app, processor_type=processor_type, max_jobs_per_day=before[0], error_rate=before[1])
    other = record(studio, app, processor_type=others[processor_type], max_jobs_per_day=7, error_rate=0.3)
    make_result(make_workunit(app), studio, processor_type=processor_type)
    transitioner.run(WEEK_LATER)
    for row in (own, other):
        row.refresh_from_db()
    assert [(row.max_jobs_per_day, row.error_rate) for row in (own, other)] == [after, (7, 0.3)]


def test_too_many_errors_end_the_workunit(app: App, studio: Host) -> None:
    workunit = due(app, max_error_results=1)
    for _ in range(2):
        make_success(workunit, studio, outcome=Outcome.CLIENT_ERROR, exit_status=3)
    waiting, success = make_result(workunit), make_success(workunit, studio)
    transitioner.run(NOON)
    for row in (workunit, waiting, success):
        row.refresh_from_db()
    assert workunit.error_mask == WorkunitError.TOO_MANY_ERROR_RESULTS
    assert workunit.assimilate_state == AssimilateState.READY
    assert waiting.outcome == Outcome.DIDNT_NEED
    assert success.validate_state == ValidateState.NO_CHECK


def test_statements_do_not_depend_on_the_number_of_workunits(app: App, studio: Host) -> None:
    counts = []
    for nworkunits in (1, 30):
        for _ in range(nworkunits):
            make_result(due(app), studio)
            make_success(due(app, max_error_results=1), studio)
        with CaptureQueriesContext(connection) as captured:
            assert transitioner.run_pass(WEEK_LATER).nworkunits == 2 * nworkunits
        counts.append(len([query for query in captured if "SAVEPOINT" not in query["sql"]]))
    # Lock workunits, count and lock results, change results, hosts, make results, change workunits, none is queued.
    assert counts == [8, 8]


def test_a_pass_is_no_larger_than_its_limit(app: App) -> None:
    for _ in range(5):
        due(app)
    assert [transitioner.run_pass(NOON, limit=2).nworkunits for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_what_a_report_or_a_validator_holds_is_left_to_the_next_pass(studio: Host) -> None:
    app = make_app()
    reported, validated, free = due(app), due(app), due(app)
    result = make_result(reported, studio)
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM credit_result WHERE id = %s FOR NO KEY UPDATE", [result.pk])
            cursor.execute("SELECT 1 FROM credit_workunit WHERE id = %s FOR NO KEY UPDATE", [validated.pk])
            assert transitioner.run(WEEK_LATER) == transitioner.Pass(1, 0, 2)
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert free.results.count() == 2
    result.refresh_from_db()
    assert result.outcome == Outcome.INIT
    assert transitioner.run(WEEK_LATER) == transitioner.Pass(2, 1, 4)


def test_a_pass_that_fails_leaves_everything_as_it_was(studio: Host) -> None:
    app = make_app()
    workunit = due(app)
    late = make_result(workunit, studio)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        transitioner.run_pass(WEEK_LATER)
        raise ZeroDivisionError
    late.refresh_from_db()
    workunit.refresh_from_db()
    assert (late.outcome, workunit.transition_at, workunit.results.count()) == (Outcome.INIT, NOON, 1)
