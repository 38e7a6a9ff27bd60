"""The tasks in a request: as a real client prints them, and as no client does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.engine.client_tasks import TaskState
from accounting.wire.client_tasks import MAX_NBYTES, MAX_TASKS, ReportedTask, parse_tasks
from accounting.wire.requests import parse_request
from portal.wire.scanner import DEFAULT_LIMITS, ProtocolError
from tests.support.am_requests import captured

URL = b"http://project.example.org/"


def printed(name: bytes, more: bytes = b"", url: bytes = URL) -> bytes:
    return b"<result>\n<name>%b</name>\n<project_url>%b</project_url>\n%b</result>\n" % (name, url, more)


def only(section: bytes) -> ReportedTask:
    parsed = parse_tasks(section)
    assert len(parsed.tasks) == 1 and parsed.left_out == 0
    return parsed.tasks[0]


def test_a_real_clients_tasks_are_read() -> None:
    message, results = captured("am_request_after_two_jobs"), captured("am_results_one_task")
    request = parse_request(message.replace(b"</acct_mgr_request>", results + b"</acct_mgr_request>"))
    assert request.tasks is not None and request.tasks.left_out == 0
    (task,) = request.tasks.tasks
    assert task == ReportedTask(
        url="http://127.0.0.1:8201/project/",
        name="failing_1_0_0",
        state=TaskState.RUNNING,
        fraction_done=0,
        deadline=1796041633,
        elapsed_secs=0,
        remaining_secs=4,
    )


def test_a_client_that_was_not_asked_sends_no_list() -> None:
    assert parse_request(captured("am_request_after_two_jobs")).tasks is None


def test_an_empty_list_is_a_list() -> None:
    message = captured("am_request_after_two_jobs")
    for empty in (b"<results>\n</results>\n", b"<results/>"):
        request = parse_request(message.replace(b"</acct_mgr_request>", empty + b"</acct_mgr_request>"))
        assert request.tasks is not None and request.tasks.tasks == () and request.tasks.left_out == 0


@pytest.mark.parametrize("text", [b"nan", b"-nan", b"inf", b"-1", b"1.5", b"1e304", b"0x1p3", b"", b"half"])
def test_progress_that_is_none_is_unknown(text: bytes) -> None:
    task = only(printed(b"a_0", b"<active_task><fraction_done>%b</fraction_done></active_task>" % text))
    assert task.fraction_done is None


@pytest.mark.parametrize("text", [b"nan", b"inf", b"-1", b"1e304", b"0"])
def test_a_deadline_that_is_none_is_unknown(text: bytes) -> None:
    assert only(printed(b"a_0", b"<report_deadline>%b</report_deadline>" % text)).deadline is None


@pytest.mark.parametrize("text", [b"-1", b"99", b"2147483648", b"nan", b"", b"two"])
def test_a_state_out_of_range_fails_nothing(text: bytes) -> None:
    states = b"<state>%b</state><active_task_state>%b</active_task_state><scheduler_state>%b</scheduler_state>"
    assert only(printed(b"a_0", states % (text, text, text))).state in TaskState


@pytest.mark.parametrize(
    "name",
    [b"", b" ", b"a b", b"a,b", b"a&amp;b", b'a"b', b"a\x00b", b"a\xffb", b"x" * 256, b"<b>bold</b>", b"a\nb"],
)
def test_a_task_without_a_usable_name_is_only_counted(name: bytes) -> None:
    parsed = parse_tasks(printed(name) + printed(b"good_0"))
    assert [task.name for task in parsed.tasks] == ["good_0"] and parsed.left_out == 1


def test_of_two_tasks_with_one_name_at_one_project_the_first_counts() -> None:
    other = b"http://other.example.org/"
    done = b"<fraction_done>0.5</fraction_done>"
    parsed = parse_tasks(printed(b"a_0", done) + printed(b"a_0") + printed(b"a_0", url=other))
    assert [(task.url, task.fraction_done) for task in parsed.tasks] == [(URL.decode(), 0.5), (other.decode(), None)]
    assert parsed.left_out == 1


def test_of_ten_thousand_tasks_the_first_are_kept_and_the_others_counted() -> None:
    parsed = parse_tasks(b"".join(printed(b"task_%d_0" % n) for n in range(10_000)))
    assert [task.name for task in parsed.tasks] == [f"task_{n}_0" for n in range(MAX_TASKS)]
    assert parsed.left_out == 10_000 - MAX_TASKS


def test_only_the_beginning_of_a_long_list_is_looked_at() -> None:
    filler = b"<stderr>" + b"x" * (MAX_NBYTES // 4) + b"</stderr>"
    parsed = parse_tasks(b"".join(printed(b"task_%d_0" % n, filler) for n in range(8)))
    # The fourth does not fit any more: three times a quarter, and a little each.
    assert [task.name for task in parsed.tasks] == ["task_0_0", "task_1_0", "task_2_0"]
    assert parsed.left_out == 5


def test_a_message_that_was_shortened_within_its_tasks_is_read_up_to_there() -> None:
    whole = captured("am_request_after_two_jobs")
    many = b"<results>\n" + b"".join(printed(b"task_%d_0" % n) for n in range(20_000)) + b"</results>\n"
    message = whole.replace(b"</acct_mgr_request>", many + b"</acct_mgr_request>")[: DEFAULT_LIMITS.body_bytes]
    request = parse_request(message)
    assert request.tasks is not None and len(request.tasks.tasks) == MAX_TASKS
    assert request.projects == parse_request(whole).projects
    # One that simply ends there was cut off on its way.
    with pytest.raises(ProtocolError):
        parse_request(message[:-1])


@given(st.lists(st.sampled_from([b"<result>", b"</result>", b"<name>", b"</name>", b"a_0", b"<state>", b"/>", b"<"])))
def test_no_list_breaks_the_reader(pieces: list[bytes]) -> None:
    section = b"".join(pieces)
    parsed = parse_tasks(section)
    assert len(parsed.tasks) + parsed.left_out == section.count(b"<result>")
