"""Clients with more to report than a request may hold: they report it in several, and nothing is lost."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from credit.models import App, Outcome, Result, ServerState
from portal.clients.messages import refused_by_head
from portal.models import User
from scheduler.models import Trickle
from scheduler.rpc import trickles
from scheduler.wire import request_fields
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import ADDRESS, Computer, computer_of, messages, names, post, result_xml

pytestmark = pytest.mark.django_db
LIMIT = request_fields.LIMITS.body_bytes
STDERR = "<core_client_version>7.20.5</core_client_version>\n<![CDATA[\n<stderr_txt>\n{}\n</stderr_txt>\n]]>"


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    return app


@pytest.fixture
def computer(app: App, alice: User) -> Computer:
    """A computer with thirty jobs; a few more wait."""
    computer = computer_of(alice)
    computer.ask()
    for number in range(30):
        make_result(
            make_workunit(app, max_total_results=1, min_quorum=1, target_nresults=1),
            alice.hosts.get(pk=computer.hostid),
            name=f"r{number}",
        )
        computer.jobs.append(f"r{number}")
    make_result(make_workunit(app))
    return computer


def report(computer: Computer, nbytes_each: int, extra: str = "") -> str:
    """Reports all jobs that the computer still has, as failed, each with so much on stderr, and wants another."""
    reports = "".join(
        result_xml(name, state=3, exit_status=1, stderr_out=STDERR.format("x" * nbytes_each))
        for name in computer.jobs
        if name.startswith("r")
    )
    # Messages and other jobs come behind the results, as from a real client.
    reply = post(computer.request(secs=1, results=reports + extra))
    computer.read(reply)
    return reply


def test_a_client_with_more_than_16_mib_is_rid_of_it_in_several_requests(computer: Computer) -> None:
    # 30 reports of 0.9 MB are 27 MB: 18 fit into 16 MiB.
    said = "<result_name>r0</result_name><time>1.7e9</time><variety>v</variety><text>t</text>"
    message = f"<msg_from_host>{said}</msg_from_host>"
    first = report(computer, 900_000, message)
    assert len(names(first, "result_ack")) == 18
    # There was more than could be read: nothing is sent, taken for lost, or said to have come.
    assert (names(first, "result"), "<message_ack/>" in first) == ([], False)
    assert messages(first) == [
        "No tasks sent: the request was too long to be read at once; what it reports is being taken in parts"
    ]
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 12
    second = report(computer, 900_000, message)
    assert len(names(second, "result_ack")) == 12
    assert (len(names(second, "result")), "<message_ack/>" in second, Trickle.objects.count()) == (1, True, 1)
    assert Result.objects.filter(outcome=Outcome.CLIENT_ERROR, stderr_text__endswith="x").count() == 30


def test_one_that_has_just_the_most_is_read_whole(computer: Computer) -> None:
    body = computer.request(secs=1)
    filler = b"<unknown>" + b" " * (LIMIT - len(body) - 19) + b"</unknown>"
    reply = post(body.replace(b"</scheduler_request>", filler + b"</scheduler_request>"))
    assert len(names(reply, "result")) == 1


def test_thousands_of_short_reports_are_taken_five_hundred_at_a_time(computer: Computer) -> None:
    # 12,000 reports of ten elements are more elements than a request may have.
    strangers = "".join(result_xml(f"s{number}", a=1, b=2, c=3, d=4, e=5) for number in range(12_000))
    reply = post(computer.request(results=strangers, others=computer.jobs))
    assert len(names(reply, "result_ack")) == 500
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 30


def trickle(number: int, text: str, job: str = "r0") -> str:
    """A message as a client writes it."""
    message = f"<result_name>{job}</result_name>\n<time>{1_700_000_000 + number}</time>\n<variety>v</variety>"
    return f"  <msg_from_host>\n{message}\n<text>\n{text}\n</text>\n  </msg_from_host>\n"


def test_a_client_with_messages_alone_beyond_16_mib_is_rid_of_them_at_once(computer: Computer) -> None:
    """It deletes them only once they are acknowledged, and until then sends the same again."""
    messages_xml = "".join(trickle(number, "x" * 1_000_000) for number in range(20))
    reply = post(computer.request(secs=1, extra=messages_xml))
    assert "<message_ack/>" in reply
    assert trickles.SOME_UNREAD in messages(reply)
    # 64 KiB are kept of each message; of a job's in a day, 1 MiB and the message with which they reach it.
    assert Trickle.objects.count() == 16
    assert names(post(computer.request(secs=1)), "result") != []


def test_one_message_that_is_longer_than_a_request_may_be_is_dropped(computer: Computer) -> None:
    reply = post(computer.request(extra=trickle(0, "x" * LIMIT)))
    assert ("<message_ack/>" in reply, Trickle.objects.count()) == (True, 0)
    assert trickles.SOME_UNREAD in messages(reply)


def test_where_reports_fill_the_request_its_messages_come_with_the_next(computer: Computer) -> None:
    # 16 reports and 5 messages of 0.9 MB each are 18.9 MB: two messages fit.
    many = "".join(trickle(number, "x" * 900_000) for number in range(5))
    computer.jobs = [f"r{number}" for number in range(16)]
    first = report(computer, 900_000, many)
    assert ("<message_ack/>" in first, Trickle.objects.count()) == (False, 0)
    assert len(names(first, "result_ack")) == 16
    second = report(computer, 900_000, many)
    assert ("<message_ack/>" in second, Trickle.objects.count()) == (True, 5)
    assert trickles.SOME_UNREAD not in messages(second)


def test_messages_do_not_wait_for_a_client_that_always_has_something_to_report(computer: Computer) -> None:
    many = "".join(trickle(number, "x" * 1_000_000) for number in range(20))
    computer.jobs = ["r0"]
    reply = report(computer, 1000, many)
    assert names(reply, "result_ack") == ["r0"]
    assert ("<message_ack/>" in reply, Trickle.objects.count()) == (True, 16)


def test_more_messages_than_are_read_are_acknowledged_in_words(computer: Computer) -> None:
    # 40,000 messages of six elements are more elements than a request may have.
    many = "".join(trickle(number, "</msg_from_host>") for number in range(40_000))
    reply = post(computer.request(extra=many))
    assert "<message_ack/>" in reply
    assert trickles.SOME_UNREAD in messages(reply)
    assert Trickle.objects.count() == 5000


def test_a_long_message_without_any_result_is_refused(computer: Computer) -> None:
    body = computer.request().replace(b"</scheduler_request>", b"<x>" + b" " * LIMIT)
    assert messages(post(body)) == ["scheduler_request: not closed: the message was cut off"]


def test_a_message_without_end_is_refused_before_it_is_read(settings: Settings) -> None:
    route = settings.CLIENT_PATHS[ADDRESS]
    assert refused_by_head(route, "POST", route.longest_bytes, is_chunked=False) is None
    reply = refused_by_head(route, "POST", route.longest_bytes + 1, is_chunked=False)
    assert reply is not None and b"<project_is_down/>" in reply.body
