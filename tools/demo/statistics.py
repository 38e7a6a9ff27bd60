"""Statistics exports of two projects of the demo, day by day, read by this site like those of any project."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import connection

from accounting.models import Project, StatisticsImport
from accounting.reconciliation import refresh
from accounting.statistics import store
from accounting.wire.statistics import HOSTS, USERS, Row, Tables
from portal.fetch.fetcher import Version
from tools.simulation.fleet import ProjectWork, SimulatedHost

PUBLISHED: Final = ("Tidewater", "Quiet Sky Survey")
VALIDATED_AFTER_HOURS: Final = (4.0, 60.0)
"""The time until another computer has returned the same jobs."""
RATIO: Final = (0.85, 1.1)
"""Granted to estimated credit of a computer's work between two contacts."""
_FIRST_NUMBER: Final = 2001


@dataclass(slots=True)
class _Record:
    """A computer in a project's database. ``waiting``: the credit that is not validated yet, and when it will be."""

    number: int
    machine: SimulatedHost
    made_at: dt.datetime | None = None
    nstretches: int = 0
    waiting: list[tuple[dt.datetime, float]] = field(default_factory=list)
    total_credit: float = 0.0

    def go_on(self, url: str, now: dt.datetime) -> None:
        stretches = self.machine.stretches.get(url, [])
        for number, stretch in enumerate(stretches[self.nstretches :], self.nstretches):
            self.made_at = self.made_at or stretch.until
            self.waiting.append(self._grant(url, number, stretch))
        self.nstretches = len(stretches)
        self.total_credit += sum(credit for at, credit in self.waiting if at <= now)
        self.waiting = [(at, credit) for at, credit in self.waiting if at > now]

    def _grant(self, url: str, number: int, stretch: ProjectWork) -> tuple[dt.datetime, float]:
        rng = random.Random(f"{self.machine.computer.name} {url} {number}")
        estimated = sum(self.machine.computer.credit_micro(stretch.cpu_secs, stretch.gpu_secs)) / 1e6
        return stretch.until + dt.timedelta(hours=rng.uniform(*VALIDATED_AFTER_HOURS)), estimated * rng.uniform(*RATIO)

    def row(self, now: dt.datetime) -> Row | None:
        """Return the computer's record; None before it has done anything."""
        if self.made_at is None:
            return None
        computer = self.machine.computer
        cpid = hashlib.md5(f"{computer.cpid}{computer.email}".encode(), usedforsecurity=False).hexdigest()
        return self.number, self.total_credit, 0.0, now.timestamp(), round(self.made_at.timestamp()), cpid.encode()


class DemoStatistics:
    """The exports. The first one is made before any computer works, so all credit is known from its beginning."""

    def __init__(self, machines: Sequence[SimulatedHost]) -> None:
        self._projects = list(Project.objects.filter(name__in=PUBLISHED))
        self._records: dict[int, list[_Record]] = {}
        for project in self._projects:
            records = [_Record(number, machine) for number, machine in enumerate(machines, _FIRST_NUMBER)]
            for record in records:
                record.machine.computer.hostids[project.master_url] = record.number
            self._records[project.pk] = records
            # There is nothing at its address.
            StatisticsImport.objects.create(project=project, is_on=False)

    def publish(self, now: dt.datetime) -> None:
        """Let each project export what it has granted until now; read it, and settle it."""
        for project in self._projects:
            for record in self._records[project.pk]:
                record.go_on(project.master_url, now)
            hosts = [row for record in self._records[project.pk] if (row := record.row(now)) is not None]
            self._keep(project, hosts, now)
        refresh.refresh_due(now)

    @staticmethod
    def _keep(project: Project, hosts: list[Row], now: dt.datetime) -> None:
        row = StatisticsImport.objects.get(project=project)
        connection.ensure_connection()
        source = store.source_of({USERS: [], HOSTS: [hosts]})
        store.keep(connection.connection, row, Tables(int(now.timestamp()), None, None), Version(), source)
