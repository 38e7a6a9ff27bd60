"""An account with hundreds of computers: all of them go on, however many join."""

from __future__ import annotations

import datetime as dt

from pytest_django import Settings

from accounting.models import Project
from portal.models import ClientKey, Host, User
from tests.support.am_rpc import START, call, make_computer


def test_every_one_of_203_computers_syncs(alice: User, projects: list[Project], settings: Settings) -> None:
    # All come from one address here.
    settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE = 1000
    computers = [make_computer(alice, f"pc-{number:03}") for number in range(203)]
    for second, computer in enumerate(computers):
        moment = START + dt.timedelta(seconds=second)
        assert call(computer, moment).error == call(computer, moment + dt.timedelta(minutes=2)).error == (0, "")
    later = START + dt.timedelta(hours=6)
    assert [call(computer, later).error for computer in computers] == [(0, "")] * 203
    assert Host.objects.filter(owner=alice).count() == ClientKey.objects.filter(revoked_at=None).count() == 203
