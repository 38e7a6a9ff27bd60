"""Restore the rights that an operator lost when their password was reset by mail."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.models import User
from portal.people.security_events import NOWHERE
from portal.people.staff import allow_rights


class Command(BaseCommand):
    help = (
        "Restore the rights of an operator whose password was reset by mail while they had no second factor."
        " First make sure that the operator did it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the operator's e-mail address")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        user = User.objects.filter(email=email.lower()).first()
        if user is None:
            raise CommandError(f"There is no account with the address {email}.")
        if user.rights_held_at is None:
            raise CommandError(f"The rights of {email} are not withheld.")
        allow_rights(user, NOWHERE)
        self.stdout.write(f"{email} has their rights again, and must now set up a second factor.")
