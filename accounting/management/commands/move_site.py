"""Move this site's own project to the address that SITE_URL gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounting.projects import own_project, signing_key
from portal.wire.signing import SigningError, clean_signature


class Command(BaseCommand):
    help = (
        "Move this site's own project to the address that SITE_URL gives it now. The former address stays known as its"
        " own, so no computer loses the project or its tasks. Run it once, with the new SITE_URL, when the new address"
        " answers: docs/how-to/move.md. Moving back is the same with the former SITE_URL."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--signature",
            metavar="FILE",
            help="the signature of the new address (manage.py sign_url), where the private key is kept elsewhere",
        )

    def handle(self, *args: Any, signature: str | None, **options: Any) -> None:
        move = own_project.pending_move()
        if move is None:
            self.stdout.write(
                f"Nothing to move: this site has no project of its own at any address but {settings.PROJECT_URL}."
            )
            return
        try:
            own_project.carry_out(move, _signature(move.there, signature))
        except own_project.MoveError as error:
            raise CommandError(f"Nothing was changed. {error}") from error
        self.stdout.write(
            f"This site's own project has moved from {move.here} to {move.there}.\n"
            "  Computers that have it at the former address keep it there, with their tasks and credit, as long as\n"
            "  that address leads to this site. Restart all services with the new SITE_URL, and let the former\n"
            "  address redirect here: docs/how-to/move.md."
        )


def _signature(url: str, file: str | None) -> str | None:
    """Read the signature in the file and check it; None where the site signs the URL itself. Raises CommandError."""
    if file is None:
        if signing_key.is_here():
            return None
        raise CommandError(
            "Nothing was changed. The private signing key is not on this server. Sign the new address where it is:\n"
            f"  manage.py sign_url {url} > signature\nand run this again with --signature signature"
        )
    try:
        pasted = clean_signature(Path(file).read_text(encoding="ascii"))
        is_signed = signing_key.is_signed(url, pasted)
    except (OSError, UnicodeDecodeError, SigningError) as error:
        raise CommandError(f"Nothing was changed. The signature in {file} cannot be used: {error}") from error
    if not is_signed:
        raise CommandError(f"Nothing was changed. {file} has no signature of {url} made with the site's signing key.")
    return pasted
