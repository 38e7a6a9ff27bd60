"""Send the mails that volunteers asked for. A run may be repeated; nobody is told twice.

Concerns older than a week are not sent, so that nobody gets old news after the tasks have been stopped for long.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import F, OuterRef, Q, Subquery
from django.utils.translation import gettext, ngettext

from accounting.computers.attention import Attention, Concern, read_attention
from accounting.engine.amounts import NO_WORK, Totals
from accounting.history.periods import Period, Step
from accounting.history.reads import By, read_cells
from accounting.models import Project
from portal.languages.recipients import written_for
from portal.models import DEFAULT_SILENT_DAYS, MAX_SILENT_DAYS, Host, MailChoice, SentMail, User
from portal.ops.mail_choices import Mail
from portal.ops.mails import recipients, send_once
from portal.people.access import own_hosts
from portal.templatetags.display import count, credit_text, duration_text, moment_text

_TOLD_FOR: Final = dt.timedelta(days=7)
# The summary of a week is sent from Monday to Wednesday.
_LAST_WEEKDAY: Final = 2
_SHOWN: Final = 20
_SILENT_IN_STATUS: Final = dt.timedelta(days=7)
_FIRST_STEPS_AFTER: Final = dt.timedelta(days=2)


def send_silences(now: dt.datetime) -> int:
    """Send the mails about computers that fell silent, once for each silence; return how many mails."""
    oldest = now - dt.timedelta(days=MAX_SILENT_DAYS) - _TOLD_FOR
    hosts = Host.objects.filter(
        last_contact_at__range=(oldest, now - dt.timedelta(days=1)),
        retired_at=None,
        merged_into=None,
        owner__in=recipients(),
    ).exclude(owner__mail_choice__silence=False)
    silent: dict[int, list[Host]] = {}
    for host in hosts.select_related("owner__mail_choice").order_by("owner_id", "pk"):
        if _is_newly_silent(host, now):
            silent.setdefault(host.owner_id, []).append(host)
    sent = set(
        SentMail.objects.filter(kind=Mail.SILENCE, sent_at__gte=oldest, user__in=list(silent)).values_list(
            "key", flat=True
        )
    )
    mails = 0
    for those in silent.values():
        with written_for(those[0].owner):
            lines = {_silence(host): _silence_line(host, now) for host in those if _silence(host) not in sent}
        if lines:
            mails += _send(those[0].owner, Mail.SILENCE, "silence", dict(list(lines.items())[:_SHOWN]))
    return mails


def _is_newly_silent(host: Host, now: dt.datetime) -> bool:
    choice = getattr(host.owner, "mail_choice", None)
    days = choice.silent_days if choice is not None else DEFAULT_SILENT_DAYS
    silence = now - host.last_contact_at - dt.timedelta(days=days)
    return dt.timedelta(0) <= silence < _TOLD_FOR


def _silence(host: Host) -> str:
    return f"{host.pk} {host.last_contact_at.isoformat()}"


def _silence_line(host: Host, now: dt.datetime) -> str:
    days = (now - host.last_contact_at).days
    text = ngettext(
        "%(computer)s: last sync %(when)s, %(days)s day ago",
        "%(computer)s: last sync %(when)s, %(days)s days ago",
        days,
    )
    return text % {"computer": host.name, "when": moment_text(host.last_contact_at), "days": days}


def send_concerns(now: dt.datetime) -> int:
    """Send the mails about computers without work or with failing jobs; return how many mails.

    The same concern about a computer is mailed once a calendar week.
    """
    choices = MailChoice.objects.filter(Q(no_work=True) | Q(failing_jobs=True), user__in=recipients())
    mails = 0
    for choice in choices.select_related("user").iterator():
        hosts = list(own_hosts(choice.user).filter(retired_at=None))
        with written_for(choice.user):
            concerns = read_attention(choice.user, hosts, now, dt.timedelta(days=choice.silent_days))
        if choice.no_work:
            mails += _send(choice.user, Mail.NO_WORK, "no_work", _already_sent(concerns, Concern.NO_WORK, now))
        if choice.failing_jobs:
            mails += _send(
                choice.user, Mail.FAILING_JOBS, "failing_jobs", _already_sent(concerns, Concern.FAILING_JOBS, now)
            )
    return mails


def _already_sent(concerns: Iterable[Attention], concern: Concern, now: dt.datetime) -> dict[str, str]:
    """Return the lines of a concern that were sent, by computer and week."""
    lines: dict[str, list[str]] = {}
    for attention in concerns:
        if attention.concern is concern:
            lines.setdefault(f"{attention.host_id} {_week(now.date())}", []).append(
                f"{attention.host_name} {attention.text}"
            )
    return {key: "\n  ".join(texts) for key, texts in list(lines.items())[:_SHOWN]}


def _week(day: dt.date) -> str:
    return f"{day:%G-W%V}"


@dataclass(frozen=True, slots=True)
class Summary:
    """The work of a volunteer's computers over some days, in words: in all, by project, by computer, and before these
    days.
    """

    first: dt.date
    last: dt.date
    all: str
    before: str
    projects: list[str]
    hosts: list[str]


def send_summaries(now: dt.datetime) -> int:
    """Send last week's summary to subscribers whose computers worked; return how many mails."""
    today = now.astimezone(dt.UTC).date()
    if today.weekday() > _LAST_WEEKDAY:
        return 0
    first = today - dt.timedelta(days=today.weekday() + 7)
    mails = 0
    recipients_before = SentMail.objects.filter(kind=Mail.WEEKLY_SUMMARY, key=_week(first)).values("user_id")
    for choice in MailChoice.objects.filter(weekly_summary=True, user__in=recipients()).exclude(
        user__in=recipients_before
    ):
        user = User.objects.get(pk=choice.user_id)
        with written_for(user):
            summary = summarise(user, first)
        if summary is not None:
            mails += _send(user, Mail.WEEKLY_SUMMARY, "week", {_week(first): summary})
    return mails


def summarise(user: User, first: dt.date, ndays: int = 7) -> Summary | None:
    """Summarise ``ndays`` days from this one on; None if nothing was done. Five statements."""
    week = Period(first, first + dt.timedelta(days=ndays - 1), "", Step.WEEK)
    before = Period(first - dt.timedelta(days=ndays), first - dt.timedelta(days=1), "", Step.WEEK)
    by_project = {cell.key: cell.amounts for cell in read_cells(user, week, By.PROJECT)}
    total = _sum(by_project.values())
    if not any(total):
        return None
    by_host = {cell.key: cell.amounts for cell in read_cells(user, week, By.COMPUTER)}
    projects = dict(Project.objects.filter(pk__in=by_project).values_list("pk", "name"))
    hosts = {host.pk: host.name for host in Host.objects.filter(owner=user, pk__in=by_host)}
    return Summary(
        first=week.first,
        last=week.last,
        all=_words(total),
        before=_words(_sum(cell.amounts for cell in read_cells(user, before, By.PROJECT))),
        projects=_ranked(by_project, projects),
        hosts=_ranked(by_host, hosts),
    )


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The state of a volunteer's computers, in words; ``did``: None if nothing was reported in these days."""

    ndays: int
    did: str | None
    silent: list[str]


def send_statuses(now: dt.datetime) -> int:
    """Send the state of their computers to volunteers whose chosen interval is over; return how many mails.

    Volunteers without a computer get none: there is another mail for their first week.
    """
    last = SentMail.objects.filter(user=OuterRef("user"), kind=Mail.STATUS).order_by("-sent_at").values("sent_at")
    # An hour less, so that mails do not drift to later hours.
    is_due = Q(told_at__lte=now + dt.timedelta(hours=1) - F("status_days") * dt.timedelta(days=1))
    choices = MailChoice.objects.filter(status_days__gt=0, user__in=recipients()).annotate(told_at=Subquery(last[:1]))
    mails = 0
    for choice in choices.filter(Q(told_at=None) | is_due).select_related("user").iterator():
        hosts = list(own_hosts(choice.user).filter(retired_at=None).order_by("last_contact_at"))
        if not hosts:
            continue
        with written_for(choice.user):
            status = _status(choice.user, hosts, choice.status_days, now)
        mails += _send(choice.user, Mail.STATUS, "status", {now.date().isoformat(): status})
    return mails


def _status(user: User, hosts: Iterable[Host], ndays: int, now: dt.datetime) -> StatusReport:
    summary = summarise(user, now.astimezone(dt.UTC).date() - dt.timedelta(days=ndays), ndays)
    silent = [_silence_line(host, now) for host in hosts if now - host.last_contact_at > _SILENT_IN_STATUS]
    return StatusReport(ndays, summary.all if summary is not None else None, silent[:_SHOWN])


def send_first_steps(now: dt.datetime) -> int:
    """Write once to volunteers without any report two days after they joined; return how many mails."""
    new = recipients().filter(created_at__range=(now - _TOLD_FOR, now - _FIRST_STEPS_AFTER), hosts=None)
    already_sent = SentMail.objects.filter(kind=Mail.NO_COMPUTER).values("user_id")
    return sum(
        _send(user, Mail.NO_COMPUTER, "no_computer", {"first week": None})
        for user in new.exclude(mail_choice__no_computer=False).exclude(pk__in=already_sent).iterator()
    )


def _sum(amounts: Iterable[Totals]) -> Totals:
    total = NO_WORK
    for part in amounts:
        total = total.plus(part)
    return total


def _ranked(amounts: dict[int, Totals], names: dict[int, str]) -> list[str]:
    ranked = sorted(amounts.items(), key=lambda item: (-item[1].credit, item[0]))
    return [f"{names.get(key) or gettext('Deleted')}: {_words(amounts)}" for key, amounts in ranked[:_SHOWN]]


def _words(amounts: Totals) -> str:
    """Return credit, run time and tasks: "1 284 credits, 41.2 h of run time, 23 tasks finished, 1 failed"."""
    text = ngettext(
        "%(credit)s credits, %(time)s of run time, %(number)s task finished",
        "%(credit)s credits, %(time)s of run time, %(number)s tasks finished",
        amounts.njobs_success,
    ) % {
        "credit": credit_text(amounts.credit),
        "time": duration_text(amounts.run_time),
        "number": count(amounts.njobs_success),
    }
    failed = gettext("%(number)s failed") % {"number": count(amounts.njobs_error)} if amounts.njobs_error else ""
    return ", ".join(filter(None, (text, failed)))


def _send(user: User, kind: Mail, template: str, items: Mapping[str, object]) -> bool:
    return send_once(user, kind, f"accounting/mails/{template}", dict(items))
