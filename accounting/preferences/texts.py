"""The computing preferences in words: what each does, its unit, and its group on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _


@dataclass(frozen=True, slots=True)
class Words:
    """A preference on the page: its label, the unit behind its number, and a sentence where the label is not enough.

    ``scale``: how many of the client's units make one of the page's.
    """

    label: str
    unit: str = ""
    help: str = ""
    scale: int = 1

    @property
    def shown(self) -> Words:
        """In the visitor's language."""
        label, unit, help_ = (gettext(text) if text else "" for text in (self.label, self.unit, self.help))
        return Words(label, unit, help_, self.scale)


GROUPS: Final[dict[str, dict[str, Words]]] = {
    _("When to run"): {
        "run_if_user_active": Words(_("Run tasks while I use the computer")),
        "run_gpu_if_user_active": Words(
            _("Use the GPU while I use the computer"), help=_("May make the screen respond slowly.")
        ),
        "idle_time_to_run": Words(_("I count as away after"), _("minutes without mouse or keyboard input")),
        "suspend_if_no_recent_input": Words(
            _("Stop when I have been away for"), _("minutes"), _("Lets the computer go to sleep. 0 = never stop.")
        ),
        "run_on_batteries": Words(_("Run tasks on battery power")),
        "suspend_cpu_usage": Words(
            _("While I use it, pause when other programs use more than"),
            _("% of the processors"),
            _("0 = never pause."),
        ),
        "niu_suspend_cpu_usage": Words(
            _("While I am away, pause when other programs use more than"),
            _("% of the processors"),
            _("0 = never pause."),
        ),
        "start_hour": Words(
            _("Run tasks from"), _("h"), _("In the computer’s local time; 22.5 is half past ten in the evening.")
        ),
        "end_hour": Words(_("until"), _("h"), _("The same hour in both means all day.")),
    },
    _("Processors"): {
        "max_ncpus_pct": Words(_("While I use it, at most"), _("% of the processors")),
        "niu_max_ncpus_pct": Words(_("While I am away, at most"), _("% of the processors")),
        "cpu_usage_limit": Words(
            _("While I use it, at most"),
            _("% of the time"),
            _("Below 100, tasks run in short bursts, which keeps the computer cooler and quieter."),
        ),
        "niu_cpu_usage_limit": Words(_("While I am away, at most"), _("% of the time")),
    },
    _("Memory and disk"): {
        "ram_max_used_busy_pct": Words(_("While I use it, at most"), _("% of the memory")),
        "ram_max_used_idle_pct": Words(_("While I am away, at most"), _("% of the memory")),
        "leave_apps_in_memory": Words(
            _("Keep paused tasks in memory"),
            help=_("They continue where they stopped. Otherwise, they continue from their last checkpoint."),
        ),
        "vm_max_used_pct": Words(_("At most"), _("% of the page file")),
        "disk_max_used_gb": Words(_("At most"), _("GB of the disk"), _("0 = no limit.")),
        "disk_max_used_pct": Words(_("At most"), _("% of the disk")),
        "disk_min_free_gb": Words(_("Leave free at least"), _("GB of the disk")),
        "disk_interval": Words(_("Checkpoint at most every"), _("seconds")),
    },
    _("Network"): {
        "network_wifi_only": Words(_("Use Wi-Fi only"), help=_("For phones and tablets.")),
        "max_bytes_sec_down": Words(_("Download at most"), _("kB per second"), _("0 = no limit."), scale=1000),
        "max_bytes_sec_up": Words(_("Upload at most"), _("kB per second"), _("0 = no limit."), scale=1000),
        "daily_xfer_limit_mb": Words(_("Transfer at most"), _("MB"), _("0 = no limit.")),
        "daily_xfer_period_days": Words(_("within"), _("days")),
        "net_start_hour": Words(_("Use the network from"), _("h")),
        "net_end_hour": Words(_("until"), _("h"), _("The same hour in both means all day.")),
        "confirm_before_connecting": Words(_("Ask before connecting"), help=_("For dial-up connections only.")),
        "hangup_if_dialed": Words(_("Hang up when done"), help=_("For dial-up connections only.")),
        "dont_verify_images": Words(
            _("Do not verify image files"), help=_("For networks that modify images in transit.")
        ),
    },
    _("Work buffer"): {
        "work_buf_min_days": Words(_("Store work for at least"), _("days")),
        "work_buf_additional_days": Words(
            _("and up to an additional"), _("days"), _("Storing more than needed makes tasks late.")
        ),
        "cpu_scheduling_period_minutes": Words(_("Switch between projects every"), _("minutes")),
    },
}

PRESET_WORDS: Final[dict[str, Words]] = {
    "gentle": Words(_("Gentle"), help=_("Runs tasks while you are away, on half of the processors.")),
    "usual": Words(
        _("Standard"), help=_("Runs tasks alongside your own work and pauses when your work needs the processors.")
    ),
    "everything": Words(_("Maximum"), help=_("Uses all processors and GPUs, even while you use the computer.")),
}
