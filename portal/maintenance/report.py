"""Reports the findings of commands that check something."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import BaseCommand, CommandError


def report_differences(command: BaseCommand, differences: Iterable[str], all_is_well: str) -> None:
    """Write each difference as soon as it is found, as a check may take hours. Exit code 1 if there are any."""
    count = 0
    for line in differences:
        command.stdout.write(line)
        count += 1
    if count:
        raise CommandError(f"{count} differences", returncode=1)
    command.stdout.write(all_is_well)
