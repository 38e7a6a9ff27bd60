"""A laboratory: 300 simulated computers of one account, which join with a token, work, and are managed together."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from django.db.models import Sum

from accounting.computers import several
from accounting.computers.several import Action
from accounting.models import Day, HostProject, Note, Project
from portal.models import ClientKey, Host, JoinToken, User
from portal.people import join_tokens
from portal.wire.scanner import ProtocolError
from tests.support.am_rpc import call, make_computer
from tools.simulation import fleet

COMPUTERS = 300
START = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
ROOM = fleet.HARDWARE[1][0]


@pytest.mark.long
def test_three_hundred_computers_join_work_and_are_managed_together(
    alice: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.databases.clock.now", lambda: START)
    token, text = join_tokens.make_join_token(
        alice, group="room 12", max_hosts=COMPUTERS, lifetime=dt.timedelta(days=7)
    )
    always_on = replace(fleet.HARDWARE[1][1], leaves_day=None, absent=0.0)
    machines = fleet.assemble(token.login, text, 1, [(ROOM, always_on)] * COMPUTERS)
    # Each attaches in the ninth hour, with three contacts, and reports once more six hours later.
    noon, evening = START + dt.timedelta(hours=15, minutes=15), START + dt.timedelta(hours=21, minutes=40)
    calls = fleet.schedule(machines, START, evening)
    fleet.play(machines, [each for each in calls if each[0] < noon])

    hosts = Host.objects.filter(owner=alice, groups=["room 12"], join_token=token)
    assert hosts.count() == Host.objects.count() == COMPUTERS
    assert ClientKey.objects.filter(revoked_at=None, host__in=hosts).values("host").distinct().count() == COMPUTERS
    assert JoinToken.objects.get().places == 0
    with pytest.raises(ProtocolError, match="has been used for all its computers"):
        call(make_computer(alice, "one-more", email=token.login, password=text), noon)

    # All that they did is credited, and there is nothing to complain about.
    done = sum(attached.totals[2] for machine in machines for attached in machine.computer.projects.values())
    assert Day.objects.aggregate(n=Sum("cpu_time"))["n"] == done > 0
    assert not Note.objects.exists()

    everything = list(hosts.values_list("pk", flat=True))
    reached = several.apply(alice, everything, Action.SUSPEND, project_id=None, group="", now=noon)
    assert reached == COMPUTERS
    fleet.play(machines, [each for each in calls if each[0] >= noon])
    rows = HostProject.objects.filter(listed=True)
    assert rows.count() >= COMPUTERS
    assert not rows.filter(told_suspended=False).exists()
