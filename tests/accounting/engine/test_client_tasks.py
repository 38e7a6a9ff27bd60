"""What a client does with a task, what its project says of it, and when it is asked about."""

from __future__ import annotations

import datetime as dt

import pytest

from accounting.engine.client_tasks import TaskCreditState, TaskState, standing_of, task_state, wait_before

HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("result_state", "process", "scheduled", "is_suspended", "state"),
    [
        (2, 1, 2, False, TaskState.RUNNING),
        (2, 1, 2, True, TaskState.PAUSED),
        (2, 9, 2, False, TaskState.PAUSED),
        (2, 9, 1, False, TaskState.PAUSED),
        (2, 0, 1, False, TaskState.PAUSED),
        (2, None, None, False, TaskState.READY),
        (2, None, None, True, TaskState.PAUSED),
        (0, None, None, False, TaskState.DOWNLOADING),
        (1, None, None, False, TaskState.DOWNLOADING),
        (3, None, None, False, TaskState.FAILED),
        (4, None, None, False, TaskState.UPLOADING),
        (5, None, None, False, TaskState.FINISHED),
        (6, 5, 2, False, TaskState.ABORTED),
        (7, None, None, False, TaskState.FAILED),
        # A number that no client sends
        (99, 1, 2, False, TaskState.RUNNING),
    ],
)
def test_the_state_of_a_task_is_what_its_client_does_with_it(
    result_state: int, process: int | None, scheduled: int | None, is_suspended: bool, state: TaskState
) -> None:
    assert task_state(result_state, process, scheduled, is_suspended=is_suspended) == state


@pytest.mark.parametrize(
    ("server_state", "outcome", "validate_state", "standing"),
    [
        (2, 0, 0, TaskCreditState.OPEN),
        (4, 0, 0, TaskCreditState.OPEN),
        # The deadline has passed; it may still be reported.
        (5, 4, 0, TaskCreditState.OPEN),
        (5, 1, 0, TaskCreditState.PENDING),
        (5, 1, 4, TaskCreditState.PENDING),
        (5, 1, 1, TaskCreditState.GRANTED),
        (5, 1, 2, TaskCreditState.REFUSED),
        (5, 1, 5, TaskCreditState.REFUSED),
        (5, 3, 0, TaskCreditState.FAILED),
        (5, 6, 0, TaskCreditState.FAILED),
        (5, 6, 2, TaskCreditState.REFUSED),
        (5, 7, 0, TaskCreditState.FAILED),
        (77, 77, 77, TaskCreditState.OPEN),
    ],
)
def test_the_standing_of_a_task_follows_boincs_numbers(
    server_state: int, outcome: int, validate_state: int, standing: TaskCreditState
) -> None:
    assert standing_of(server_state, outcome, validate_state) == standing


def test_questions_about_a_task_come_ever_more_rarely_but_once_a_day_at_least() -> None:
    # 1, 2, 4, 8, 16 hours, then 32 > 24
    assert [wait_before(asks) / HOUR for asks in (1, 2, 3, 4, 5, 6, 1000)] == [1, 2, 4, 8, 16, 24, 24]
