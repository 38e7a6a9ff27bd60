"""Titles of the periodic tasks for pages. Those of extras are with the extras (`portal.extras`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

from portal.extras import apps_in_use

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_TITLES: Final[dict[str, StrOrPromise]] = {
    "accounting.tasks.ask_projects": _("Ask projects about themselves"),
    "accounting.tasks.create_partitions": _("Prepare the coming months of the history"),
    "accounting.tasks.erase": _("Erase accounts that are due for deletion"),
    "accounting.tasks.follow_tasks": _("Follow tasks at other projects"),
    "accounting.tasks.import_statistics": _("Import projects’ statistics"),
    "accounting.tasks.learn_addresses": _("Learn other addresses of projects"),
    "accounting.tasks.learn_models": _("Learn the speed of processor models"),
    "accounting.tasks.look_after_accounts": _("Check accounts at projects"),
    "accounting.tasks.look_after_copies": _("Record failed copies of data"),
    "accounting.tasks.reconcile": _("Compare granted with estimated credit"),
    "accounting.tasks.roll_up": _("Add up the days of projects"),
    "accounting.tasks.send_concerns": _("Mail about missing work and failing tasks"),
    "accounting.tasks.send_mails": _("Mail about silent computers, and weekly summaries"),
    "credit.tasks.count_pairs": _("Count who confirms whom"),
    "credit.tasks.export_statistics": _("Publish the statistics export"),
    "credit.tasks.feed": _("Look for new jobs"),
    "credit.tasks.measure_changes": _("Measure the effects of settings changes"),
    "credit.tasks.settle_parts": _("Settle credit of parts of jobs"),
    "credit.tasks.start_validators": _("Start validators"),
    "credit.tasks.thin_snapshots": _("Thin out old snapshots of credit"),
    "emulator.tasks.look_after_runs": _("Requeue lost runs of the emulator"),
    "portal.tasks.look_after_requested": _("Requeue lost requests"),
    "portal.tasks.send_waiting_mails": _("Send waiting mails"),
    "portal.tasks.take_figures": _("Take the figures of this page"),
    "portal.tasks.thin_figures": _("Thin out old figures"),
    "portal.tasks.tidy_up": _("Remove what has expired"),
    "scheduler.tasks.archive": _("Archive finished jobs"),
    "scheduler.tasks.delete_files": _("Delete files of finished jobs"),
    "scheduler.tasks.delete_leftovers": _("Delete leftovers of uploads"),
    "scheduler.tasks.finish": _("Assimilate finished jobs"),
    "scheduler.tasks.handle_trickles": _("Handle trickle messages"),
    "scheduler.tasks.take_size_census": _("Sort computers into size classes"),
    "scheduler.tasks.top_up": _("Top up the demo’s jobs"),
    "scheduler.tasks.transition": _("Advance the state of jobs"),
}


def task_title(task: str) -> str:
    """The title of a task by its dotted name; the name itself if it has none."""
    if task in _TITLES:
        return str(_TITLES[task])
    of_extras = (periodic for app in apps_in_use() for periodic in app.periodic_tasks().values())
    return next((str(periodic.title) for periodic in of_extras if periodic.task == task), task)
