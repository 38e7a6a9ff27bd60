"""Check the signed log, or print it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.audit import signed_log
from portal.maintenance.report import report_differences


class Command(BaseCommand):
    help = (
        "Check that no entry of the log of releases, changes of keys and addresses of projects was changed or removed;"
        " exit code 1 if there is a difference."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--copy", type=Path, metavar="FILE", help="also compare with a copy exported before")
        parser.add_argument(
            "--last", nargs=2, metavar=("NUMBER", "DIGEST"), help="also look for this entry, named by the site's log"
        )
        parser.add_argument("--export", action="store_true", help="print the log as lines of JSON instead")
        parser.add_argument("--public-key", action="store_true", help="print the key that signs it instead")

    def handle(self, *args: Any, copy: Path | None, last: list[str] | None, **options: Any) -> None:
        if options["export"]:
            for line in signed_log.export():
                self.stdout.write(line, ending="")
            return
        if options["public_key"]:
            self.stdout.write(signed_log.public_key_text(), ending="")
            return
        differences = list(signed_log.differences())
        if last is not None:
            try:
                differences += signed_log.differences_from_last(int(last[0][:18]), last[1])
            except ValueError as error:
                raise CommandError(str(error)) from error
        if copy is not None:
            try:
                differences += signed_log.differences_from(copy.read_text(encoding="utf-8").splitlines())
            except (OSError, ValueError) as error:
                raise CommandError(str(error)) from error
        report_differences(self, differences, "The signed log is intact.")
