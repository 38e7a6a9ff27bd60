"""Move old months of the daily history into files, or back."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounting.ledger.archive import moves, reads, store


class Command(BaseCommand):
    help = (
        "Move the daily history of the months before one into Parquet files in the archive's storage. All pages and"
        f" exports still show it. Months of the last {reads.LEAST_AGE_MONTHS} stay. Safe to interrupt and to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--before", required=True, metavar="YYYY-MM", help="the first month that is left as it is")
        parser.add_argument("--restore", action="store_true", help="bring these months back into the database")

    def handle(self, *args: Any, before: str, restore: bool, **options: Any) -> None:
        end = _month(before)
        nmonths = 0
        try:
            found = moves.restore_before(end) if restore else moves.archive_before(end, timezone.now().date())
            for each in found:
                nmonths += 1
                done = "brought back" if restore else "archived"
                self.stdout.write(
                    f"{each.month:%Y-%m} {done}: {each.rows:,} rows, {each.files:,} files, {each.size_bytes:,} bytes"
                )
                self.stdout.flush()
        except (moves.ArchiveRefused, store.ArchiveUnreadable) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{nmonths} months.")


def _month(text: str) -> dt.date:
    if re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text, re.ASCII) and text >= "1900":
        return dt.date(int(text[:4]), int(text[5:]), 1)
    raise CommandError(f"--before {text[:20]!r} is no month: write it like 2024-01, from 1900-01 on.")
