"""Check the ledger's invariants: a line per difference, exit code 1 if there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from accounting.ledger import check
from portal.maintenance.report import report_differences


class Command(BaseCommand):
    help = "Re-derive the ledger's totals from its days and report every difference; exit code 1 if there is one."

    def handle(self, *args: Any, **options: Any) -> None:
        report_differences(self, check.differences(), "The ledger is consistent.")
