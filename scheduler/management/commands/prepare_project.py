"""Prepares the project server: makes the code-signing key and, for a demo, example apps with jobs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from scheduler.examples import demo as demo_jobs
from scheduler.programs import code_signing


class Command(BaseCommand):
    help = (
        "Make the code-signing key if it is missing and, if the site runs on its own embedded database, release the"
        " example apps. `manage.py prepare` calls it. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="release the examples whatever the database")

    def handle(self, *args: Any, demo: bool, **options: Any) -> None:
        if code_signing.make_if_missing():
            self.stdout.write(
                f"Made a code-signing key: {settings.CODE_SIGNING_KEY}. Keep a copy; programs are signed with it."
            )
        if demo or settings.DEMO:
            for version in demo_jobs.release_examples():
                self.stdout.write(f"Released {version}.")
            demo_jobs.top_up(timezone.now())
