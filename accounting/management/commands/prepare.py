"""What has to be there before the site serves: signing key, partitions, badges and, on a private site, demo data."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from accounting.badges import usual
from accounting.ledger import partitions
from accounting.projects import own_project, signing_key
from accounting.simulation import demo_site
from portal.models import User


class Command(BaseCommand):
    help = (
        "Make the signing keys and the partitions of the coming months if they are missing and, where the site runs on"
        " its own embedded database and has no account yet, demo data. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="make demo data whatever the database, if it has none")

    def handle(self, *args: Any, demo: bool, **options: Any) -> None:
        if signing_key.make_if_missing():
            self.stdout.write(f"Made a signing key: {settings.AM_SIGNING_KEY}. Keep a copy; clients accept no other.")
        if "project" in settings.ROOMS:
            call_command("prepare_project", demo=demo, stdout=self.stdout)
        today = timezone.now().date()
        partitions.create_months(today, today + dt.timedelta(days=92))
        usual.make_usual()
        if (demo or settings.DEMO) and not User.objects.exists():
            demo_site.make(self.stdout)
        if own_project.create_if_missing(is_active=demo or settings.DEMO):
            self.stdout.write(f"This site's own project is in the list of projects: {settings.PROJECT_URL}")
