"""Two clients with a copied data folder: found by number, CPID or jobs, and everything that they report counts once.

A real client (7.20.5) counts each request, also those that fail, and goes on with 0 after a reply with a new number.
It keeps its CPID in the data folder.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from credit.models import App, HostAppVersion, Outcome, Result, ServerState
from portal.models import Host, JoinToken, User
from portal.people.join_tokens import make_join_token
from scheduler.models import HostRecord
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, names, result_xml

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(db: None) -> App:
    app = make_app(one_result_per_user=False)
    make_version(app)
    return app


@pytest.fixture
def original(app: App, alice: User) -> Computer:
    """A computer with one job, which it has named."""
    make_result(make_workunit(app, fpops_est=1e13, delay_bound_secs=864_000))
    computer = computer_of(alice)
    for minute in range(4):
        computer.ask(1 if minute == 1 else 0, now=at(minute))
    assert len(computer.jobs) == 1
    return computer


def at(minutes: float) -> dt.datetime:
    return NOON + dt.timedelta(minutes=minutes)


def copy_of(computer: Computer, cpid: str = "") -> Computer:
    return replace(computer, cpid=cpid or computer.cpid, jobs=list(computer.jobs), name=computer.name or computer.cpid)


def add_jobs(app: App, number: int) -> None:
    for _ in range(number):
        make_result(make_workunit(app, fpops_est=1e13, delay_bound_secs=864_000))


def take_turns(original: Computer, copy: Computer, turns: str) -> None:
    """They ask one after the other, half a minute apart; o: the original, c: its copy."""
    for number, turn in enumerate(turns):
        (original if turn == "o" else copy).ask(now=at(4 + number / 2))


@pytest.mark.parametrize(
    ("cpid", "turns", "seqno"),
    [
        # The number of its first request is one lower than the last; the three after it count from 0.
        pytest.param("", "oo" + "co" * 4, 2, id="it is behind"),
        # Its first request has the number of the last, but another CPID.
        pytest.param("e" * 32, "oc" * 4, 2, id="it is in step and has a CPID of its own"),
        # Its CPID comes back after the original's with its fourth request.
        pytest.param("e" * 32, "ccc" + "oc" * 2 + "o", 0, id="it has a CPID of its own and asks before the original"),
    ],
)
def test_a_copy_makes_one_record_and_keeps_it(original: Computer, cpid: str, turns: str, seqno: int) -> None:
    copy, number = copy_of(original, cpid), original.hostid
    take_turns(original, copy, turns)
    assert original.hostid == number != copy.hostid
    assert sorted(Host.objects.values_list("pk", flat=True)) == sorted([original.hostid, copy.hostid])
    assert HostRecord.objects.get(host=copy.hostid).rpc_seqno == seqno


def test_a_copy_is_in_the_groups_of_its_original_and_takes_a_place_of_its_join_token(
    original: Computer, alice: User
) -> None:
    token, _ = make_join_token(alice, group="room 12", max_hosts=2, lifetime=dt.timedelta(days=7))
    JoinToken.objects.update(expires_at=at(0) + dt.timedelta(days=7))
    Host.objects.update(groups=["room 12"], join_token=token)
    copy = copy_of(original, "e" * 32)
    take_turns(original, copy, "oc" * 4)
    host = Host.objects.get(pk=copy.hostid)
    assert copy.hostid != original.hostid
    assert (host.groups, host.join_token) == (["room 12"], token)
    assert JoinToken.objects.get().joined_hosts == 1


def test_a_reattached_client_goes_on_from_zero_too(original: Computer) -> None:
    again = Computer(original.key, cpid=original.cpid)
    for minute in range(4, 7):
        again.ask(now=at(minute))
    assert again.hostid == original.hostid
    assert Host.objects.count() == 1


def test_a_copy_in_step_is_found_when_it_does_not_know_a_third_job(app: App, original: Computer) -> None:
    copy, number = copy_of(original), original.hostid
    for minute in (4, 6, 8):
        assert copy.hostid == number
        add_jobs(app, 1)
        original.ask(1e5, now=at(minute))
        original.ask(now=at(minute + 0.5))
        # One of its requests was lost, so it is in step; but it has never heard of the new job.
        copy.seqno = original.seqno - 1
        copy.ask(now=at(minute + 1))
    assert copy.hostid != number
    original.ask(now=at(10))
    assert (original.hostid, len(original.jobs)) == (number, 4)


def test_a_copy_in_step_is_found_when_it_has_a_third_job_that_the_other_reported(app: App, original: Computer) -> None:
    add_jobs(app, 2)
    original.ask(1e5, now=at(4))
    original.ask(now=at(5))
    copy, number, jobs = copy_of(original), original.hostid, list(original.jobs)
    for job, minute in zip(jobs, (6, 7, 8), strict=True):
        assert copy.hostid == number
        original.jobs.remove(job)
        original.ask(results=result_xml(job), now=at(minute))
        reply = copy.ask(now=at(minute + 0.5))
    assert copy.hostid != number
    # The jobs are not its own any more.
    assert sorted(names(reply, "result_abort")) == sorted(jobs)


def crashed(computer: Computer) -> Computer:
    """The client after a crash: as it was when it last wrote its state, before its next request."""
    return copy_of(computer)


def test_a_client_that_lost_a_count_in_a_crash_stays_one(app: App, original: Computer) -> None:
    number, [job] = original.hostid, original.jobs
    before = crashed(original)
    original.ask(results=result_xml(job), now=at(4))
    # It still has the job that it has reported, and sends the same number again.
    before.ask(now=at(5))
    for minute in (6, 7, 8):
        before.ask(now=at(minute))
    # Another crash, later.
    add_jobs(app, 1)
    before.ask(1e5, now=at(9))
    before.ask(now=at(10))
    again, [job] = crashed(before), before.jobs[-1:]
    before.ask(results=result_xml(job), now=at(11))
    again.ask(now=at(12))
    again.ask(now=at(13))
    assert (again.hostid, Host.objects.count()) == (number, 1)


def test_a_client_that_loses_its_state_twice_in_three_requests_stays_one(app: App, original: Computer) -> None:
    add_jobs(app, 1)
    original.ask(1e5, now=at(4))
    original.ask(now=at(5))
    number, client = original.hostid, original
    for minute, job in enumerate(list(original.jobs), start=6):
        lost = crashed(client)
        client.ask(results=result_xml(job), now=at(minute))
        # It still has the job that it has reported, and sends the same number again.
        lost.ask(now=at(minute + 0.5))
        client = lost
    for minute in (8, 9, 10):
        client.ask(now=at(minute))
    assert (client.hostid, Host.objects.count()) == (number, 1)


def test_the_client_counts_as_having_named_what_was_sent_before_the_first_job_that_it_lacks(
    app: App, original: Computer
) -> None:
    add_jobs(app, 2)
    before = list(original.jobs)
    for minute, secs in (4, 1), (5, 10_000):
        original.ask(secs, now=at(minute))
        lost, original.jobs = original.jobs, list(before)  # with the reply
    assert len(lost) == 3
    original.ask(now=at(6))
    assert HostRecord.objects.get(host=original.hostid).named_jobs_until == at(4)


def test_a_copy_whose_reply_is_lost_gets_the_same_record_again(original: Computer) -> None:
    copy, number, [job] = copy_of(original), original.hostid, original.jobs
    for minute in range(4, 9):
        original.ask(now=at(minute))
    for minute in (9, 10, 11):
        # It has not read the reply before, but has counted the request.
        again = copy_of(copy)
        again.ask(results=result_xml(job, final_elapsed_time=60), now=at(minute))
        copy.seqno += 1
    assert Host.objects.count() == 2
    assert again.hostid == Result.objects.get(name=job).host_id != number
    again.ask(now=at(12))
    # Now that it has used its record, another copy gets one of its own.
    third = copy_of(original)
    third.seqno = 1
    third.ask(now=at(13))
    assert Host.objects.count() == 3
    assert third.hostid not in (number, again.hostid)


def test_jobs_that_a_copy_reports_count_once_for_it(app: App, original: Computer, alice: User) -> None:
    copy = copy_of(original, "e" * 32)
    add_jobs(app, 2)
    copy.ask(1e5, now=at(4))
    [common, *its] = copy.jobs
    assert len(its) >= 1
    original.ask(now=at(5))
    reports = "".join(result_xml(name, final_elapsed_time=60) for name in (common, *its))
    reply = copy.ask(results=reports, now=at(60))
    assert sorted(names(reply, "result_ack")) == sorted([common, *its])
    original.ask(results=result_xml(common, final_elapsed_time=60), now=at(61))
    ended = Result.objects.filter(outcome=Outcome.SUCCESS)
    assert sorted(ended.values_list("name", flat=True)) == sorted([common, *its])
    assert set(ended.values_list("host", flat=True)) == {copy.hostid} != {original.hostid}


PROVEN = {"scale_probation": False, "host_scale_at": NOON, "error_rate": 0.02, "consecutive_valid": 50}


def pretended(computer: Computer) -> Computer:
    """The same client, which goes back to an earlier request."""
    return replace(copy_of(computer), seqno=0)


@pytest.mark.parametrize("ending", [{"state": 3, "exit_status": 1}, {"state": 6, "exit_status": 202}])
def test_a_pretended_copy_does_not_take_over_the_blame_for_a_job(original: Computer, ending: dict[str, int]) -> None:
    [job], number = original.jobs, original.hostid
    HostAppVersion.objects.update(**PROVEN)
    pretended(original).ask(results=result_xml(job, **ending), now=at(5))
    result = Result.objects.get(name=job)
    assert (result.host_id, result.outcome) == (number, Outcome.INIT)
    # The client has it no longer: it is sent again.
    original.jobs.clear()
    original.ask(now=at(6))
    assert original.jobs == [job]


def test_a_computer_with_a_copy_is_not_trusted_for_a_while(original: Computer) -> None:
    [job], number = original.jobs, original.hostid
    HostAppVersion.objects.update(**PROVEN)
    pretended(original).ask(results=result_xml(job, final_elapsed_time=60), now=at(5))
    assert Result.objects.get(name=job).host_id != number
    record = HostAppVersion.objects.get(host=number)
    # The job's delay bound is ten days.
    spell = (record.scale_probation, record.host_scale_at, record.consecutive_valid)
    assert spell == (True, at(5) + dt.timedelta(days=10), 0)


def test_jobs_that_a_pretended_copy_takes_over_count_for_the_failing_share(app: App, original: Computer) -> None:
    """A computer would otherwise leave the jobs that it does not want to a copy, whose record nobody needs."""
    add_jobs(app, 2)
    original.ask(1e5, 3, now=at(4))
    first, *others = original.jobs
    assert len(others) == 2
    # What timed out has counted.
    Result.objects.filter(name=first).update(server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    HostAppVersion.objects.update(failing_share=0.02)
    number, reports = original.hostid, "".join(result_xml(name) for name in original.jobs)
    pretended(original).ask(results=reports, now=at(5))
    assert not Result.objects.filter(host=number).exists()
    # 1 − 0.98 × 0.99²
    assert HostAppVersion.objects.get(host=number).failing_share == about(0.039502)


def test_a_job_with_credit_for_parts_stays_with_its_computer(original: Computer) -> None:
    [job], number = original.jobs, original.hostid
    Result.objects.update(partial_credit=5.0, partial_elapsed_secs=60.0)
    pretended(original).ask(results=result_xml(job, final_elapsed_time=60), now=at(5))
    assert Result.objects.get(name=job).host_id == number


def test_a_client_whose_request_comes_twice_stays_one(app: App, original: Computer) -> None:
    add_jobs(app, 2)
    for _ in range(3):
        # As after a crash: the same number, and jobs of lost replies are not there.
        again = copy_of(original)
        again.ask(1e5, now=at(4))
    original.ask(now=at(5))
    assert Host.objects.count() == 1


def test_a_client_whose_cpid_changes_or_whose_project_is_reset_stays_one(original: Computer) -> None:
    for number, minute in enumerate(range(4, 9)):
        original.cpid = f"{number}" * 32
        original.ask(now=at(minute))
        original.jobs.clear()
    record = HostRecord.objects.get()
    # No more are kept than are needed.
    assert record.cpids == ["2" * 32, "3" * 32, "4" * 32]
    with pytest.raises(IntegrityError), transaction.atomic():
        HostRecord.objects.update(cpids=["a", "b", "c", "d"])
