"""Sign a project's URL where the private key is; the result is pasted in the admin of the site."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounting.projects import signing_key
from accounting.wire.requests import canonical_url
from portal.wire.signing import SigningError


class Command(BaseCommand):
    help = "Print the signature of a project's master URL, made with the private key that AM_SIGNING_KEY names."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="the master URL, for example https://project.example.org/science/")

    def handle(self, *args: Any, url: str, **options: Any) -> None:
        try:
            signature = signing_key.sign_url(canonical_url(url))
        except (ValueError, SigningError) as error:
            raise CommandError(str(error)) from error
        if signature is None:
            raise CommandError(f"there is no private key at {settings.AM_SIGNING_KEY} (AM_SIGNING_KEY)")
        self.stdout.write(signature, ending="")
