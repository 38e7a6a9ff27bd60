"""The app's configuration."""

from django.utils.translation import gettext_lazy as _

from portal import extras


class EmulatorConfig(extras.SiteApp):
    name = "emulator"
    verbose_name = _("Client emulator")
    room = "emulator"

    def ready(self) -> None:
        from emulator.runs import replays, worker
        from emulator.runs.experiments import READ, RUN
        from portal.requested_work.queue import kinds

        kinds[RUN] = worker.execute_run
        kinds[READ] = worker.read_upload
        kinds[replays.REPLAY] = replays.make
