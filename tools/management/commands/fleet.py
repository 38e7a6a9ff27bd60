"""Let simulated computers report to the ledger of this site, on a simulated clock."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from accounting.ledger import rollup
from portal.models import Host, User
from tools.simulation import fleet
from tools.simulation.client import SimulatedComputer


def _within(
    days: int, model: SimulatedComputer, pattern: fleet.UsagePattern
) -> tuple[SimulatedComputer, fleet.UsagePattern]:
    """Return a computer that joins within this many days; later ones would never report."""
    return model, replace(pattern, joins_day=min(pattern.joins_day, days // 2))


class Command(BaseCommand):
    help = (
        "Make volunteers whose simulated computers attach and report for some days, up to now, through the same code as"
        " real clients. For trying the site with many users; needs projects."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--users", type=int, default=5, help="volunteers to make (default 5)")
        parser.add_argument("--computers", type=int, default=4, help="computers of each (default 4)")
        parser.add_argument("--days", type=int, default=30, help="days of history (default 30)")
        parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same fleet (default 1)")
        parser.add_argument("--password", default="cobblestone", help="everyone's password (default cobblestone)")

    def handle(
        self, *args: Any, users: int, computers: int, days: int, seed: int, password: str, **options: Any
    ) -> None:
        now = timezone.now()
        start = now - dt.timedelta(days=days)
        machines: list[fleet.SimulatedHost] = []
        emails = [f"fleet-{seed}-{number}@example.org" for number in range(users)]
        existing = set(User.objects.filter(email__in=emails).values_list("email", flat=True))
        theirs = Host.objects.filter(owner__email__in=emails)
        computers_before = theirs.count()
        for number, email in enumerate(emails):
            if email not in existing:
                name = f"Fleet {seed}.{number}"
                User.objects.create_user(email, password, name=name, created_at=start, new_hosts_per_day=computers)
            patterns = [_within(days, *fleet.HARDWARE[index % len(fleet.HARDWARE)]) for index in range(computers)]
            machines += fleet.assemble(email, password, seed, patterns)
        calls = fleet.run(machines, start, now)
        rollup.roll_up(now, since=start.date())
        worked = {url for machine in machines for url in machine.stretches}
        self.stdout.write(
            f"Volunteers made: {users - len(existing)}. Computers made: {theirs.count() - computers_before}."
            f" Projects that they worked for: {len(worked)}. Requests answered: {calls}."
        )
        if existing:
            self.stdout.write(f"{len(existing)} volunteers were there before; their computers reported again.")
        if not worked:
            self.stdout.write("There is no credit: computers had no project to work for, or only just attached.")
