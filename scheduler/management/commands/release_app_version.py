"""Release a version of an app from a folder: sign its files, store them, and let the scheduler send it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.programs import release
from scheduler.programs.release import Release, ReleaseError


class Command(BaseCommand):
    help = (
        "Release a version of an app from a folder with its program files and a version.toml; docs/how-to/jobs.md has"
        " an example. Safe to repeat. A file that changed needs another version number."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--signatures", type=Path, metavar="FOLDER", help="take signatures made elsewhere: NAME.sig for each file"
        )
        parser.add_argument(
            "--print-unsigned",
            action="store_true",
            help="print the name, MD5 and path of the files that have to be signed, and stop",
        )
        parser.add_argument(
            "--write-signatures",
            type=Path,
            metavar="FOLDER",
            help="sign the files into this folder and stop: for the machine that has the private key",
        )

    def handle(self, *args: Any, folder: Path, signatures: Path | None, **options: Any) -> None:
        try:
            release_read = release.read_release(folder)
            if options["print_unsigned"]:
                self._print(release_read)
                return
            signed = release.sign_files(release_read, signatures)
            if target := options["write_signatures"]:
                target.mkdir(parents=True, exist_ok=True)
                for name, text in signed.items():
                    (target / f"{name}.sig").write_text(text, encoding="ascii")
                self.stdout.write(f"{len(signed)} signatures written to {target}.")
                return
            version, is_new = release.release_version(release_read, signed)
        except ReleaseError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{version} {'is released' if is_new else 'was already released: nothing to do'}.")

    def _print(self, release: Release) -> None:
        for file in release.files:
            md5 = hashlib.md5(file.path.read_bytes(), usedforsecurity=False).hexdigest()
            self.stdout.write(f"{file.name} {md5} {file.path}")
