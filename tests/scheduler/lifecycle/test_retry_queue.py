"""A workunit with faulty data holds up no other, in any of the background steps."""

from __future__ import annotations

import datetime as dt
import signal
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.test import Client
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry
from pytest_django import Settings

from credit.models import App, AssimilateState, FileDeleteState, Result, Workunit
from portal.models import Host
from scheduler import tasks
from scheduler.lifecycle import assimilator, purge, retry_queue, transitioner
from scheduler.lifecycle.assimilator import Finished
from scheduler.lifecycle.figures import RETRY_QUEUE
from scheduler.lifecycle.retry_queue import StepBatch, run_batches
from scheduler.models import ArchivedWorkunit, KeptOutput, RetryEntry, Step
from tests.support.credit_factories import NOON, make_app, make_result, make_success, make_workunit

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]
MINUTE = dt.timedelta(minutes=1)
HOUR = dt.timedelta(hours=1)


def aside() -> list[str]:
    return sorted(RetryEntry.objects.values_list("workunit__name", flat=True))


def test_a_workunit_whose_results_cannot_be_made_waits_and_all_others_go_on(app: App) -> None:
    workunits = [make_workunit(app, transition_at=NOON, name=f"w{n}", target_nresults=2) for n in range(20)]
    # A result of another workunit has the name that one of these needs.
    taken = make_result(make_workunit(app), name="w7_1")
    done = transitioner.run(NOON)
    assert (done.nworkunits, done.ncreated, aside()) == (19, 38, ["w7"])
    fault = RetryEntry.objects.get()
    assert (fault.step, fault.ntries, fault.retry_at) == (Step.TRANSITION, 1, NOON + 10 * MINUTE)
    assert "result_name" in fault.fault
    # Not again until its time, then at growing intervals, and once it can be done it is forgotten.
    assert transitioner.run(NOON + 9 * MINUTE) == transitioner.Pass()
    transitioner.run(NOON + 10 * MINUTE)
    fault.refresh_from_db()
    assert (fault.ntries, fault.retry_at) == (2, NOON + 30 * MINUTE)
    taken.delete()
    assert transitioner.run(NOON + 30 * MINUTE) == transitioner.Pass(1, 0, 2)
    assert (aside(), workunits[7].results.count()) == ([], 2)


def test_one_that_is_late_and_cannot_be_replaced_is_not_looked_at_again_at_each_pass(app: App, studio: Host) -> None:
    late, other = (make_result(make_workunit(app, name=name), studio, deadline_at=NOON) for name in ("late", "other"))
    # Each gets one replica beside the late one, and one in its place.
    make_result(make_workunit(app), name="late_2")
    assert transitioner.run(NOON + MINUTE) == transitioner.Pass(1, 1, 2)
    other.refresh_from_db()
    late.refresh_from_db()
    assert (aside(), late.server_state, other.server_state) == (["late"], 4, 5)
    assert transitioner.run(NOON + 2 * MINUTE) == transitioner.Pass()


def test_outputs_that_cannot_be_kept_hold_up_no_others(app: App, studio: Host) -> None:
    for number in range(12):
        workunit = make_workunit(
            app, name=f"w{number}", assimilate_state=AssimilateState.READY, output_files=[{"open_name": "out"}],
            error_mask=1,
        )  # fmt: skip
        nbytes: Any = "many" if number == 5 else 3
        outputs = [{"name": f"w{number}_0_0", "path": "p", "nbytes": nbytes, "md5": "0" * 32}]
        workunit.canonical_result = make_success(workunit, studio, outputs=outputs)
        workunit.save()
    assert assimilator.run(NOON) == 11
    assert (aside(), KeptOutput.objects.count()) == (["w5"], 11)
    assert assimilator.run(NOON) == 0
    Result.objects.filter(name="w5_0").update(outputs=[])
    assert assimilator.run(NOON + HOUR) == 1
    assert aside() == []


called: list[tuple[str, list[str]]] = []


def take(finished: Finished) -> None:
    called.append((finished.workunit.name, aside()))
    if finished.workunit.name == "w1":
        raise SoftTimeLimitExceeded


def wait_in_the_database(finished: Finished) -> None:
    if finished.workunit.name == "w1":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")


def hand_over_four(app: App, function: str) -> None:
    App.objects.update(assimilation_function=f"{__name__}.{function}")
    for number in range(4):
        make_workunit(app, name=f"w{number}", assimilate_state=AssimilateState.READY, error_mask=1)


def test_a_function_that_hangs_undoes_nothing_and_ends_the_pass(app: App) -> None:
    called.clear()
    hand_over_four(app, "take")
    # A second one that hangs would not be interrupted, and what was done before it would be undone.
    assert (assimilator.run(NOON), aside()) == (1, ["w1"])
    assert RetryEntry.objects.get().fault == "The app's function did not end in time."
    assert (assimilator.run(NOON), aside()) == (2, ["w1"])
    assert called == [("w0", []), ("w1", []), ("w2", ["w1"]), ("w3", ["w1"])]
    assert RetryEntry.objects.get().ntries == 1
    assert tasks.finish.soft_time_limit == tasks.FINISH_SECS
    # Also if it has to wait for a query that was left behind
    assert tasks.FINISH_SECS + assimilator.QUERY_SECS < settings.CELERY_TASK_TIME_LIMIT


def test_a_query_of_a_function_that_takes_too_long_is_ended(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assimilator, "QUERY_SECS", 1)
    hand_over_four(app, "wait_in_the_database")
    assert (assimilator.run(NOON), aside()) == (3, ["w1"])
    assert "statement timeout" in RetryEntry.objects.get().fault


@pytest.mark.django_db(transaction=True)
def test_a_function_that_is_interrupted_in_a_query_is_queued_too(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(assimilator, "QUERY_SECS", 1)
    hand_over_four(make_app(), "wait_in_the_database")
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        assert (assimilator.run(NOON), aside()) == (0, ["w1"])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert assimilator.run(NOON) == 3


beside: list[int] = []


def run_beside(finished: Finished) -> None:
    def run() -> int:
        try:
            return assimilator.run(NOON)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        beside.append(pool.submit(run).result(timeout=60))


@pytest.mark.django_db(transaction=True)
def test_a_function_is_called_by_one_pass_at_a_time(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    beside.clear()
    monkeypatch.setattr(assimilator, "BATCH", 1)
    hand_over_four(make_app(), "run_beside")
    assert assimilator.run(NOON) == 4
    assert beside == [0, 0, 0, 0]


def test_a_pass_ends_after_its_time_and_nobody_is_blamed(app: App) -> None:
    hand_over_four(app, "take")
    assert assimilator.run(NOON, until=monotonic()) == 0

    def run(batch: StepBatch) -> int:
        batch.ids = [1]
        raise SoftTimeLimitExceeded

    with pytest.raises(SoftTimeLimitExceeded):
        run_batches(Step.ASSIMILATE, NOON, 1000, run)
    assert not RetryEntry.objects.exists()


def test_one_that_the_archive_cannot_take_holds_up_no_others(app: App, settings: Settings) -> None:
    settings.JOBS_KEPT_DAYS = 0
    ended = {"assimilate_state": 2, "error_mask": 1, "file_delete_state": FileDeleteState.DONE, "assimilated_at": NOON}
    for number in range(10):
        make_workunit(app, name=f"w{number}", **ended)
    there = ArchivedWorkunit.objects.create(id=10**9, app=app, name="w3", error_mask=0, facts={}, archived_at=NOON)
    assert purge.run(NOON + MINUTE) == 9
    assert aside() == ["w3"]
    assert purge.run(NOON + 2 * MINUTE) == 0
    there.delete()
    assert purge.run(NOON + HOUR) == 1
    assert not RetryEntry.objects.exists()
    assert not Workunit.objects.exists()


def test_the_time_to_the_next_try_ends_at_a_day(app: App) -> None:
    workunit = make_workunit(app)
    for _ in range(40):
        retry_queue.enqueue(Step.ARCHIVE, {workunit.pk: "x\0" * 1000}, NOON)
    fault = RetryEntry.objects.get()
    assert (fault.ntries, fault.retry_at, len(fault.fault)) == (40, NOON + dt.timedelta(days=1), 500)


@pytest.mark.parametrize(
    ("step", "due"),
    [
        (Step.TRANSITION, {"transition_at": NOON}),
        (Step.ASSIMILATE, {"assimilate_state": AssimilateState.READY, "error_mask": 1}),
        (Step.DELETE_FILES, {"file_delete_state": FileDeleteState.READY}),
    ],
)
def test_what_another_worker_has_done_meanwhile_is_not_queued(app: App, step: Step, due: dict[str, Any]) -> None:
    waits, done = make_workunit(app, name="waits", **due), make_workunit(app, name="done")
    retry_queue.enqueue(step, {waits.pk: "x", done.pk: "x"}, NOON)
    assert aside() == ["waits"]


@pytest.mark.django_db(transaction=True)
def test_what_another_worker_is_just_doing_is_not_queued(transactional_db: None, studio: Host) -> None:
    late = make_result(make_workunit(make_app(), name="late"), studio, deadline_at=NOON)

    def enqueue() -> None:
        try:
            retry_queue.enqueue(Step.TRANSITION, {late.workunit_id: "x"}, NOON + MINUTE)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert transitioner.run_pass(NOON + MINUTE).ntimed_out == 1
            setting = pool.submit(enqueue)
            with connection.cursor() as cursor:
                while not cursor.rowcount > 0:
                    cursor.execute("SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))")
        setting.result(timeout=60)
    assert aside() == []


def test_a_database_at_fault_sets_nothing_aside(app: App) -> None:
    workunit = make_workunit(app)

    def run(batch: StepBatch) -> int:
        batch.ids = [workunit.pk]
        raise OperationalError("the connection is lost")

    with pytest.raises(OperationalError):
        run_batches(Step.ARCHIVE, NOON, 10, run)
    assert not RetryEntry.objects.exists()


def test_operators_see_them_in_the_admin_and_in_the_metrics_and_can_have_them_tried_again(
    app: App, desk: Client
) -> None:
    workunit = make_workunit(app, name="w1", transition_at=NOON)
    retry_queue.enqueue(Step.TRANSITION, {workunit.pk: "<b>unlucky</b>"}, NOON + 1000 * HOUR)
    page = desk.get("/admin/scheduler/retryentry/").content.decode()
    assert "Retry queue" in page
    assert "state transition" in page
    assert "&lt;b&gt;unlucky&lt;/b&gt;" in page
    chosen = {"action": "try_now", "_selected_action": [str(RetryEntry.objects.get().pk)]}
    assert desk.post("/admin/scheduler/retryentry/", chosen, follow=True).status_code == 200
    assert RetryEntry.objects.get().retry_at < NOON + 1000 * HOUR
    registry = CollectorRegistry()
    registry.register(RETRY_QUEUE)
    assert b'cobblestone_workunits_set_aside{step="transition"} 1.0\n' in generate_latest(registry)
