"""Create what the site needs before it serves: signing key, partitions, badges and, on a private site, demo data."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection
from django.utils import timezone
from django.utils.module_loading import import_string

from accounting.ledger import partitions
from accounting.ledger.sql import AdvisoryLock
from accounting.projects import own_project, signing_key
from portal.extras import apps_in_use
from portal.models import User

DEMO: Final = "tools.demo.site.make"
"""Named as a string: a deployment has no tools, and no demo."""


class Command(BaseCommand):
    help = (
        "Make the signing keys and the partitions of the coming months if they are missing and, where the site runs on"
        " its own embedded database and has no account yet, demo data. Say what a changed SITE_URL means. Safe to"
        " repeat; a second one waits until the first has ended."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="make demo data whatever the database, if it has none")
        parser.add_argument(
            "--follow-address",
            action="store_true",
            help="let the site's own project follow a changed SITE_URL from an address of one machine (`make run`)",
        )

    def handle(self, *args: Any, demo: bool, follow_address: bool, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.PREPARE.value])
        try:
            self._prepare(demo or settings.DEMO, follow_address)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [AdvisoryLock.PREPARE.value])

    def _prepare(self, demo: bool, follow_address: bool) -> None:
        if signing_key.make_if_missing():
            self.stdout.write(f"Made a signing key: {settings.AM_SIGNING_KEY}. Keep a copy; clients accept no other.")
        if "project" in settings.ROOMS:
            call_command("prepare_project", demo=demo, stdout=self.stdout)
        today = timezone.now().date()
        partitions.create_months(today, today + dt.timedelta(days=92))
        for app in apps_in_use():
            app.prepare()
        if demo and not User.objects.exists():
            import_string(DEMO)(self.stdout)
        if own_project.create_if_missing(is_active=demo):
            self.stdout.write(f"This site's own project is in the list of projects: {settings.PROJECT_URL}")
        elif (move := own_project.pending_move()) is not None:
            self._follow_address(move, follow_address)

    def _follow_address(self, move: own_project.Move, may_follow: bool) -> None:
        """Explain what a changed SITE_URL means, or follow it; a command started with the wrong settings has a changed
        one, too.
        """
        changed = f"SITE_URL is {settings.SITE_URL}, but this site's own project is at {move.here}."
        if not (may_follow and own_project.is_of_one_machine(move.here)):
            self.stdout.write(
                f"{changed} Nothing was changed.\n"
                "  If the site has moved, run `manage.py move_site`: docs/how-to/move.md says what else to do.\n"
                f"  If it has not, correct SITE_URL: what the site sends to computers names {settings.SITE_URL}."
            )
            return
        try:
            own_project.carry_out(move)
        except own_project.MoveError as error:
            self.stdout.write(f"{changed} It cannot move: {error}")
            return
        self.stdout.write(
            f"This site's own project has moved with SITE_URL, from {move.here} to {move.there}. It stays the same"
            " project for computers that have it at the former address."
        )
        if not signing_key.is_here():
            self.stdout.write(
                "  Its new address is not signed: sign it with `manage.py sign_url`, and paste the result."
            )
