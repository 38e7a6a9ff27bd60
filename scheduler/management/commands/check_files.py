"""Check that the storage has every file that it should have: a line per difference, exit code 1 if there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from portal.maintenance.report import report_differences
from scheduler.files import check


class Command(BaseCommand):
    help = (
        "Read every program, input, upload and kept output, compare it with its size and MD5, and report every"
        " difference; exit code 1 if there is one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        report_differences(self, check.differences(), "All files are there.")
