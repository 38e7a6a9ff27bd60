"""Requests that no honest client sends: refused with a sentence or answered in bounds, and nobody else is harmed."""

from __future__ import annotations

import contextlib
import socket
import time
from urllib.parse import urlsplit

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from accounting.models import Day, HostLedger, HostProject, Project
from portal.models import ClientKey, Host, User
from tests.support.am_rpc import (
    Reply,
    attach,
    copy_of,
    credited,
    host_of,
    hours_credited,
    hours_pass,
    make_computer,
    post,
    sync,
    token_of,
    work,
)
from tools.simulation.client import SimulatedComputer


def with_element(message: bytes, element: bytes) -> bytes:
    """The message with one more element before its end."""
    return message.replace(b"</acct_mgr_request>", element + b"</acct_mgr_request>")


def unknown_projects(number: int) -> bytes:
    return b"".join(
        b"<project><url>https://p%d.example.com/</url><attached_via_acct_mgr>1</attached_via_acct_mgr></project>\n" % n
        for n in range(number)
    )


def test_another_owners_computer_is_neither_read_nor_written(alice: User, bob: User, projects: list[Project]) -> None:
    alpha = projects[0]
    hers, his = attach(alice, "studio"), attach(bob, "cellar")
    for computer in (hers, his):
        hours_pass(computer, 10)
    Host.objects.filter(pk=host_of(hers).pk).update(given_name="Alice's secret studio")
    before = HostLedger.objects.filter(host__owner=alice).values().get()
    thief = copy_of(his, opaque=hers.opaque)
    work(thief, alpha, 5)
    reply = post(thief.request(time.time()))
    assert reply.error == (0, "")
    # He is recognised as his own computer, and Alice's stays as it was.
    assert reply.text("opaque/host") == token_of(his) != token_of(hers)
    assert b"secret" not in reply.raw and token_of(hers).encode() not in reply.raw
    assert HostLedger.objects.filter(host__owner=alice).values().get() == before
    assert not Day.objects.filter(user=alice).exists()
    work(hers, alpha, 3)
    sync(hers)
    assert hours_credited(hers, alpha) == 3


def test_another_owners_computer_stays_hers_at_a_password_login_too(
    alice: User, bob: User, projects: list[Project]
) -> None:
    hers = attach(alice, "studio")
    thief = make_computer(bob, "studio", cpid=hers.cpid, opaque=hers.opaque)
    sync(thief)
    assert host_of(thief).owner == bob
    assert host_of(hers).owner == alice
    assert token_of(thief) != token_of(hers)


QUOTES = (
    "'",
    '"',
    "\\",
    "' OR 1=1 --",
    "'); DROP TABLE accounting_day; --",
    "(SELECT token FROM portal_host LIMIT 1)",
    "%s",
    "%(host_id)s",
    "$1",
    '{"a": 1}',
    "{1,2}",
    "NULL",
    "{}",
)


@pytest.mark.parametrize("text", QUOTES)
def test_quotes_and_sql_are_but_text(text: str, alice: User, bob: User, projects: list[Project]) -> None:
    alpha = projects[0]
    bystander, computer = attach(bob, "cellar"), attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 1)
    name = copy_of(computer, name=text, p_model=text, os_version=text, version=text)
    assert post(name.request(time.time())).error == (0, "")
    assert host_of(computer).domain_name == host_of(computer).p_model == text
    assert hours_credited(computer, alpha) == 1
    message = computer.request(time.time())
    for spoilt in (
        message.replace(b"<opaque>\n<host>", f"<opaque>\n<host>{text}".encode()),
        message.replace(b"<run_mode>auto", f"<run_mode>{text}".encode()),
        message.replace(b"<project_name>", f"<sched_req_no_work>{text}</sched_req_no_work><project_name>".encode()),
        message.replace(alpha.master_url.encode(), f"https://alpha.example.org/{text}/".encode()),
    ):
        assert post(spoilt).error == (0, "")
    refused = message.replace(computer.authenticator.encode(), text.encode())
    assert post(refused).error[0] in (-155, -112)
    assert hours_credited(computer, alpha) == 1
    assert Host.objects.filter(owner=bob).count() == 1
    assert credited(bystander, alpha) == (0,) * 6


NOT_TEXT = (
    b"\x00",
    b"a\x00b",
    b"&#0;",
    b"&#x0;",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"&#xD800;",
    b"\x1b[31m",
    b"\xc3",
    b"\\u0000",
)


@pytest.mark.parametrize("raw", NOT_TEXT)
def test_bytes_that_are_no_text_do_no_harm(raw: bytes, alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, projects[0], 1)
    message = computer.request(time.time())
    for before in (
        b"<domain_name>",
        b"<host_cpid>",
        b"<client_version>",
        b"<run_mode>",
        b"<platform_name>",
        b"<p_model>",
        b"<p_vendor>",
        b"<p_features>",
        b"<os_name>",
        b"<os_version>",
        b"<project_name>",
        b"<account_key>",
        b"<opaque>",
    ):
        assert before in message
        assert post(message.replace(before, before + raw)).error == (0, ""), before
    devices = (
        b"<coproc_cuda><count>1</count><name>" + raw + b"</name><peak_flops>1e12</peak_flops></coproc_cuda></coprocs>"
    )
    assert post(message.replace(b"</coprocs>", devices)).error == (0, "")
    no_work = b"<sched_req_no_work>" + raw + b"x</sched_req_no_work><project_name>"
    assert post(message.replace(b"<project_name>", no_work)).error == (0, "")
    assert hours_credited(computer, projects[0]) == 1


@pytest.mark.parametrize("raw", NOT_TEXT)
@pytest.mark.parametrize("tag", [b"name", b"password_hash", b"authenticator"])
def test_credentials_that_are_no_text_are_refused(tag: bytes, raw: bytes, alice: User, projects: list[Project]) -> None:
    message = make_computer(alice).request(time.time())
    start, end = message.index(b"   <name>"), message.index(b"   <host_cpid>")
    login = b"   <%s>%sx</%s>\n" % (tag, raw, tag)
    reply = post(message[:start] + login + message[end:])
    assert reply.error[0] in (-1, -112, -136, -155, -206)
    assert len(reply.error[1]) > 20
    assert not Host.objects.exists()


@pytest.mark.parametrize("name", ["Bürö-Rechner", "计算机", "компьютер", "ماكينة", "🖥 attic", "e\u0301"])
def test_a_name_in_any_script_comes_back_as_it_was(name: str, alice: User, projects: list[Project]) -> None:
    computer = attach(alice, name)
    assert host_of(computer).domain_name == name
    sync(computer)
    assert host_of(computer).name == name
    assert Host.objects.count() == 1


def test_a_request_without_description_and_statistics_is_answered(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 2)
    message = computer.request(time.time())
    for section in (b"host_info", b"time_stats"):
        start, end = message.index(b"<" + section + b">"), message.index(b"</" + section + b">")
        message = message[:start] + message[end + len(section) + 3 :]
    assert post(message).error == (0, "")
    assert hours_credited(computer, alpha) == 2
    # What was known of the computer is not forgotten.
    assert host_of(computer).ncpus == 4


def test_the_smallest_request_that_names_somebody_is_answered(alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    login = computer.request(0.0)
    login = login[login.index(b"   <name>") : login.index(b"   <host_cpid>")]
    reply = post(b"<acct_mgr_request>" + login + b"</acct_mgr_request>")
    assert reply.error == (0, "")
    assert len(reply.accounts) == 3


def test_five_thousand_unknown_projects_are_refused(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    error, sentence = post(with_element(computer.request(time.time()), unknown_projects(5_000))).error
    assert error == -112
    assert "800" in sentence


def test_many_unknown_projects_get_a_reply_in_bounds(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    plain = len(post(computer.request(time.time())).raw)
    reply = post(with_element(computer.request(time.time()), unknown_projects(700)))
    assert reply.error == (0, "")
    # They are left alone.
    assert len(reply.accounts) == 3
    assert len(reply.raw) < plain + 100
    assert HostProject.objects.count() == 3


@pytest.mark.parametrize("megabytes", [2, 30])
def test_a_body_over_the_limit_is_refused_with_a_sentence(megabytes: int, alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    error, sentence = post(with_element(computer.request(time.time()), b"x" * (megabytes << 20))).error
    assert error == -112
    assert "1048576 bytes" in sentence
    assert host_of(computer).ledger.contacts == 1


def test_a_message_is_refused_wherever_it_is_cut_off(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, projects[0], 2)
    message = computer.request(time.time())
    whole = message.index(b"</acct_mgr_request>")
    for length in [*range(0, whole, 97), whole, whole + 10]:
        number, sentence = post(message[:length]).error
        assert number == -112, length
        assert sentence
    assert credited(computer, projects[0]) == (0,) * 6
    assert host_of(computer).ledger.contacts == 1


def test_what_is_no_request_is_refused() -> None:
    for body in (b"", b"<", b"{}", b"<html></html>", b"a=b&c=d", b"\x00" * 100, b"<acct_mgr_reply></acct_mgr_reply>"):
        assert post(body).error[0] == -112


def test_deep_and_repeated_elements_cost_no_more_than_others(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    for junk in (b"<a>" * 50_000, b"<a>" * 20_000 + b"</a>" * 20_000, b"<!--" * 50_000, b"<host_info>" * 20_000):
        assert post(with_element(computer.request(time.time()), junk)).error[0] in (0, -112)


def test_external_entities_are_not_read(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    message = computer.request(time.time()).replace(
        b"<acct_mgr_request>", b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]>\n<acct_mgr_request>', 1
    )
    spoilt = message.replace(b"<domain_name>studio", b"<domain_name>&e;studio")
    assert post(spoilt).error[0] in (0, -112)
    assert host_of(computer).domain_name in ("studio", "&e;studio")


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "patch", "options"])
def test_other_methods_are_refused(method: str, client: Client, projects: list[Project]) -> None:
    response = getattr(client, method)("/rpc.php")
    assert response.status_code in (200, 405)
    if method != "head":
        reply = Reply(response.content)
        assert reply.error[0] != 0
        assert "POST" in reply.error[1]


def test_the_login_is_not_kept_as_a_cookie(client: Client, alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    response = client.post("/rpc.php", computer.request(time.time()), content_type="text/xml")
    assert response["Content-Type"].startswith("text/xml")
    assert not client.cookies


@pytest.mark.django_db(transaction=True)
class TestOverASocket:
    """What Django's test client cannot send."""

    @staticmethod
    def sent(server: LiveServer, raw: bytes) -> bytes:
        at = urlsplit(server.url)
        with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
            connection.sendall(raw)
            # An end of the client's side that comes after the server's answer is no news.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            received = b""
            while data := connection.recv(65_536):
                received += data
        return received

    def test_chunks_are_refused_with_a_sentence(self, live_server: LiveServer, projects: list[Project]) -> None:
        head = b"POST /rpc.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        received = self.sent(live_server, head)
        assert b"411" in received.splitlines()[0]
        assert b"in chunks" in received

    def test_a_body_that_breaks_off_changes_nothing(
        self, live_server: LiveServer, alice: User, projects: list[Project]
    ) -> None:
        message = make_computer(alice).request(time.time())
        head = b"POST /rpc.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        received = self.sent(live_server, head % (len(message) + 10) + message)
        assert b"400" in received.splitlines()[0]
        assert not Host.objects.exists()
        assert not ClientKey.objects.exists()

    def test_a_whole_message_is_answered(self, live_server: LiveServer, alice: User, projects: list[Project]) -> None:
        message = make_computer(alice).request(time.time())
        head = b"POST /rpc.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        received = self.sent(live_server, head % len(message) + message)
        assert Reply(received.partition(b"\r\n\r\n")[2]).error == (0, "")


def test_a_long_message_is_read_only_for_somebody_who_is_known(alice: User, projects: list[Project]) -> None:
    """Far more elements than a message may have, which is found out when it is read."""
    computer = attach(alice)

    def said_to(who: SimulatedComputer) -> str:
        message = who.request(time.time())
        return post(message.replace(b"</acct_mgr_request>", b"<x/>" * 50_000 + b"</acct_mgr_request>")).text(
            "error_msg"
        )

    assert "elements" in said_to(computer)
    assert said_to(copy_of(computer, authenticator="0" * 32)).startswith("This computer's key is no longer valid.")
    assert "password" in said_to(copy_of(computer, authenticator="", password="wrong"))
    assert "elements" in said_to(copy_of(computer, authenticator=""))


def test_a_long_message_counts_as_a_short_one_does(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, projects[0], 1)
    message = computer.request(time.time())
    padded = message.replace(b"</acct_mgr_request>", b" " * 200_000 + b"</acct_mgr_request>")
    assert post(padded).error == (0, "")
    assert hours_credited(computer, projects[0]) == 1
    # By password, too: with one check of it, and one key.
    again = make_computer(alice, "attic").request(time.time())
    assert post(again.replace(b"</acct_mgr_request>", b" " * 200_000 + b"</acct_mgr_request>")).error == (0, "")
    assert (Host.objects.count(), ClientKey.objects.count()) == (2, 2)
