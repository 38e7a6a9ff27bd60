"""Clients with more to report than a request may hold: they are rid of it in several, and nothing is lost."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from credit.models import App, Outcome, Result, ServerState
from portal.clients.messages import refused_by_head
from portal.models import User
from scheduler.models import Trickle
from scheduler.wire import requests
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import ADDRESS, Computer, computer_of, messages, names, post, result_xml

pytestmark = pytest.mark.django_db
LIMIT = requests.LIMITS.body_bytes
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
        "No jobs sent: the request was too long to be read whole; what it reports is being taken a part at a time"
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


def test_a_long_message_without_any_result_is_refused(computer: Computer) -> None:
    body = computer.request().replace(b"</scheduler_request>", b"<x>" + b" " * LIMIT)
    assert messages(post(body)) == ["scheduler_request: not closed: the message was cut off"]


def test_a_message_without_end_is_refused_before_it_is_read(settings: Settings) -> None:
    route = settings.CLIENT_PATHS[ADDRESS]
    assert refused_by_head(route, "POST", route.longest_bytes, is_chunked=False) is None
    reply = refused_by_head(route, "POST", route.longest_bytes + 1, is_chunked=False)
    assert reply is not None and b"<project_is_down/>" in reply.body
