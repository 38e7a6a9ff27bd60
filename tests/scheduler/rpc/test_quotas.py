"""What a computer may ask of the scheduler: jobs at intervals, limited message bytes, long jobs once it is known."""

from __future__ import annotations

import datetime as dt

import pytest
import structlog
from pytest_django import Settings

from credit.models import App, Result, ServerState
from portal.models import User
from portal.people.accounts import weak_key
from portal.wire import credentials
from scheduler.models import Trickle
from scheduler.rpc.trickles import SOME_DROPPED
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, messages, names, post, result_xml, value
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db
TOO_SOON = "No tasks sent: this computer asked for tasks only a few seconds ago; BOINC will ask again automatically"


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    for _ in range(20):
        make_result(make_workunit(app))
    return app


def after(secs: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=secs)


# --- the least interval between requests for jobs --------------------------------------------------------


def test_jobs_are_sent_at_intervals_and_the_client_shows_why(app: App, alice: User, settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 60
    computer = computer_of(alice)
    assert len(names(computer.ask(0, 1, now=NOON), "result")) == 1
    refused = computer.ask(0, 1, now=after(59))
    assert (names(refused, "result"), messages(refused)) == ([], [TOO_SOON])
    # The refused one does not count.
    assert len(names(computer.ask(0, 1, now=after(60)), "result")) == 1


def test_a_client_that_waits_as_it_is_told_is_in_time(app: App, alice: User, settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS, settings.SCHEDULER_REQUEST_DELAY_SECS = 60, 10
    computer = computer_of(alice)
    delay_secs = float(value(computer.ask(0, 1, now=NOON), "request_delay"))
    assert delay_secs > 60
    assert len(names(computer.ask(0, 1, now=after(delay_secs)), "result")) == 1


def test_one_that_comes_too_soon_still_reports(app: App, alice: User, settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 60
    computer = computer_of(alice)
    computer.ask(0, 1, now=NOON)
    (job,) = computer.jobs
    reply = computer.ask(0, 1, results=result_xml(job), now=after(1))
    assert (names(reply, "result_ack"), messages(reply)) == ([job], [TOO_SOON])
    assert Result.objects.get(name=job).server_state == ServerState.OVER


def test_jobs_of_a_reply_that_was_lost_are_sent_again_at_once(app: App, alice: User, settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 60
    computer = computer_of(alice)
    computer.ask(now=NOON)
    lost = names(computer.ask(0, 2, now=after(1)), "result")
    assert len(lost) == 2
    assert sorted(names(computer.ask(0, 2, others=[], now=after(2)), "result")) == sorted(lost)
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 2


def test_a_request_that_wants_nothing_does_not_count(app: App, alice: User, settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 60
    computer = computer_of(alice)
    computer.ask(now=NOON)
    assert len(names(computer.ask(0, 1, now=after(1)), "result")) == 1
    assert messages(computer.ask(now=after(2))) == []


def test_each_computer_has_an_interval_of_its_own(app: App, alice: User, settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 60
    for _ in range(2):
        assert len(names(computer_of(alice).ask(0, 1, now=NOON), "result")) == 1


# --- trickle-up messages -------------------------------------------------------------------------------------


def message(name: str, number: int, nbytes: int) -> str:
    return (
        f"<msg_from_host><result_name>{name}</result_name><time>{number}</time><variety>v</variety>"
        f"<text>{'x' * nbytes}</text></msg_from_host>"
    )


@pytest.fixture
def running(app: App, alice: User, settings: Settings) -> Computer:
    """A computer with two jobs, each of which may send 3,000 bytes a day."""
    settings.TRICKLE_BYTES_PER_JOB_DAY = 3000
    computer = computer_of(alice)
    computer.ask(0, 2, now=NOON)
    assert len(computer.jobs) == 2
    return computer


def times(name: str) -> list[float]:
    return [each.written_at.timestamp() for each in Trickle.objects.filter(result__name=name).order_by("written_at")]


def test_a_job_sends_so_many_bytes_a_day_and_the_rest_is_dropped(running: Computer) -> None:
    first, second = running.jobs
    sent = "".join(message(first, number, 900) for number in range(5)) + message(second, 9, 900)
    with structlog.testing.capture_logs() as lines:
        reply = running.ask(extra=sent, now=after(60))
    # 1,000 each with what a message counts besides its text: three fit, and the other job has room of its own.
    assert (times(first), times(second)) == ([0, 1, 2], [9])
    assert "<message_ack/>" in reply and messages(reply) == [SOME_DROPPED]
    assert '<message priority="notice">' in reply
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["trickles_dropped"]
    # The reply is lost, and the client sends all again: nothing is taken twice, and nothing more on the same day.
    assert "<message_ack/>" in running.ask(extra=sent, now=after(3600))
    assert times(first) == [0, 1, 2]


def test_a_job_that_always_sends_too_much_makes_no_request_longer(running: Computer) -> None:
    job, held, lengths = running.jobs[0], "", []
    for day in range(5):
        held += "".join(message(job, 10 * day + number, 900) for number in range(4))
        lengths.append(len(held))
        # A little more than a day apart, so that each day is one of its own.
        if "<message_ack/>" in running.ask(extra=held, now=after(day * 90_000)):
            held = ""
    assert max(lengths) - min(lengths) < 100
    assert times(job) == [10 * day + number for day in range(5) for number in range(3)]


def test_of_a_job_that_is_over_its_limit_one_message_a_day_is_taken(running: Computer) -> None:
    job = running.jobs[0]
    for day in range(3):
        running.ask(extra=message(job, 2 * day, 9000) + message(job, 2 * day + 1, 9000), now=after(day * 90_000))
    assert times(job) == [0, 2, 4]


def test_a_job_that_was_reported_sends_nothing_more_after_a_day(running: Computer) -> None:
    first, second = running.jobs
    running.ask(results=result_xml(first, state=3, exit_status=1), now=after(60))
    # What the client could not send with the report
    running.ask(extra=message(first, 1, 9), now=after(3600))
    late = running.ask(extra=message(first, 2, 9) + message(second, 3, 9), now=after(90_000))
    assert (times(first), times(second)) == ([1], [3])
    assert "<message_ack/>" in late and messages(late) == [SOME_DROPPED]


def test_messages_of_usual_size_are_taken_at_once(running: Computer) -> None:
    reply = running.ask(extra=message(running.jobs[0], 1, 200), now=after(60))
    assert "<message_ack/>" in reply and messages(reply) == []


def test_a_message_that_is_longer_than_all_of_a_day_comes_through(running: Computer) -> None:
    reply = running.ask(extra=message(running.jobs[0], 1, 9000), now=after(60))
    assert "<message_ack/>" in reply and len(times(running.jobs[0])) == 1


def test_the_limit_costs_no_statement(running: Computer) -> None:
    running.ask(now=after(1))
    before = statements(lambda: running.ask(now=after(60)))
    assert statements(lambda: running.ask(extra=message(running.jobs[0], 1, 900), now=after(120))) <= before


# --- long messages -------------------------------------------------------------------------------------------


def test_a_long_message_of_a_stranger_is_not_read(app: App, alice: User) -> None:
    computer = computer_of(alice)
    computer.ask()
    # Far more elements than a message may have, which is found out when it is read.
    far_too_many = "<x/>" * 300_000
    assert "elements" in messages(post(computer.request(extra=far_too_many)))[0]
    computer.key = "0" * 32
    refused = post(computer.request(extra=far_too_many))
    assert messages(refused)[0].startswith("Invalid or missing account key.")


def test_a_long_message_must_begin_with_the_key(app: App, alice: User) -> None:
    computer = computer_of(alice)
    computer.ask()
    body = computer.request()
    key = f"<authenticator>{computer.key}</authenticator>".encode()
    late = body.replace(key, b"").replace(b"</scheduler_request>", b" " * 200_000 + key + b"</scheduler_request>")
    assert messages(post(late))[0].startswith("Invalid or missing account key.")
    assert "<hostid>" not in post(body) and "Invalid" not in post(body)


def test_a_weak_key_is_known_too(app: App, alice: User) -> None:
    computer = computer_of(alice)
    computer.ask()
    computer.key = weak_key(alice.pk, credentials.key_hash(computer.key))
    assert not any("key" in each for each in messages(post(computer.request(extra=" " * 200_000))))
