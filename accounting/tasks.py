"""Background tasks of the account manager; each may run twice."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress

from celery import shared_task
from django.utils import timezone

from accounting.account_data import copies, erasure
from accounting.choosing import standings
from accounting.exchange import exports, made_files
from accounting.ledger import models_seen, partitions, rollup
from accounting.mails import send
from accounting.models import DataCopy, Project
from accounting.own_accounts import checks
from accounting.project_setup import asking
from accounting.project_setup.reported_addresses import learn_reported
from accounting.reconciliation.refresh import refresh_due
from accounting.rpc.recognise import forget_old as forget_old_clients
from accounting.running_tasks import asking as task_asking
from accounting.running_tasks import follow
from accounting.statistics import run as statistics
from portal.celery import is_full
from portal.ops.mails import MailServerDown


@shared_task
def create_partitions() -> None:
    """Create the partitions of the next three months."""
    today = timezone.now().date()
    partitions.create_months(today, today + dt.timedelta(days=92))


@shared_task
def roll_up() -> None:
    rollup.roll_up(timezone.now())
    standings.refresh(timezone.now())


@shared_task
def learn_models() -> None:
    """Every six hours: learn how fast processors of each model usually are."""
    models_seen.learn(timezone.now())


@shared_task
def erase() -> None:
    """Once a day: erase accounts whose grace period is over, old copies, and old reports of clients."""
    now = timezone.now()
    erasure.erase_due(now)
    made_files.remove_old(now)
    forget_old_clients(now)


@shared_task
def look_after_copies() -> None:
    """Note which copies of data and which history files the queue gave up."""
    made_files.note_given_up(copies.KIND, [DataCopy.Content.ALL], timezone.now())
    made_files.note_given_up(exports.KIND, exports.CONTENTS, timezone.now())


@shared_task
def learn_addresses() -> None:
    """Once an hour: learn other addresses of projects that computers report."""
    learn_reported(timezone.now())


@shared_task
def send_mails() -> None:
    """Once an hour: mails about computers that fell silent, last week's summary, statuses, first steps.

    Stops where the mail server does not answer; the next run sends the rest.
    """
    now = timezone.now()
    with suppress(MailServerDown):
        send.send_silences(now)
        send.send_summaries(now)
        send.send_statuses(now)
        send.send_first_steps(now)


@shared_task
def send_concerns() -> None:
    """Several times a day: mails about computers without work or with failing jobs. It looks at every computer of
    subscribers.
    """
    with suppress(MailServerDown):
        send.send_concerns(timezone.now())


@shared_task
def ask_projects() -> None:
    """Start a task for each project that was not asked about itself for a day."""
    for project_id in asking.take_due(timezone.now()):
        ask_project.delay(project_id)


@shared_task
def ask_project(project_id: int) -> None:
    """Ask one project, which may take until the time limits, without holding up any other."""
    project = Project.objects.filter(pk=project_id).first()
    if project is not None:
        asking.ask_again(project, timezone.now())


@shared_task
def ask_for_account(account_id: int) -> None:
    """Ask a project about a volunteer's own account, as requested."""
    checks.carry_out(account_id, timezone.now())


@shared_task
def check_account(account_id: int) -> None:
    """Check whether the key of a volunteer's account at a project still works."""
    checks.check(account_id, timezone.now())


@shared_task
def look_after_accounts() -> None:
    """Every minute: handle requests for accounts that no worker took, and some accounts not checked for a week."""
    for account_id in checks.look_after(timezone.now()):
        check_account.delay(account_id)


@shared_task
def import_statistics() -> None:
    """Every five minutes: start a task for each project whose statistics are due."""
    now = timezone.now()
    statistics.follow_projects(now)
    due = [] if is_full("requested") else statistics.due(now)
    for project_id in due:
        import_statistics_of.delay(project_id)


# A task that cannot be interrupted is killed five minutes later.
@shared_task(soft_time_limit=statistics.READ_SECS, time_limit=statistics.READ_SECS + 300)
def import_statistics_of(project_id: int, *, at_once: bool = False) -> None:
    """Import a project's grants. Ends at once if it was just read, or if the maximum number of imports are running."""
    statistics.import_project(project_id, at_once=at_once)


@shared_task
def reconcile() -> None:
    """Every ten minutes: compare newly read grants with the estimates."""
    refresh_due(timezone.now())


@shared_task
def follow_tasks() -> None:
    """Every five minutes: take over the tasks that clients listed; then start a task for each project elsewhere to
    ask.
    """
    now = timezone.now()
    follow.follow(now)
    for project_id in task_asking.due_projects(now):
        ask_about_tasks.delay(project_id)


@shared_task
def ask_about_tasks(project_id: int) -> None:
    """Ask one project about the tasks that are due."""
    task_asking.ask(project_id, timezone.now())
