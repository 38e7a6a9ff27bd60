"""`manage.py store_examples`: make the finished runs of the emulator's examples again."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from emulator.files.presets import PRESETS
from emulator.runs.examples import orders_of, store
from emulator.runs.worker import run_process
from portal.languages.sentences import sentence

# Far more than any needs: whether changes are tried must not depend on the machine.
SECS_MAX: Final = 3600


class Command(BaseCommand):
    """Run it after a change of the emulator's rules, and commit its output. Needs no database."""

    help = "Make the finished runs of the emulator's examples again, in emulator/data/examples: all, or those named."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("keys", nargs="*", metavar="KEY", help="an example's name; none means all")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = set(options["keys"]) - {preset.key for preset in PRESETS}
        if unknown:
            raise CommandError(f"There is no example {', '.join(sorted(unknown))}.")
        for preset in PRESETS:
            if options["keys"] and preset.key not in options["keys"]:
                continue
            answers = [run_process(order, b"", SECS_MAX, lambda _progress: None) for order in orders_of(preset)]
            for answer in answers:
                if answer.fault:
                    raise CommandError(f"{preset.key}: {sentence(answer.fault)}")
            store(preset, [(answer.ok, answer.data) for answer in answers])
            self.stdout.write(f"{preset.key}: {sum(len(answer.data) for answer in answers) / 1024:.0f} KiB")
