"""Messages to running jobs are sent until their computer names the deadline that came with them."""

from __future__ import annotations

import pytest

from scheduler.engine.trickle_downs import (
    MAX_PER_REPLY,
    MAX_TEXT_NBYTES,
    Message,
    RunningJob,
    element,
    extended,
    is_acceptable,
    plan_messages,
)

DAY = 86_400.0


def message(told: float | None = None, id_: int = 5, *, has_begun: bool = True) -> Message:
    return Message(id_, 1, "go on", told, has_begun)


def job(deadline: float = 1000.4, named: float | None = 1000, *, has_begun: bool = False) -> RunningJob:
    return RunningJob(1, "job", deadline, named, has_begun)


def test_the_first_reply_with_a_message_moves_the_deadline_by_a_second() -> None:
    plan = plan_messages([job()], [message()])
    assert plan.messages == [("job", message())]
    assert plan.deadlines == {1: 1001.4}
    assert plan.later == [("job", 1001.4)]
    assert plan.first_told == [message()] and plan.acknowledged == []


@pytest.mark.parametrize(
    ("named", "is_acknowledged"),
    # The client has the former deadline, says nothing of it, or has the new one.
    [(1000, False), (None, False), (1001, True), (5000, True)],
)
def test_a_message_goes_out_again_until_the_client_has_its_deadline(named: float | None, is_acknowledged: bool) -> None:
    plan = plan_messages([job(1001.4, named)], [message(1001.4)])
    assert bool(plan.messages) != is_acknowledged
    assert plan.acknowledged == [5] * is_acknowledged
    # Nothing moves a second time.
    assert plan.deadlines == {} and plan.first_told == []


def test_a_second_message_is_acknowledged_by_a_deadline_of_its_own() -> None:
    plan = plan_messages([job(1001.4, 1000)], [message(1001.4), message(None, 6)])
    assert [each.id for _, each in plan.messages] == [5, 6]
    assert plan.deadlines == {1: 1002.4}
    plan = plan_messages([job(1002.4, 1001)], [message(1001.4), message(1002.4, 6)])
    assert (plan.acknowledged, [each.id for _, each in plan.messages]) == ([5], [6])


def test_a_message_waits_until_its_job_has_begun() -> None:
    unheard = message(has_begun=False)
    assert plan_messages([job()], [unheard]).messages == []
    assert plan_messages([job(has_begun=True)], [unheard]).messages == [("job", unheard)]


def test_a_reply_has_few_messages_and_the_rest_come_with_the_next() -> None:
    plan = plan_messages([job()], [message(None, number) for number in range(MAX_PER_REPLY + 5)])
    assert len(plan.messages) == len(plan.first_told) == MAX_PER_REPLY


def test_a_job_whose_messages_are_never_acknowledged_keeps_none_from_another() -> None:
    silent, other = job(1001.4, None), RunningJob(2, "other", 500, None)
    told = [message(1001.4, number) for number in range(MAX_PER_REPLY)]
    new = Message(99, 2, "stop", None, has_begun=True)
    plan = plan_messages([silent, other], [*told, new])
    assert plan.first_told == [new]
    assert plan.messages == [("other", new), *(("job", each) for each in told[:-1])]


def test_a_deadline_that_the_client_has_not_yet_is_told_again() -> None:
    assert plan_messages([job(5000, 1000)], []).later == [("job", 5000)]
    assert plan_messages([job(1000.4, 1000)], []).later == []
    # Only what is new is told a client that names none.
    assert plan_messages([job(5000, None)], []).later == []
    assert plan_messages([job(1001.4, None)], [message(1001.4)]).later == [("job", 1001.4)]


@pytest.mark.parametrize(
    ("deadline", "extension", "most", "expected"),
    [
        # It is day 9 of a job that was sent on day 0.
        (10, 0, 99, None),
        (10, 5, 99, 14),
        (20, 5, 99, None),
        (10, 5, 12, 12),
        (10, 5, 9, None),
        # Timed out already
        (8, 5, 99, None),
    ],
)
def test_progress_extends_a_deadline_within_its_limit(
    deadline: float, extension: float, most: float, expected: float | None
) -> None:
    extended_at = extended(deadline * DAY, 0.0, 9 * DAY, extension * DAY, most * DAY)
    assert extended_at == (None if expected is None else expected * DAY)


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("a < b & c", True),
        ("é" * (MAX_TEXT_NBYTES // 2), True),
        ("é" * (MAX_TEXT_NBYTES // 2) + "!", False),
        ("", False),
        ("nul\0", False),
        ("</trickle_down><result_abort>", False),
        ("<time>5</time>", False),
        ("<result_name>other</result_name>", False),
    ],
)
def test_a_message_cannot_say_more_than_itself(text: str, is_good: bool) -> None:
    assert is_acceptable(text) is is_good


def test_a_message_stands_on_lines_of_its_own() -> None:
    assert element("job", message()) == (
        "<trickle_down>\n<result_name>job</result_name>\n<time>5</time>\ngo on\n</trickle_down>\n"
    )
