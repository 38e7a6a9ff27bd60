"""The app's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from celery.signals import worker_ready
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from portal import extras


def _compile_kernel(sender: Any, **_: Any) -> None:
    """Compile in the background as soon as a worker starts that may run the emulator."""
    from emulator.engine.kernel.built import start_building

    if "requested" in sender.app.amqp.queues.consume_from:
        start_building()


class EmulatorConfig(extras.SiteApp):
    name = "emulator"
    verbose_name = _("Client emulator")
    room = "emulator"

    def ready(self) -> None:
        super().ready()
        # For this process and its children; see emulator.engine.kernel.built.
        os.environ.setdefault("NUMBA_CACHE_DIR", str(settings.VAR_DIR / "emulator_kernel"))
        worker_ready.connect(_compile_kernel)

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        from emulator.runs import replays, worker
        from emulator.runs.experiments import READ, RUN

        return {RUN: worker.execute_run, READ: worker.read_upload, replays.REPLAY: replays.make}
