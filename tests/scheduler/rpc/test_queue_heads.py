"""Where a process begins to search an app's queue for jobs that are not ready."""

from __future__ import annotations

import pytest

from portal.models import User
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, known_apps

pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("filled_once")
def test_the_head_moves_with_what_is_sent_and_goes_back_when_too_little_is_left(alice: User) -> None:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    first = make_result(make_workunit(app, output_files=[]))
    computer = computer_of(alice, ncpus=16)
    computer.ask(0, 1)
    assert computer.jobs == [first.name]
    # The job cache is at the queue's end, and finds none of the jobs that follow.
    computer.ask(0, 1)
    second, third = (make_result(make_workunit(app, output_files=[])) for _ in range(2))
    computer.ask(0, 1)
    # Where the queue began as the second was picked.
    assert known_apps().heads[app.pk] == (0, second.pk)
    computer.ask(0, 2)
    assert computer.jobs == [first.name, second.name, third.name]
    assert app.pk not in known_apps().heads
    urgent = make_result(make_workunit(app, output_files=[]), priority=1)
    computer.ask(0, 1)
    assert computer.jobs[-1] == urgent.name
