"""The app's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from portal import extras


class EmulatorConfig(extras.SiteApp):
    name = "emulator"
    verbose_name = _("Client emulator")
    room = "emulator"

    def ready(self) -> None:
        super().ready()
        # For this process and those that it starts; see emulator.engine.kernel.built.
        os.environ.setdefault("NUMBA_CACHE_DIR", str(settings.VAR_DIR / "emulator_kernel"))

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        from emulator.runs import replays, worker
        from emulator.runs.experiments import READ, RUN

        return {RUN: worker.execute_run, READ: worker.read_upload, replays.REPLAY: replays.make}
