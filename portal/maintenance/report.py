"""How commands that check something report what they found."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import BaseCommand, CommandError


def report_differences(command: BaseCommand, differences: Iterable[str], all_is_well: str) -> None:
    """Write each difference as soon as it is found, as reading everything may take hours; any makes the exit code 1."""
    count = 0
    for line in differences:
        command.stdout.write(line)
        count += 1
    if count:
        raise CommandError(f"{count} differences", returncode=1)
    command.stdout.write(all_is_well)
