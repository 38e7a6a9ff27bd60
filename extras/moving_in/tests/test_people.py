"""Volunteers of a project that moves here."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from credit.models import UserCredit
from extras.moving_in.boinc import steps
from extras.moving_in.boinc.people import PEOPLE
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery import run
from extras.moving_in.machinery.steps import Context, Step
from extras.moving_in.tests.old_project import T0, OldProject
from portal.models import User

pytestmark = pytest.mark.django_db


def imported(project: OldProject, *some: Step) -> dict[str, Tally]:
    source = project.source()
    try:
        return run.carry_out(steps.SOURCE, some or steps.steps(), Context(source, timezone.now()), print)
    finally:
        source.close()


def test_people_keep_numbers_names_and_credit(old_project: OldProject) -> None:
    old_project.user(7, name="Zoë".encode(), total_credit=1234.5, expavg_credit=10.0, expavg_time=T0)
    (tally,) = imported(old_project, PEOPLE).values()
    assert (tally.nread, tally.ntaken, tally.nchanged, tally.nleft) == (1, 1, 1, 0)
    user = User.objects.get(pk=7)
    assert (user.email, user.name, user.cross_project_id) == ("user7@example.org", "Zoë", f"c{7:031x}")
    assert UserCredit.objects.values_list("total_credit", "expavg_credit", "expavg_at__date").get() == (
        1234.5,
        10.0,
        dt.date(2023, 11, 14),
    )
