"""Change the project's code-signing key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from scheduler.programs import key_change
from scheduler.programs.key_change import KeyChangeError, SigningList


class Command(BaseCommand):
    help = (
        "Make a new code-signing key, sign it with the old one and all programs with it, and let clients switch to it:"
        " in one step if the private key is on this machine, else in the steps of docs/how-to/jobs.md, “Change the"
        " key”. The old key is kept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        steps = parser.add_mutually_exclusive_group()
        steps.add_argument(
            "--list", action="store_true", help="1, on the site: print the key in force and what has to be signed"
        )
        steps.add_argument(
            "--sign",
            nargs=2,
            type=Path,
            metavar=("LIST", "FOLDER"),
            help="2, where the private key is: make the next key and write all signatures into the folder",
        )
        steps.add_argument("--take", type=Path, metavar="FOLDER", help="3, on the site: check them and change the key")
        steps.add_argument(
            "--adopt",
            type=Path,
            metavar="LIST",
            help="4, where the private key is: sign with the new key from now on, given a list made after 3",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["list"]:
                self.stdout.write(key_change.signing_list().text(), ending="")
            elif options["sign"]:
                self._sign(*options["sign"])
            elif options["take"]:
                self._say(key_change.take(key_change.read(options["take"]), timezone.now()))
            elif options["adopt"]:
                key_change.adopt(_read_list(options["adopt"]))
                self.stdout.write("The new key is in place, and the old one is next to it. Keep both.")
            else:
                self._say(key_change.change_here(timezone.now()))
        except (KeyChangeError, OSError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _sign(self, list_: Path, folder: Path) -> None:
        new = key_change.sign(_read_list(list_))
        key_change.write(new, folder)
        self.stdout.write(f"The new key and {len(new.programs)} signatures are in {folder}. Copy them to the site.")

    def _say(self, count: int) -> None:
        self.stdout.write(
            f"The key is changed; programs signed with it: {count}. Clients follow with their next request."
        )


def _read_list(path: Path) -> SigningList:
    try:
        return key_change.parse_signing_list(path.read_text(encoding="ascii"))
    except KeyChangeError as error:
        raise CommandError(f"{path}: {error}") from error
