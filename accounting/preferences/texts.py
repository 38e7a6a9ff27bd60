"""The computing preferences in words: what each does, its unit, and its group on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Words:
    """A preference on the page: its label, the unit behind its number, and a sentence where the label is not enough.

    ``scale``: how many of the client's units make one of the page's.
    """

    label: str
    unit: str = ""
    help: str = ""
    scale: int = 1


GROUPS: Final[dict[str, dict[str, Words]]] = {
    "When to compute": {
        "run_if_user_active": Words("Compute while I use the computer"),
        "run_gpu_if_user_active": Words("Use the GPU while I use the computer", help="May make the screen sluggish."),
        "idle_time_to_run": Words("I am away after", "minutes without mouse or keyboard"),
        "suspend_if_no_recent_input": Words(
            "Stop when I have been away for", "minutes", "Lets the computer go to sleep. 0: never stop."
        ),
        "run_on_batteries": Words("Compute on batteries"),
        "suspend_cpu_usage": Words(
            "While I use it, pause when other programs take more than", "% of the processors", "0: never pause."
        ),
        "niu_suspend_cpu_usage": Words(
            "While I am away, pause when other programs take more than", "% of the processors", "0: never pause."
        ),
        "start_hour": Words("Compute from", "h", "By the computer's clock; 22.5 is half past ten in the evening."),
        "end_hour": Words("until", "h", "The same hour in both: all day."),
    },
    "How much of the processors": {
        "max_ncpus_pct": Words("While I use it, at most", "% of the processors"),
        "niu_max_ncpus_pct": Words("While I am away, at most", "% of the processors"),
        "cpu_usage_limit": Words(
            "While I use it, at most", "% of the time", "Less than 100 computes in short bursts: cooler and quieter."
        ),
        "niu_cpu_usage_limit": Words("While I am away, at most", "% of the time"),
    },
    "Memory and disk": {
        "ram_max_used_busy_pct": Words("While I use it, at most", "% of the memory"),
        "ram_max_used_idle_pct": Words("While I am away, at most", "% of the memory"),
        "leave_apps_in_memory": Words(
            "Keep paused jobs in memory", help="They go on where they were; else from their last checkpoint."
        ),
        "vm_max_used_pct": Words("At most", "% of the page file"),
        "disk_max_used_gb": Words("At most", "GB of the disk", "0: no limit."),
        "disk_max_used_pct": Words("At most", "% of the disk"),
        "disk_min_free_gb": Words("Leave free at least", "GB of the disk"),
        "disk_interval": Words("Checkpoint at most every", "seconds"),
    },
    "Network": {
        "network_wifi_only": Words("Use Wi-Fi only", help="For phones and tablets."),
        "max_bytes_sec_down": Words("Receive at most", "kB a second", "0: no limit.", scale=1000),
        "max_bytes_sec_up": Words("Send at most", "kB a second", "0: no limit.", scale=1000),
        "daily_xfer_limit_mb": Words("Transfer at most", "MB", "0: no limit."),
        "daily_xfer_period_days": Words("in", "days"),
        "net_start_hour": Words("Use the network from", "h"),
        "net_end_hour": Words("until", "h", "The same hour in both: all day."),
        "confirm_before_connecting": Words("Ask before connecting", help="Matters for dial-up only."),
        "hangup_if_dialed": Words("Hang up when done", help="Matters for dial-up only."),
        "dont_verify_images": Words("Do not check image files", help="For networks that change images on their way."),
    },
    "Work in store": {
        "work_buf_min_days": Words("Have work for at least", "days"),
        "work_buf_additional_days": Words("and up to", "days more", "More than needed makes jobs late."),
        "cpu_scheduling_period_minutes": Words("Change between projects every", "minutes"),
    },
}

PRESET_WORDS: Final[dict[str, Words]] = {
    "gentle": Words("Gentle", help="Computes while you are away, with half of the processors."),
    "usual": Words("Usual", help="Computes beside your own work and steps back when that needs the processors."),
    "everything": Words("Everything", help="All processors and GPUs, also while you use the computer."),
}
