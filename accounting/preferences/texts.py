"""The computing preferences in words: what each does, its unit, and its group on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _


@dataclass(frozen=True, slots=True)
class Words:
    """A preference on the page: its label, the unit after its number, and a sentence where the label is not enough.

    ``scale``: how many of the client's units make one of the page's.
    """

    label: str
    unit: str = ""
    help: str = ""
    scale: int = 1

    @property
    def translated(self) -> Words:
        """Return the words in the visitor's language."""
        label, unit, help_ = (gettext(text) if text else "" for text in (self.label, self.unit, self.help))
        return Words(label, unit, help_, self.scale)


GROUPS: Final[dict[str, dict[str, Words]]] = {
    _("When to run"): {
        "run_if_user_active": Words(_("Run tasks while I use the computer")),
        "run_gpu_if_user_active": Words(
            _("Use the GPU while I use the computer"), help=_("May make the screen respond slowly.")
        ),
        "run_on_batteries": Words(_("Run tasks on battery power")),
        "idle_time_to_run": Words(_("I count as away after"), _("min"), _("Without mouse or keyboard input.")),
        "suspend_if_no_recent_input": Words(
            _("Stop when I have been away for"), _("min"), _("Lets the computer go to sleep. 0 = never stop.")
        ),
        "start_hour": Words(_("Run tasks from")),
        "end_hour": Words(
            _("Run tasks until"), help=_("In the computer’s local time, such as 22:30. The same time in both: all day.")
        ),
    },
    _("Processors"): {
        "max_ncpus_pct": Words(_("Processors while I use it, at most"), "%"),
        "niu_max_ncpus_pct": Words(_("Processors while I am away, at most"), "%"),
        "cpu_usage_limit": Words(_("Computing time while I use it, at most"), "%"),
        "niu_cpu_usage_limit": Words(
            _("Computing time while I am away, at most"),
            "%",
            _("Below 100, tasks run in short bursts, which keeps the computer cooler and quieter."),
        ),
        "suspend_cpu_usage": Words(_("While I use it, pause when other programs use more than"), "%"),
        "niu_suspend_cpu_usage": Words(
            _("While I am away, pause when other programs use more than"), "%", _("0 = never pause.")
        ),
    },
    _("Memory and disk"): {
        "ram_max_used_busy_pct": Words(_("Memory while I use it, at most"), "%"),
        "ram_max_used_idle_pct": Words(_("Memory while I am away, at most"), "%"),
        "leave_apps_in_memory": Words(
            _("Keep paused tasks in memory"),
            help=_("Otherwise they continue from their last checkpoint."),
        ),
        "disk_max_used_gb": Words(_("Disk space, at most"), _("GB"), _("0 = no limit.")),
        "disk_max_used_pct": Words(_("Part of the disk, at most"), "%"),
        "disk_min_free_gb": Words(_("Leave free on the disk, at least"), _("GB")),
    },
    _("Network and work buffer"): {
        "network_wifi_only": Words(_("Use Wi-Fi only"), help=_("For phones and tablets.")),
        "max_bytes_sec_down": Words(_("Download at most"), _("kB/s"), scale=1000),
        "max_bytes_sec_up": Words(_("Upload at most"), _("kB/s"), _("0 = no limit."), scale=1000),
        "net_start_hour": Words(_("Use the network from")),
        "net_end_hour": Words(_("Use the network until")),
        "work_buf_min_days": Words(_("Store work for at least"), _("days")),
        "work_buf_additional_days": Words(
            _("Store further work for up to"), _("days"), _("Storing more than needed makes tasks late.")
        ),
    },
    _("Rarely needed"): {
        "cpu_scheduling_period_minutes": Words(_("Switch between projects every"), _("min")),
        "disk_interval": Words(_("Checkpoint at most every"), _("s")),
        "vm_max_used_pct": Words(_("Page file, at most"), "%"),
        "daily_xfer_limit_mb": Words(_("Transfer in a period, at most"), _("MB"), _("0 = no limit.")),
        "daily_xfer_period_days": Words(_("Length of that period"), _("days")),
        "confirm_before_connecting": Words(_("Ask before connecting"), help=_("For dial-up connections only.")),
        "hangup_if_dialed": Words(_("Hang up when done"), help=_("For dial-up connections only.")),
        "dont_verify_images": Words(
            _("Do not verify image files"), help=_("For networks that modify images in transit.")
        ),
    },
}
OPEN: Final = ("When to run", "Processors")
"""The groups that are open on wide pages. A group with a value that differs from the default is always open."""

PRESET_WORDS: Final[dict[str, Words]] = {
    "office": Words(
        _("Quiet office"),
        help=_(
            "Runs beside your work on a quarter of the processors. While you are away it uses half of them, and the "
            "GPU."
        ),
    ),
    "night": Words(_("Only at night"), help=_("Runs from 22:00 to 7:00, on all processors.")),
    "usual": Words(
        _("Standard"), help=_("Runs tasks alongside your own work and pauses when your work needs the processors.")
    ),
    "everything": Words(_("All it can"), help=_("Uses all processors and GPUs, even while you use the computer.")),
}
