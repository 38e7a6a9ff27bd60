"""Background tasks of the site itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from celery import shared_task
from kombu.exceptions import OperationalError

from portal.dashboard import record, thinning
from portal.databases import clock
from portal.extras import site_apps
from portal.maintenance import runs
from portal.ops import housekeeping
from portal.people import key_mails, key_upkeep, security_events
from portal.periodic.scheduler import entries_added
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
SETTLING_SECS: Final = 20
"""After the first beat of a new site has started, until the other processes have told that they live."""


@shared_task
def tidy_up() -> None:
    """Once a day: remove what has expired."""
    housekeeping.remove_expired()
    key_upkeep.end_outdated_keys(clock.now())
    security_events.delete_old(clock.now())
    for site_app in site_apps():
        site_app.tidy_up(clock.now())


@shared_task
def carry_out_requested() -> None:
    """Do a piece of work that a volunteer asked for; in a queue of its own, so that no other task waits for it."""
    queue.carry_out_next()


@shared_task(time_limit=runs.TIME_LIMIT_SECS)
def carry_out_maintenance(run_id: int) -> None:
    """Do what an operator started on the page "Maintenance"; in the same queue, as it may take hours."""
    runs.carry_out(run_id)


@shared_task
def look_after_requested() -> None:
    """Queue again what lost workers had, and tell workers of what waits."""
    queue.look_after(clock.now())
    runs.tell_again(clock.now())


@shared_task
def send_waiting_mails() -> None:
    """Every minute, and when there is one: mails about what BOINC clients did."""
    key_mails.send_waiting(clock.now())


@shared_task
def take_figures() -> None:
    """Every ten minutes: the figures of the dashboard and of the public status."""
    record.take_all(clock.now())


@entries_added.connect
def _take_first_figures(names: list[str], **_: object) -> None:
    """The dashboard of a new site is not empty for ten minutes."""
    if "take-figures" in names:
        with suppress(OperationalError):
            take_figures.apply_async(countdown=SETTLING_SECS)


@shared_task
def thin_figures() -> None:
    """Once a day: old figures become fewer."""
    thinning.thin(clock.now())
