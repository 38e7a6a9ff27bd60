"""The periodic tasks, and how often each of them is due. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final
from zlib import crc32

from celery.schedules import crontab

# Name of the entry: task, seconds
_SITE: Final = {
    "erase": ("accounting.tasks.erase", 24 * 3600),
    "tidy-up": ("portal.tasks.tidy_up", 24 * 3600),
    "look-after-requested": ("portal.tasks.look_after_requested", 60),
    "send-waiting-mails": ("portal.tasks.send_waiting_mails", 60),
    "look-after-copies": ("accounting.tasks.look_after_copies", 120),
    "take-figures": ("portal.tasks.take_figures", 600),
    "thin-figures": ("portal.tasks.thin_figures", 24 * 3600),
}
_ACCOUNT_MANAGER: Final = {
    "create-partitions": ("accounting.tasks.create_partitions", 6 * 3600),
    "learn-models": ("accounting.tasks.learn_models", 6 * 3600),
    "roll-up": ("accounting.tasks.roll_up", 600),
    "reconcile": ("accounting.tasks.reconcile", 600),
    "send-mails": ("accounting.tasks.send_mails", 3600),
    "send-concerns": ("accounting.tasks.send_concerns", 6 * 3600),
    "ask-projects": ("accounting.tasks.ask_projects", 600),
    "look-after-accounts": ("accounting.tasks.look_after_accounts", 60),
    "learn-addresses": ("accounting.tasks.learn_addresses", 3600),
    "import-statistics": ("accounting.tasks.import_statistics", 300),
    "follow-tasks": ("accounting.tasks.follow_tasks", 300),
}
_EMULATOR: Final = {
    "look-after-runs": ("emulator.tasks.look_after_runs", 120),
}
_PROJECT: Final = {
    "feed": ("credit.tasks.feed", 600),
    "settle-parts": ("credit.tasks.settle_parts", 600),
    "count-pairs": ("credit.tasks.count_pairs", 3600),
    "thin-snapshots": ("credit.tasks.thin_snapshots", 24 * 3600),
    "measure-changes": ("credit.tasks.measure_changes", 24 * 3600),
    "archive": ("scheduler.tasks.archive", 3600),
    "delete-leftovers": ("scheduler.tasks.delete_leftovers", 3600),
    "size-census": ("scheduler.tasks.take_size_census", 3600),
    "trickles": ("scheduler.tasks.handle_trickles", 30),
}
_HOUR_SECS: Final = 3600
EVERY: Final = "every_secs"
"""The header of beat's messages with the interval of their task."""


def timetable(
    rooms: Collection[str], *, validator_secs: int, transitioner_secs: int, export_secs: int, has_demo: bool
) -> dict[str, dict[str, Any]]:
    """Celery's CELERY_BEAT_SCHEDULE; ``rooms``: as in the setting ROOMS."""
    entries: dict[str, tuple[str, int]] = dict(_SITE)
    if "account_manager" in rooms:
        entries |= _ACCOUNT_MANAGER
    if "emulator" in rooms:
        entries |= _EMULATOR
    if "project" in rooms:
        entries |= _PROJECT
        entries |= {
            "start-validators": ("credit.tasks.start_validators", validator_secs),
            "export-statistics": ("credit.tasks.export_statistics", export_secs),
            "transition": ("scheduler.tasks.transition", transitioner_secs),
            "finish": ("scheduler.tasks.finish", 3 * transitioner_secs),
            "delete-files": ("scheduler.tasks.delete_files", 3 * transitioner_secs),
        }
        if has_demo:
            entries["top-up"] = ("scheduler.tasks.top_up", 60)
    return as_celery(entries)


def as_celery(entries: Mapping[str, tuple[str, int]]) -> dict[str, dict[str, Any]]:
    """Entries of beat's timetable; ``entries``: the task and its interval in seconds, by name."""
    return {
        name: {"task": task, "schedule": _schedule(name, secs), "options": {"headers": {EVERY: secs}}}
        for name, (task, secs) in entries.items()
    }


def rest_secs(every_secs: float) -> float:
    """How long after a successful run the next one may begin: the task's interval less half of the time between
    messages.
    """
    return every_secs - min(every_secs, _HOUR_SECS) / 2


def _schedule(name: str, secs: int) -> crontab | int:
    """By times of day, which stay the same when another beat takes over. Tasks due less often than once an hour are
    sent once an hour: if the broker loses a message, the task is done an hour later.
    """
    if secs < 60 or secs % 60:
        return secs
    if secs < _HOUR_SECS:
        return crontab(minute=f"*/{secs // 60}")
    return crontab(minute=str(crc32(name.encode()) % 60))
