"""A project's answer about tasks, in BOINC's form."""

from __future__ import annotations

import pytest

from accounting.engine.client_tasks import TaskCreditState
from accounting.wire.project_replies import ProjectRefused
from accounting.wire.task_status import TaskStatus, parse_task_statuses
from portal.wire.scanner import ProtocolError

# As html/user/result_status.php prints it, shortened
BOINC = b"""<?xml version="1.0" encoding="ISO-8859-1" ?>
<results>

    <result>
        <id>7</id>
        <server_state>5</server_state>
        <outcome>1</outcome>
        <hostid>3</hostid>
        <userid>2</userid>
        <name>wu_1_0</name>
        <validate_state>1</validate_state>
        <granted_credit>12.5</granted_credit>
    </result>
<error>name wu_2_0 unknown</error>
</results>
"""


def result(name: str, credit: str = "1", states: tuple[object, object, object] = (5, 1, 1)) -> bytes:
    tags = ("server_state", "outcome", "validate_state")
    numbers = "".join(f"<{tag}>{state}</{tag}>" for tag, state in zip(tags, states, strict=True))
    return f"<result><name>{name}</name>{numbers}<granted_credit>{credit}</granted_credit></result>".encode()


def answer(*parts: bytes) -> bytes:
    return b"<results>" + b"".join(parts) + b"</results>"


def test_boincs_own_answer_is_read() -> None:
    assert parse_task_statuses(BOINC, {"wu_1_0", "wu_2_0", "wu_3_0"}) == {
        "wu_1_0": TaskStatus(TaskCreditState.GRANTED, 12.5),
        "wu_2_0": None,
    }


def test_only_what_was_asked_about_counts_and_of_two_answers_the_first() -> None:
    statuses = answer(result("a_0", "1"), result("a_0", "2"), result("b_0"), b"<error>name a_0 unknown</error>")
    assert parse_task_statuses(statuses, {"a_0"}) == {"a_0": TaskStatus(TaskCreditState.GRANTED, 1)}


@pytest.mark.parametrize("credit", ["nan", "inf", "-1", "1e304", "1000000001", "", "much"])
def test_a_grant_that_is_no_sane_number_is_no_answer(credit: str) -> None:
    assert parse_task_statuses(answer(result("a_0", credit)), {"a_0"}) == {}


def test_states_that_are_no_numbers_are_no_answer() -> None:
    assert (
        parse_task_statuses(answer(result("a_0", states=("x", 1, 1)), result("b_0", states=(5, -1, 1))), {"a_0", "b_0"})
        == {}
    )


def test_credit_of_what_was_not_granted_does_not_count() -> None:
    assert parse_task_statuses(answer(result("a_0", "9", (4, 0, 0))), {"a_0"}) == {
        "a_0": TaskStatus(TaskCreditState.OPEN)
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Not found</body></html>",
        b"<results><result><name>a_0</name>",
        b"<results>" + b"<result></result>" * 30_000 + b"</results>",
        b"<results>" + b"x" * (1 << 19) + b"</results>",
    ],
)
def test_what_is_no_answer_about_tasks_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_task_statuses(body, {"a_0"})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<error><error_num>-183</error_num></error>", "the project is down for now"),
        (b"<error><error_num>nan</error_num><error_msg>Too many requests.</error_msg></error>", "Too many requests."),
        (b"<error>Down</error>", "no reason was given"),
    ],
)
def test_an_error_of_boincs_is_told_apart_from_no_answer(body: bytes, words: str) -> None:
    with pytest.raises(ProjectRefused, match=words):
        parse_task_statuses(body, {"a_0"})
