"""What projects answer to anyone who has an account there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.wire.project_replies import (
    AccountInfo,
    ProjectRefused,
    parse_account_info,
    parse_account_out,
    parse_scheduler_answer,
    scheduler_request,
    scheduler_urls,
)
from portal.wire.scanner import ProtocolError

CAPTURES = Path(__file__).parents[2] / "data" / "protocol"


def captured(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()


def test_a_captured_account_key_is_read() -> None:
    assert parse_account_out(captured("lookup_account_ok.xml")) == "6aaf06e966a44d1ba4288d9e590a10f5"


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("lookup_account_unknown.xml", -136, "no account with that email"),
        ("lookup_account_bad_password.xml", -206, "the password is wrong"),
    ],
)
def test_a_captured_refusal_is_read(name: str, number: int, words: str) -> None:
    with pytest.raises(ProjectRefused, match=words) as caught:
        parse_account_out(captured(name))
    assert caught.value.error_num == number


@pytest.mark.parametrize(
    "data",
    [
        b"<account_out><success/></account_out>",
        b"<account_out><authenticator>a b</authenticator></account_out>",
        b"<account_out><authenticator>" + b"x" * 300 + b"</authenticator></account_out>",
        b"<html>hello</html>",
        b"",
    ],
)
def test_a_reply_without_a_key_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_account_out(data)


def test_an_account_is_described() -> None:
    data = b"""<?xml version="1.0" encoding="ISO-8859-1" ?>
<am_get_info_reply>
    <success/>
    <id>12</id>
<name>Ada+L%C3%B6we</name>
<country>Germany</country>
<weak_auth>12_0123456789abcdef0123456789abcdef</weak_auth>
<cpid>00</cpid>
<global_prefs>
<global_preferences><name>not this</name></global_preferences>
</global_prefs>
</am_get_info_reply>
"""
    assert parse_account_info(data) == AccountInfo(12, "Ada Löwe", "Germany", "12_0123456789abcdef0123456789abcdef")


@pytest.mark.parametrize(
    "data",
    [
        b"<error><error_num>-136</error_num></error>",
        b"<am_get_info_reply><error>there is no such account</error></am_get_info_reply>",
        b"<am_get_info_reply><error_num>-136</error_num></am_get_info_reply>",
    ],
)
def test_a_key_that_is_not_known_is_a_refusal(data: bytes) -> None:
    with pytest.raises(ProjectRefused, match="there is no such account"):
        parse_account_info(data)


def test_a_master_page_names_its_schedulers() -> None:
    assert scheduler_urls(captured("master_page.html")) != []
    page = b'<!-- <scheduler>http://a.b/cgi</scheduler> --><link rel="boinc_scheduler" href="http://a.b/two">'
    assert scheduler_urls(page * 50) == ["http://a.b/cgi", "http://a.b/two"]
    assert scheduler_urls(b"<html></html>") == []


def test_a_captured_answer_of_a_scheduler_is_read() -> None:
    answer = parse_scheduler_answer(captured("sched_reply_no_work.xml"))
    assert answer.project_name and answer.messages


def test_a_refusal_by_a_scheduler_is_a_message() -> None:
    data = b'<scheduler_reply><message priority="notice">Invalid or missing account key.</message></scheduler_reply>'
    answer = parse_scheduler_answer(data)
    assert (answer.user_name, answer.hostid, answer.messages) == ("", 0, ("Invalid or missing account key.",))


def test_a_request_of_a_trial_is_one_for_no_jobs() -> None:
    text = scheduler_request("1_<a>", "f" * 32, "trial of A & B").decode()
    assert "<authenticator>1_&lt;a&gt;</authenticator>" in text and "<domain_name>trial of A &amp; B<" in text
    assert "<work_req_seconds>0<" in text


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parsers_fail(data: bytes) -> None:
    scheduler_urls(data)
    for root in (b"", b"<account_out>", b"<am_get_info_reply>", b"<scheduler_reply>"):
        for parse in (parse_account_out, parse_account_info, parse_scheduler_answer):
            with suppress(ProtocolError, ProjectRefused):
                parse(root + data)
