"""Clients that say at each report which cross-project id they had before, as BOINC does, and copies of folders."""

from __future__ import annotations

import dataclasses
import datetime as dt

from accounting.models import HostProject, Project
from portal.models import Host, User
from tests.support.am_rpc import call, copy_of, host_of, make_computer, work
from tools.simulation.client import SimulatedComputer

ONE, OTHER, THIRD = "1" * 32, "2" * 32, "3" * 32


@dataclasses.dataclass
class Machine:
    """A client that says at each report which id it had at the one before, as BOINC does."""

    computer: SimulatedComputer

    def report(self, now: dt.datetime, cpid: str = "", *, is_lost: bool = False) -> None:
        self.computer.cpid = cpid or self.computer.cpid
        assert call(self.computer, now, is_lost=is_lost).error[0] == 0

    def stop_using(self) -> None:
        """“Stop using”: the client keeps its projects and totals, and forgets the site, its id and its key."""
        computer = self.computer
        computer.authenticator = computer.opaque = computer.previous_cpid = ""
        computer.dynamic = False
        for attached in computer.projects.values():
            attached.managed = False

    def did(self, project: Project, hours: float, jobs: int = 0) -> None:
        work(self.computer, project, hours, jobs)

    @property
    def host(self) -> Host:
        return host_of(self.computer)


def machine(alice: User, cpid: str, **fields: object) -> Machine:
    return Machine(make_computer(alice, "node", cpid=cpid, **fields))


def clone_of(one: Machine, cpid: str) -> Machine:
    """Another machine with a copy of the folder; it starts under its own id."""
    return Machine(copy_of(one.computer, cpid=cpid))


def jobs_of(*machines: Machine) -> int:
    hosts = {each.host.pk for each in machines}
    return sum(sum(row.credited[4:]) for row in HostProject.objects.filter(host__in=hosts))
