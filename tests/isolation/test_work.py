"""What writes jobs and credit, in many orders of the statements: each job is sent, taken and credited once."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from django.db import transaction

from accounting.account_data.erasure import erase_due
from accounting.computers.merge import merge
from credit.models import App, Batch, Outcome, Result, ServerState, UserCredit, Workunit
from credit.validator.partial_grants import grant_part
from credit.validator.passes import run_pass
from credit.validator.settled_parts import settle_parts
from portal.clients import sync_driver
from portal.models import Host, RequestedWork, User
from portal.people.accounts import ClientAuthError
from portal.requested_work import queue as requested_work
from scheduler.engine.facts import JobQuery
from scheduler.engine.lanes import Lane, LaneKind
from scheduler.lifecycle import transitioner
from scheduler.models import PlanClass
from scheduler.programs.release import ReleaseError, read_release, release_version, sign_files
from scheduler.ready_jobs.ready_queue import lease_jobs
from scheduler.rpc import queue, writes
from scheduler.submission.batches import cancel
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from tests.support.credit_factories import make_result, make_workunit
from tests.support.interleavings import Scene, Work, connection_of_its_own, try_all
from tests.support.scheduler_clients import names, result_xml
from tests.support.validator_runs import record
from tests.support.work_scenes import (
    NOON,
    app_with_jobs,
    asks,
    computer_with_work,
    credit_is_right,
    delivered,
    known,
    volunteer,
    waiting_workunit,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("are_one_persons", [False, True])
def test_two_computers_ask_for_the_copies_of_one_workunit(are_one_persons: bool) -> None:
    def make() -> Scene:
        app = app_with_jobs()
        first = volunteer()
        computers = [known(first), known(first if are_one_persons else volunteer())]

        def check_(replies: list[Any]) -> None:
            sent = [name for reply in replies for name in names(reply, "result")]
            results = Result.objects.filter(app=app)
            assert sorted(sent) == sorted(
                results.filter(server_state=ServerState.IN_PROGRESS).values_list("name", flat=True)
            )
            assert max(Counter(sent).values(), default=0) <= 1
            assert max(Counter(results.exclude(user=None).values_list("user", flat=True)).values(), default=0) <= 1

        return Scene([asks(computer, 1) for computer in computers], check_)

    try_all(make)


@pytest.mark.parametrize("way", ["pick", "pick of lanes", "pick elsewhere", "reserve"])
def test_who_cannot_have_a_workunit_holds_none_of_its_copies(way: str) -> None:
    """Else two computers that bind two workunits could wait for each other's copies: whoever binds one moves them."""
    app = app_with_jobs()
    copy = Result.objects.order_by("pk").last()
    assert copy is not None
    query = JobQuery(app.pk, 5, 1e18, 0, 1e18, 1e18, True, -32_768, 0, lanes=[1] if way == "pick of lanes" else [])
    picks: dict[str, Any] = {
        "pick elsewhere": lambda: queue.pick_elsewhere(1, [query], [query], [], NOON),
        "reserve": lambda: writes.reserve([copy.pk]),
    }
    lock = "SELECT FROM {} = %s FOR NO KEY UPDATE SKIP LOCKED"
    with connection_of_its_own() as binding, connection_of_its_own() as looking, binding.transaction():
        binding.execute(lock.format("credit_workunit WHERE id"), [copy.workunit_id])
        with transaction.atomic():
            had: Any = sync_driver.run(picks.get(way, lambda: queue.pick(1, [query]))())
            assert had in (False, ([], {}), ([], ANY))
            free = looking.execute(lock.format("credit_result WHERE workunit_id"), [copy.workunit_id])
            assert free.rowcount == 2


def test_one_computer_reports_twice_at_once() -> None:
    def make() -> Scene:
        app = app_with_jobs(2)
        computer = known(volunteer())
        asks(computer, 2)()
        report = "".join(result_xml(name) for name in computer.jobs)
        twice = [asks(computer, 0, results=report) for _ in range(2)]
        had = list(computer.jobs)

        def check_(replies: list[Any]) -> None:
            for reply in replies:
                assert sorted(names(reply, "result_ack")) == sorted(had)
            assert Result.objects.filter(app=app, server_state=ServerState.OVER).count() == len(had) == 2

        return Scene(twice, check_)

    try_all(make)


def test_a_report_comes_when_its_job_times_out() -> None:
    def make() -> Scene:
        app = app_with_jobs(1, 1, target_nresults=1, min_quorum=1, transition_at=NOON)
        computer = known(volunteer())
        asks(computer, 1)()
        late = NOON + dt.timedelta(days=2)
        (name,) = computer.jobs
        Workunit.objects.filter(app=app).update(transition_at=late)

        def check_(outcomes: list[Any]) -> None:
            assert names(outcomes[1], "result_ack") == [name]
            transitioner.run(late + dt.timedelta(minutes=1))
            result, workunit = Result.objects.get(name=name), Workunit.objects.get(app=app)
            assert (result.server_state, result.outcome) == (ServerState.OVER, 1), result.outcome
            assert workunit.need_validate
            run_pass(app.pk, late + dt.timedelta(minutes=2))
            credit_is_right()

        return Scene([lambda: transitioner.run(late), asks(computer, 0, late, result_xml(name))], check_)

    try_all(make)


@pytest.mark.parametrize("is_reported", [False, True], ids=["a dispatch", "a report"])
def test_an_account_is_erased_meanwhile(is_reported: bool) -> None:
    """Results have no foreign keys to their volunteers and computers: none may name one that is gone."""

    def make() -> Scene:
        app = app_with_jobs(2, 1, target_nresults=1, min_quorum=1)
        User.objects.update(deletion_asked_at=None)
        user = volunteer()
        computer = known(user)
        asks(computer, 1)()
        User.objects.filter(pk=user.pk).update(deletion_asked_at=NOON - dt.timedelta(days=15))
        report = "".join(result_xml(name) for name in computer.jobs) if is_reported else ""

        def check_(outcomes: list[Any]) -> None:
            assert outcomes[0] == 1, outcomes
            assert isinstance(outcomes[1], (str, ClientAuthError)), outcomes
            assert not Result.objects.filter(app=app, user__isnull=False).exists()
            credit_is_right()

        return Scene([lambda: erase_due(NOON), asks(computer, 0 if is_reported else 1, results=report)], check_)

    try_all(make)


@pytest.mark.parametrize("nhosts", [2, 4], ids=["of the same computers", "of others, but of one version"])
def test_two_validators_of_one_app(nhosts: int) -> None:
    def make() -> Scene:
        app = app_with_jobs(0)
        hosts = [computer_with_work(volunteer()) for _ in range(nhosts)]
        for pair in (hosts[:2], hosts[-2:]):
            waiting_workunit(app, *pair)
        passes = [lambda: run_pass(app.pk, NOON, 1), lambda: run_pass(app.pk, NOON, 2)]

        def check_(reports: list[Any]) -> None:
            assert sum(report.nworkunits for report in reports) <= 2
            run_pass(app.pk, NOON)
            assert Result.objects.filter(app=app, granted_at__isnull=False).count() == 4
            assert UserCredit.objects.filter(user__in=[host.owner_id for host in hosts]).count() == nhosts
            credit_is_right()

        return Scene(passes, check_)

    try_all(make)


def test_two_messages_of_one_job_are_credited_once() -> None:
    def make() -> Scene:
        app = app_with_jobs(0)
        app.versions.update(pfc_n=200, pfc_avg=1.2, pfc_scale=1.0)
        host = computer_with_work(volunteer())
        version = app.versions.get()
        record(host, version, pfc_n=20, pfc_avg=1.2)
        job = make_result(make_workunit(app), host, app_version=version)
        grants = [lambda: grant_part(job.pk, 1000.0, NOON) for _ in range(2)]

        def check_(credits: list[Any]) -> None:
            job.refresh_from_db()
            # 1,000 s at 4 GFLOPS, by both or by one of them
            assert sum(credits) == pytest.approx(1000 * 4e9 * 200 / 86400e9)
            assert (job.partial_elapsed_secs, job.partial_credit) == pytest.approx((1000, sum(credits)))
            credit_is_right()

        return Scene(grants, check_)

    try_all(make)


def test_credit_is_granted_while_its_computer_is_merged_into_another() -> None:
    def make() -> Scene:
        app = app_with_jobs(0)
        user = volunteer()
        old, new = NOON - dt.timedelta(days=9), NOON - dt.timedelta(days=1)
        older = computer_with_work(user, created_at=old, last_contact_at=old + dt.timedelta(days=1))
        newer = computer_with_work(user, created_at=new, last_contact_at=NOON)
        waiting_workunit(app, older)
        waiting_workunit(app, newer)

        def check_(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes[0]
            run_pass(app.pk, NOON)
            assert Result.objects.filter(app=app, granted_at__isnull=False).count() == 2
            credit_is_right()

        return Scene([lambda: merge(user.pk, older.pk, newer.pk), lambda: run_pass(app.pk, NOON)], check_)

    try_all(make)


def test_a_batch_is_cancelled_while_a_computer_that_it_is_for_is_merged_into_another() -> None:
    def make() -> Scene:
        app = app_with_jobs(0)
        user = volunteer()
        old, new = NOON - dt.timedelta(days=9), NOON - dt.timedelta(days=1)
        older = computer_with_work(user, created_at=old, last_contact_at=old + dt.timedelta(days=1))
        newer = computer_with_work(user, created_at=new, last_contact_at=NOON)
        batch, lane = Batch.objects.create(app=app, owner=user), Lane(LaneKind.COMPUTER, older.pk).number
        make_result(make_workunit(app, batch=batch, lane=lane), lane=lane)
        make_result(make_workunit(app, batch=batch, lane=lane), older)

        def check_(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes[0]
            assert outcomes[1] == 2
            assert not Result.objects.filter(app=app, server_state=ServerState.UNSENT).exists()

        return Scene([lambda: merge(user.pk, older.pk, newer.pk), lambda: cancel(batch, NOON)], check_)

    try_all(make, 24)


def test_a_report_a_transitioner_and_a_validator() -> None:
    def make() -> Scene:
        outputs = [{"open_name": "out", "max_nbytes": 100}]
        app = app_with_jobs(1, 2, min_quorum=2, target_nresults=2, output_files=outputs)
        computers = [known(volunteer()) for _ in range(2)]
        for computer in computers:
            asks(computer, 1)()
        asks(computers[0], 0, results=delivered(computers[0].jobs[0]))()
        last = computers[1].jobs[0]
        works: list[Work] = [
            asks(computers[1], 0, results=delivered(last)),
            lambda: transitioner.run(NOON),
            lambda: run_pass(app.pk, NOON),
        ]

        def check_(outcomes: list[Any]) -> None:
            assert names(outcomes[0], "result_ack") == [last]
            for _ in range(2):
                transitioner.run(NOON)
                run_pass(app.pk, NOON)
            assert Result.objects.filter(app=app, granted_at__isnull=False).count() == 2
            credit_is_right()

        return Scene(works, check_)

    try_all(make)


def test_a_report_that_brings_a_message_meets_a_transitioner() -> None:
    """Of the same computer, one job is reported, one has sent a message and gets more time, and one is late."""

    def make() -> Scene:
        app = app_with_jobs(3, 1, target_nresults=1, min_quorum=1)
        App.objects.filter(pk=app.pk).update(deadline_extension_secs=10 * 86_400)
        computer = known(volunteer())
        asks(computer, 3)()
        reported, running, late = Result.objects.filter(app=app).order_by("pk")
        Result.objects.filter(pk=late.pk).update(deadline_at=NOON)
        Workunit.objects.filter(pk=running.workunit_id).update(transition_at=NOON)
        message = f"<result_name>{running.name}</result_name><time>1</time><text>x</text>"
        after = NOON + dt.timedelta(minutes=1)

        def check_(outcomes: list[Any]) -> None:
            assert names(outcomes[0], "result_ack") == [reported.name]
            running.refresh_from_db()
            assert running.deadline_at == after + dt.timedelta(days=10)

        report = asks(computer, 0, after, result_xml(reported.name), f"<msg_from_host>{message}</msg_from_host>")
        return Scene([report, lambda: transitioner.run(after)], check_)

    try_all(make, 12)


def test_two_transitioners_make_each_missing_copy_once() -> None:
    def make() -> Scene:
        app = app_with_jobs(3, 0, target_nresults=2, min_quorum=2, transition_at=NOON)

        def check_(_: list[Any]) -> None:
            transitioner.run(NOON)
            assert [workunit.results.count() for workunit in Workunit.objects.filter(app=app)] == [2, 2, 2]

        return Scene([lambda: transitioner.run(NOON)] * 2, check_)

    try_all(make)


def test_two_processes_lease_different_jobs() -> None:
    def make() -> Scene:
        app = app_with_jobs(40, 1)
        leases = [
            lambda holder=holder: sync_driver.run(lease_jobs(app.pk, holder, (-(2**31), 0), 16, 10.0))
            for holder in (1, 2)
        ]

        def check_(leased: list[Any]) -> None:
            first, second = ({ready.job.id for ready in jobs} for jobs, _, _ in leased)
            assert first and not first & second

        return Scene(leases, check_)

    try_all(make)


def test_two_workers_take_different_pieces_of_requested_work(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    monkeypatch.setitem(requested_work.kinds(), "isolation", done.append)
    monkeypatch.setattr(requested_work, "_tell_workers", lambda _: None)

    def make() -> Scene:
        RequestedWork.objects.all().delete()
        done.clear()
        for subject in (1, 2, 3):
            RequestedWork.objects.create(user=volunteer(), kind="isolation", subject=subject)

        def check_(outcomes: list[Any]) -> None:
            assert outcomes == [True, True]
            assert sorted(done) == [1, 2]
            assert RequestedWork.objects.filter(finished_at=None).count() == 1

        return Scene([requested_work.carry_out_next] * 2, check_)

    try_all(make)


def test_parts_of_a_late_job_are_taken_back_while_its_report_is_validated() -> None:
    """The whole job is credited once: what was taken back comes with the rest."""

    def make() -> Scene:
        app = app_with_jobs(0)
        app.versions.update(pfc_n=200, pfc_avg=1.2, pfc_scale=1.0)
        host = computer_with_work(volunteer())
        version = app.versions.get()
        record(host, version, pfc_n=20, pfc_avg=1.2)
        job = make_result(make_workunit(app, min_quorum=1, target_nresults=1), host, app_version=version)
        assert grant_part(job.pk, 1000.0, NOON)
        late = {"server_state": ServerState.OVER, "outcome": Outcome.NO_REPLY}
        Result.objects.filter(pk=job.pk).update(**late)

        def report() -> None:
            come = {"outcome": Outcome.SUCCESS, "received_at": NOON, "elapsed_secs": 3000.0, "cpu_secs": 2000.0}
            with transaction.atomic():
                Workunit.objects.select_for_update(no_key=True).get(pk=job.workunit_id)
                Result.objects.filter(pk=job.pk).update(**come, output_digest=b"r" * 16)
                Workunit.objects.filter(pk=job.workunit_id).update(need_validate=True)
            run_pass(app.pk, NOON)

        def check_(_: list[Any]) -> None:
            settle_parts(NOON)
            run_pass(app.pk, NOON)
            # 3,000 s at 4 GFLOPS
            assert UserCredit.objects.get(user=host.owner).total_credit == pytest.approx(3000 * 4e9 * 200 / 86400e9)
            credit_is_right()

        return Scene([lambda: settle_parts(NOON), report], check_)

    try_all(make)


def test_a_job_that_could_leave_a_container_is_submitted_while_the_first_version_for_containers_is_released(
    tmp_path: Path,
) -> None:
    (tmp_path / "main.sh").write_text("#!/bin/sh\n")
    PlanClass.objects.create(name="docker", needs_docker=True)

    def make() -> Scene:
        app = app_with_jobs(0)
        described = {"app": app.name, "version_num": 1, "platform": "any", "plan_class": "docker"}
        files = [{"path": "main.sh", "main_program": True}]
        (tmp_path / "version.json").write_text(json.dumps({**described, "files": files}))
        folder = read_release(tmp_path)
        job = {"fpops_est": 1e12, "output_files": [], "command_line": '"; rm -rf ~; "'}

        def release() -> bool | ReleaseError:
            try:
                return release_version(folder, sign_files(folder))[1]
            except ReleaseError as error:
                return error

        def send() -> bool | JobError:
            try:
                return submit(app, {}, [job], owner=None, now=NOON)[1]
            except JobError as error:
                return error

        def check_(outcomes: list[Any]) -> None:
            assert [outcome is True for outcome in outcomes].count(True) == 1, outcomes

        return Scene([release, send], check_)

    try_all(make)
