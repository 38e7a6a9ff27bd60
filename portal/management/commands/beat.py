"""Send the periodic tasks."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand

from portal import beat


class Command(BaseCommand):
    help = "Send the periodic tasks while no other such process of the site does. Any number may run, on any machine."

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        with suppress(KeyboardInterrupt):
            beat.run()
