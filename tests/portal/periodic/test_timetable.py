"""How often beat sends the message of a task, and how soon after a run the next one may begin."""

from __future__ import annotations

from typing import Any

import pytest
from celery.schedules import crontab

from portal.periodic.timetable import rest_secs, timetable


def schedule(name: str, secs: int = 5) -> Any:
    entries = timetable(["project"], validator_secs=5, transitioner_secs=secs, export_secs=86_400, has_demo=False)
    return entries[name]["schedule"]


def test_messages_are_sent_by_times_of_day_where_these_can_say_it() -> None:
    assert schedule("take-figures") == crontab(minute="*/10")
    assert schedule("send-waiting-mails") == crontab(minute="*/1")
    assert schedule("transition") == 5
    assert schedule("transition", 90) == 90


@pytest.mark.parametrize("name", ["archive", "erase", "export-statistics"])
def test_what_is_due_less_often_than_once_an_hour_is_sent_once_an_hour(name: str) -> None:
    sent = schedule(name)
    assert (len(sent.minute), len(sent.hour), len(sent.day_of_month)) == (1, 24, 31)


# Half of the time between messages less than the interval: 60 - 30, 3600 - 1800, 86400 - 1800
@pytest.mark.parametrize(("every_secs", "rest"), [(60, 30), (3600, 1800), (86_400, 84_600)])
def test_a_task_rests_after_a_run(every_secs: int, rest: int) -> None:
    assert rest_secs(every_secs) == rest
