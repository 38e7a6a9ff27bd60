"""A dump taken in the middle is restored: computers know more than the database, and lose nothing by it."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import threading
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connections, transaction
from django.db.models import F
from django.utils import timezone

from credit.models import App, Outcome, Result, ServerState, ValidateState, Workunit
from credit.statistics import check
from portal.models import Host, User
from scheduler.files.certificates import size_key
from scheduler.lifecycle import transitioner
from scheduler.models import Upload
from scheduler.programs import catalogue
from scheduler.ready_jobs import job_cache
from scheduler.submission.generations import begin_generation
from scheduler.submission.submit import submit
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.finished_jobs import DEFAULTS
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.own_server import OwnServer
from tests.support.scheduler_clients import Computer, at_once, computer_of, names, result_xml
from tests.support.second_database import in_database
from tests.support.upload_requests import post, upload_body
from tests.support.validator_runs import validate
from tests.support.wait import join, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = dt.timedelta(hours=1)
DRILL = "drill"
OUTPUTS = [{"open_name": "out", "max_nbytes": 100_000}]
MARKED = re.compile(r"wu_\d+_0_r[0-9a-f]{8}")


@pytest.fixture
def app(db: None) -> App:
    """Two jobs of it are not sent yet when the dump is taken."""
    app = make_app()
    make_version(app)
    for _ in range(2):
        make_result(make_workunit(app, fpops_est=7.2e12, output_files=OUTPUTS, delay_bound_secs=86_400))
    return app


def start_processes() -> None:
    """What those before them knew is gone."""
    catalogue.forget()
    job_cache._caches.clear()


@pytest.fixture
def alice_computer(app: App, alice: User) -> Computer:
    return computer_of(alice)


@pytest.fixture
def bob_computer(app: App, bob: User) -> Computer:
    return computer_of(bob)


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with OwnServer() as server:
        yield server


@pytest.fixture
def restored(server: OwnServer, alice_computer: Computer, bob_computer: Computer) -> Iterator[None]:
    """Alice's computer got the jobs after the dump that is restored, and has been working for an hour."""
    start_processes()
    for computer in (alice_computer, bob_computer):
        computer.ask()
    server.copy_database(DRILL)
    alice_computer.ask(7200, 2, now=timezone.now() - HOUR)
    assert len(alice_computer.jobs) == 2
    with in_database(DRILL, str(server.folder)):
        start_processes()
        yield
    start_processes()
    server.ask(f'DROP DATABASE "{DRILL}" WITH (FORCE)')


@pytest.fixture
def finished(restored: None) -> None:
    call_command("finish_restore", stdout=StringIO())


def content(name: str) -> bytes:
    """The same for all results of a workunit."""
    return "_".join(name.split("_")[:2]).encode()


def uploads(name: str, **fields: Any) -> str:
    return post(upload_body(f"{name}_0", content(name), **fields))


def report_of(name: str, **fields: Any) -> str:
    md5 = hashlib.md5(content(name), usedforsecurity=False).hexdigest()
    return result_xml(name, files={f"{name}_0": md5}, **fields)


@pytest.mark.usefixtures("finished")
def test_a_job_that_was_sent_in_the_lost_time_is_sent_under_another_name_and_both_count(
    app: App, alice_computer: Computer, bob_computer: Computer
) -> None:
    bob_computer.ask(7200, 2, now=timezone.now() - HOUR)
    # Jobs that were created before the restore, too.
    assert len(bob_computer.jobs) == 2 and all(MARKED.fullmatch(name) for name in bob_computer.jobs)
    for computer in (alice_computer, bob_computer):
        for name in computer.jobs:
            assert uploads(name) == "0"
            with default_storage.open(Upload.objects.get(name=f"{name}_0").path) as file:
                assert file.read() == content(name)
        reported = list(computer.jobs)
        reply = computer.ask(results="".join(map(report_of, reported)))
        assert names(reply, "result_ack") == reported
        results = Result.objects.filter(name__in=reported)
        assert [(result.host_id, result.outcome) for result in results] == [(computer.hostid, Outcome.SUCCESS)] * 2
    Workunit.objects.update(need_validate=True)
    validate(app)
    granted = Result.objects.filter(validate_state=ValidateState.VALID, granted_credit__gt=0)
    assert granted.values("user").distinct().count() == 2 and granted.count() == 4
    assert list(check.differences()) == []


@pytest.mark.usefixtures("finished")
def test_jobs_of_the_lost_time_are_not_aborted_and_unknown_later_ones_are(alice_computer: Computer) -> None:
    (mark,) = {name.rpartition("_")[2] for name in Result.objects.values_list("name", flat=True)}
    unknown = f"wu_0_0_{mark}"
    reply = alice_computer.ask(others=[*alice_computer.jobs, unknown])
    assert names(reply, "result_abort") == [unknown]
    # Nor once their outputs are here, and the computer has yet to report.
    assert uploads(alice_computer.jobs[0]) == "0"
    assert names(alice_computer.ask(others=alice_computer.jobs), "result_abort") == []


@pytest.mark.usefixtures("finished")
def test_only_who_was_given_a_job_of_the_lost_time_gets_it(alice_computer: Computer, bob_computer: Computer) -> None:
    name = alice_computer.jobs[0]
    # Without its certificate nobody uploads an output. Who has another copy knows the MD5s, but not the address.
    assert uploads(name, certificate="f" * 64 + "\n.\n").startswith("-1")
    others_key = size_key(f"{name.removesuffix('_0')}_1_0")
    for guess in (result_xml(name), report_of(name, keys=lambda _: ""), report_of(name, keys=lambda _: others_key)):
        assert names(bob_computer.ask(results=guess), "result_ack") == [name]
        assert not Result.objects.filter(name=name).exists() or Result.objects.get(name=name).host is None
        assert uploads(name) == "0"
    alice_computer.ask(results=report_of(name))
    result = Result.objects.get(name=name)
    assert (result.host_id, result.outcome) == (alice_computer.hostid, Outcome.SUCCESS)


@pytest.mark.usefixtures("finished")
def test_a_job_of_the_lost_time_gets_credit_for_its_run_time(app: App, alice_computer: Computer) -> None:
    name, other = alice_computer.jobs
    Workunit.objects.update(min_quorum=1, need_validate=True, created_at=timezone.now() - 2 * HOUR)
    for each, secs in ((name, 1800.0), (other, 86_400.0)):
        assert uploads(each) == "0"
        alice_computer.ask(results=report_of(each, final_elapsed_time=secs, final_cpu_time=secs))
    # No longer than it ran, and than the workunit is there: 1,800 s, and two hours instead of a day.
    out = Result.objects.filter(name__in=[name, other]).values_list(F("received_at") - F("sent_at"), flat=True)
    assert sorted(each.total_seconds() for each in out) == [pytest.approx(1800), pytest.approx(7200, abs=60)]
    validate(app)
    assert Result.objects.filter(name__in=[name, other], granted_credit__gt=0).count() == 2


@pytest.mark.usefixtures("finished")
def test_of_two_computers_of_a_person_that_report_two_lost_copies_at_once_one_gets_it(
    alice: User, alice_computer: Computer
) -> None:
    name, second = alice_computer.jobs[0], computer_of(alice)
    second.ask()
    copy = f"{name.removesuffix('_0')}_1"
    assert (uploads(name), uploads(copy)) == ("0", "0")
    is_locked = threading.Event()

    def keep_both_waiting() -> None:
        with transaction.atomic():
            Workunit.objects.select_for_update().get(results__name=name)
            is_locked.set()
            wait_until(lambda: nwaiting_for_locks() == 2, "both reports", 15, poll_secs=0.02)
        connections.close_all()

    keeper = threading.Thread(target=keep_both_waiting)
    keeper.start()
    assert is_locked.wait(20)
    at_once(alice_computer.asks(results=report_of(name)), second.asks(results=report_of(copy)))
    join(keeper)
    assert Result.objects.filter(name__in=[name, copy], user=alice).count() == 1


@pytest.mark.usefixtures("finished")
def test_who_has_the_job_again_gets_no_second_result_of_it(alice_computer: Computer) -> None:
    forgotten = list(alice_computer.jobs)
    alice_computer.jobs.clear()
    alice_computer.ask(7200, 2, now=timezone.now() - HOUR)
    assert len(alice_computer.jobs) == 2
    assert uploads(forgotten[0]) == "0"
    # Two results of one person would confirm each other.
    assert names(alice_computer.ask(results=report_of(forgotten[0]), others=alice_computer.jobs), "result_ack")
    assert Result.objects.get(name=forgotten[0]).outcome == Outcome.NO_REPLY


@pytest.mark.usefixtures("finished")
def test_nobody_gets_two_lost_results_of_one_workunit(alice_computer: Computer) -> None:
    # The second copy was another person's, and its output is the same.
    name = alice_computer.jobs[0]
    copy = f"{name.removesuffix('_0')}_1"
    assert (uploads(name), uploads(copy)) == ("0", "0")
    alice_computer.ask(results=report_of(name) + report_of(copy))
    assert Result.objects.get(name=name).host_id == alice_computer.hostid
    assert Result.objects.get(name=copy).host_id is None


@pytest.mark.usefixtures("finished")
def test_an_output_of_a_batch_that_is_lost_is_refused_and_its_report_acknowledged(alice_computer: Computer) -> None:
    Workunit.objects.all().delete()
    name = alice_computer.jobs[0]
    assert uploads(name).startswith("-1 This project does not expect this file")
    assert names(alice_computer.ask(results=report_of(name)), "result_ack") == [name]


@pytest.mark.usefixtures("restored")
def test_an_upload_shows_that_a_job_was_sent_also_if_the_restore_was_not_finished(alice_computer: Computer) -> None:
    name = alice_computer.jobs[0]
    # As many as are to be made at first: what is taken back does not count against them.
    Workunit.objects.update(max_total_results=2)
    assert uploads(name) == "0"
    assert Result.objects.get(name=name).server_state == ServerState.OVER
    # Two copies are wanted, and it may never be reported.
    transitioner.run_pass(timezone.now())
    assert Workunit.objects.get(results__name=name).results.filter(server_state=ServerState.UNSENT).count() == 2


@pytest.mark.usefixtures("finished")
def test_jobs_and_batches_that_are_made_later_have_names_of_their_own(app: App, alice: User) -> None:
    first = Result.objects.order_by("pk").first()
    assert first is not None
    first.workunit.results.update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    Workunit.objects.filter(pk=first.workunit_id).update(transition_at=timezone.now())
    transitioner.run_pass(timezone.now())
    made = first.workunit.results.filter(server_state=ServerState.UNSENT).order_by("pk")
    assert [result.name for result in made] == [first.name.replace("_0_r", f"_{number}_r") for number in (1, 2)]
    batch, _ = submit(app, DEFAULTS, [{}], owner=alice, now=timezone.now())
    assert batch.pk > 1_000_000


@pytest.mark.usefixtures("finished")
def test_a_second_restore_marks_names_once_more_and_not_twice() -> None:
    before = set(Result.objects.values_list("name", flat=True))
    later = timezone.now() + dt.timedelta(seconds=2)
    mark = begin_generation(later)
    after = set(Result.objects.values_list("name", flat=True))
    assert not before & after
    assert all(MARKED.fullmatch(name) and name.endswith(mark) for name in after)
    # Another within the same second has the next number.
    assert int(begin_generation(later), 16) == int(mark, 16) + 1


@pytest.mark.usefixtures("finished")
def test_a_computer_of_the_lost_time_is_not_taken_for_a_new_one(alice: User) -> None:
    last = Host.objects.latest("pk").pk
    # In the lost time it got the number after the last one.
    lost = computer_of(alice, hostid=last + 1, seqno=7)
    new = computer_of(alice)
    new.ask()
    lost.ask()
    assert last + 1_000_000 < new.hostid < lost.hostid
