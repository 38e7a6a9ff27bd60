"""Compile the catalogues."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from portal.languages.compiling import ROOT, compile_stale


class Command(BaseCommand):
    help = "Compile the catalogues (.po) that changed to the form that the site reads (.mo)."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        for path in compile_stale():
            self.stdout.write(f"{path.relative_to(ROOT)} compiled")
