"""The site's own background tasks."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.dashboard import record, thinning
from portal.databases.clocks import database_now
from portal.extras import site_apps
from portal.maintenance import runs
from portal.ops import housekeeping
from portal.people import key_mails, key_upkeep, security_events
from portal.public_pages.about import note_about
from portal.requested_work import queue

__all__ = [
    "carry_out_maintenance",
    "carry_out_requested",
    "look_after_requested",
    "send_waiting_mails",
    "take_figures",
    "thin_figures",
    "tidy_up",
]


@shared_task
def tidy_up() -> None:
    """Remove what has expired. Runs once a day."""
    housekeeping.remove_expired()
    key_upkeep.end_outdated_keys(timezone.now())
    security_events.delete_old(timezone.now())
    for site_app in site_apps():
        site_app.tidy_up(timezone.now())


@shared_task
def carry_out_requested() -> None:
    """Do work that a volunteer asked for; in a queue of its own, so that no other task waits for it."""
    queue.carry_out_next()


@shared_task(time_limit=runs.TIME_LIMIT_SECS)
def carry_out_maintenance(run_id: int) -> None:
    """Run a job that an operator started on the page "Maintenance"; in the same queue, as it may take hours."""
    runs.carry_out(run_id)


@shared_task
def look_after_requested() -> None:
    """Requeue lost workers' pieces, and tell workers about waiting work."""
    queue.requeue_lost(database_now())
    runs.resend_lost(timezone.now())


@shared_task
def send_waiting_mails() -> None:
    """Send mails about what BOINC clients did. Runs every minute, and when there is one."""
    key_mails.send_waiting(timezone.now())


@shared_task
def take_figures() -> None:
    """Take the figures of the dashboard and of the public status. Runs every ten minutes."""
    note_about()
    record.take_all(timezone.now())


@shared_task
def thin_figures() -> None:
    """Thin out old figures. Runs once a day."""
    thinning.thin(timezone.now())
