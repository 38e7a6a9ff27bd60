"""`manage.py simulate_history`: three weeks of validated credit for a volunteer's computers, as in `make run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from extras.laboratory.trials.demo import ReportedWork, make_history
from portal.models import User


class Command(BaseCommand):
    help = (
        "Give a volunteer's computers three weeks of validated results in a finished app, with the wingmen that it"
        " takes; for demonstrations. Does nothing the second time."
    )

    # For callers: the work of each computer, by its id, with the fields of a `ReportedWork`
    stealth_options = ("work",)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the volunteer's e-mail address")

    def handle(
        self, *args: Any, email: str, work: Mapping[int, Sequence[tuple[Any, ...]]] | None = None, **options: Any
    ) -> None:
        owner = User.objects.filter(email=email).first()
        if owner is None:
            raise CommandError(f"nobody has the e-mail address {email}")
        reported = (
            None
            if work is None
            else {host_id: [ReportedWork(*fields) for fields in did] for host_id, did in work.items()}
        )
        self.stdout.write(
            f"Made {make_history(owner, timezone.now(), reported)} results of an app, most of them validated."
        )
