"""Sign the manifest of a version that is prepared in the browser, on the machine with the private key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.programs.release import ReleaseError
from scheduler.releases.manifests import sign_manifest


class Command(BaseCommand):
    help = (
        "Sign a manifest that was downloaded from the page of a new version, and print the signatures to paste"
        " there. Only files of the folder are signed, and none if the site has a different one under a name."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("manifest", type=Path)
        parser.add_argument("folder", type=Path, help="your own copies of the program files")

    def handle(self, *args: Any, manifest: Path, folder: Path, **options: Any) -> None:
        try:
            signed = sign_manifest(manifest.read_text(encoding="utf-8"), folder)
        except (ReleaseError, OSError, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(signed, indent=1))
