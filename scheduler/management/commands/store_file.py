"""Store input files that many jobs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.files.store import StoringError, store_file, store_gzipped


class Command(BaseCommand):
    help = "Store an input file that jobs can name. Safe to repeat; a changed file needs a new name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--name", help="the name that jobs use; default: its own name")
        parser.add_argument("--gzip", action="store_true", help="also store it packed, as NAME.gz")

    def handle(self, *args: Any, path: Path, name: str | None, gzip: bool, **options: Any) -> None:
        try:
            with path.open("rb") as content:
                stored = store_file(name or path.name, File(content))
                packed = store_gzipped(stored.name, content) if gzip else None
        except (OSError, StoringError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{stored.name}: {stored.nbytes} bytes, MD5 {stored.md5}.")
        if packed is not None:
            self.stdout.write(f"{packed.name}: {packed.nbytes} bytes.")
