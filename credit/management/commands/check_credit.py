"""Check the invariants of credit: prints a line for each difference, and exits with 1 if there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from credit.statistics import check
from portal.maintenance.report import report_differences


class Command(BaseCommand):
    help = (
        "Recalculate the totals of volunteers and computers, the canonical results and all stored claims, and report"
        " every difference; exit code 1 if there is one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        report_differences(self, check.differences(), "Validated credit is consistent.")
