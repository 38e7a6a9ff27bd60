"""Of the messages of a periodic task one is carried out, whoever sent how many, and whatever a machine's clock says."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from portal.celery import app
from portal.models import PeriodicTask
from portal.periodic.turns import turn

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = dt.timedelta(hours=1)


def is_mine(rest_secs: float = 60) -> bool:
    with turn("a task", rest_secs) as mine:
        return mine


def done(ago: dt.timedelta) -> None:
    PeriodicTask.objects.update_or_create(name="a task", defaults={"done_at": timezone.now() - ago})


def test_a_second_message_is_not_carried_out() -> None:
    assert is_mine()
    assert not is_mine()
    done(HOUR)
    assert is_mine()


def test_nobody_is_at_a_task_that_another_is_at() -> None:
    with turn("a task", 60) as first, turn("a task", 60) as second, turn("another task", 60) as other:
        assert (first, second, other) == (True, False, True)


def test_a_run_that_failed_is_not_noted() -> None:
    with pytest.raises(ValueError, match="it is full"), turn("a task", 60):
        raise ValueError("it is full")
    assert is_mine()


def test_a_run_that_a_wrong_clock_noted_in_the_future_keeps_nobody_waiting() -> None:
    done(-HOUR)
    assert is_mine()


def test_only_messages_of_beat_are_left_out() -> None:
    runs: list[int] = []

    @app.task(name="tests.periodic")
    def periodic() -> None:
        runs.append(1)

    def state(**options: Any) -> str:
        outcome: Any = periodic.apply(**options)
        return str(outcome.state)

    by_beat = {"headers": {"every_secs": 60}}
    assert [state(**by_beat), state(**by_beat), state()] == ["SUCCESS", "IGNORED", "SUCCESS"]
    assert len(runs) == 2
