"""The app's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.utils.translation import gettext_lazy as _

from portal import extras


class EmulatorConfig(extras.SiteApp):
    name = "emulator"
    verbose_name = _("Client emulator")
    room = "emulator"

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        from emulator.runs import replays, worker
        from emulator.runs.experiments import READ, RUN

        return {RUN: worker.execute_run, READ: worker.read_upload, replays.REPLAY: replays.make}
