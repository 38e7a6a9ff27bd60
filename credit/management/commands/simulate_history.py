"""`manage.py simulate_history`: three weeks of validated credit for a volunteer's computers, as in `make run`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from credit.laboratory.demo import make_history
from portal.models import User


class Command(BaseCommand):
    help = (
        "Give a volunteer's computers three weeks of validated results in a finished app, with the wingmen that it"
        " takes; for demonstrations. Does nothing the second time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the volunteer's e-mail address")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        owner = User.objects.filter(email=email).first()
        if owner is None:
            raise CommandError(f"nobody has the e-mail address {email}")
        self.stdout.write(f"{make_history(owner, timezone.now())} results of an app were validated.")
