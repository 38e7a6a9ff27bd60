"""The account manager's panel of the dashboard: what clients ask, who is active, which projects are in trouble."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.db import connection
from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from accounting.engine.states import NoteKind
from accounting.ledger.sql import MONTHS_AHEAD
from accounting.models import Project, ProjectTrouble, StatisticsImport
from portal.dashboard import registry
from portal.dashboard.record import moment
from portal.dashboard.registry import Combine, Figure, Panel, Sample, Source, Table
from portal.dashboard.rules import above, below
from portal.models import HostLimitRequest
from portal.ops import heartbeats

KEY: Final = "account_manager"
RPC_PATH: Final = "/rpc.php"
_HOSTS: Final = "admin:portal_host_changelist"
_TROUBLES: Final = "admin:accounting_projecttrouble_changelist"

FIGURES: Final = (
    Figure(
        "am.rpcs",
        _("Account-manager RPCs"),
        per_secs=60,
        per=_("per minute"),
        about=_("As counted by the web processes."),
    ),
    Figure(
        "am.refused",
        _("Refused RPCs"),
        per_secs=60,
        per=_("per minute"),
        series="error",
        about=_("RPCs answered with a BOINC error, by error number."),
    ),
    Figure(
        "am.capped",
        _("Capped reports today"),
        link=f"admin:accounting_note_changelist?kind__exact={NoteKind.DROPPED}",
        link_text=_("Notes"),
        about=_("Reports not counted in full because they exceeded what the computer could have done (UTC day)."),
    ),
    Figure(
        "am.replaced_speeds",
        _("Speeds not believed today"),
        link=f"admin:accounting_note_changelist?kind__exact={NoteKind.SPEED_REPLACED}",
        link_text=_("Notes"),
        about=_("Computers whose benchmark or GPU is far from what is usual for the model, or not known (UTC day)."),
    ),
    Figure(
        "am.first_contacts", _("First contacts in 24 hours"), link=_HOSTS, about=_("New computers, by either protocol.")
    ),
    Figure(
        "am.keys",
        _("Client keys"),
        link="admin:portal_clientkey_changelist",
        about=_("Valid keys."),
    ),
    Figure(
        "am.limit_requests",
        _("Requests for more computers"),
        link="admin:portal_hostlimitrequest_changelist?decided_at__isempty=1",
        about=_("From volunteers who want to add more computers within a day than every account may."),
        trouble=above(0, _("Volunteers wait for an answer. Grant or decline their requests for more computers.")),
    ),
    Figure(
        "am.active",
        _("Active computers"),
        link=_HOSTS,
        combine=Combine.MAX,
        series="within",
        about=_("Computers that synced within the last day, week and month."),
    ),
    Figure(
        "am.troubles",
        _("Projects with problems"),
        link=_TROUBLES,
        series="trouble",
        about=_("Projects that send no work, fail or have ended, according to most volunteers’ computers."),
        trouble=above(0, _("Computers report about projects: {labels}.")),
    ),
    Figure(
        "am.projects_down",
        _("Projects marked as down"),
        link="admin:accounting_project_changelist?down_since__isnull=0",
    ),
    Figure(
        "am.imports_failing",
        _("Statistics not read"),
        link="admin:accounting_statisticsimport_changelist?trouble__isempty=0",
        about=_("Projects whose statistics could not be read for two days or longer."),
        trouble=above(0, _("The statistics of some projects cannot be read. See “Statistics imports”.")),
    ),
    Figure("am.mails_sent", _("E-mails sent"), per_secs=3600, per=_("per hour"), about=_("Handed to the mail server.")),
    Figure(
        "am.mails_failed",
        _("E-mails not accepted"),
        per_secs=3600,
        per=_("per hour"),
        about=_("The mail server could not be reached, or refused them permanently or temporarily."),
        trouble=above(0, _("The mail server did not accept e-mails. Look for “mail_failed” in the log.")),
    ),
    Figure(
        "am.mails_bounced",
        _("E-mails bounced"),
        per_secs=3600,
        per=_("per hour"),
        about=_(
            "Refused permanently when handed over. E-mails that bounce later go to DEFAULT_FROM_EMAIL and are "
            "not known to "
            "the site."
        ),
    ),
    Figure(
        "services.partitions",
        _("Partitions ahead"),
        combine=Combine.MIN,
        about=_("Future months for which the daily history has a partition."),
        trouble=below(1, _("The next month has no partition yet. Check the task “create_partitions”.")),
    ),
)
TABLES: Final = (
    Table(
        "am.troubles",
        _("Projects that send no work or fail"),
        (_("Project"), _("Problem"), _("For"), _("Since"), _("Volunteers affected")),
        _("No project has problems."),
    ),
)
_UNREAD_AFTER: Final = dt.timedelta(days=2)
_TROUBLE_NAMES: Final = {
    "no_work": gettext_noop("no work"),
    "failing": gettext_noop("its server fails"),
    "ended": gettext_noop("has ended"),
}
_ALL_TYPES: Final = gettext_noop("all types")
_WITHIN: Final = (gettext_noop("day"), gettext_noop("week"), gettext_noop("month"))
# One pass over all computers: of the whole table, so only a task does it.
_ACTIVE: Final = """
SELECT count(*) FILTER (WHERE last_contact_at > %(now)s - interval '1 day'),
       count(*) FILTER (WHERE last_contact_at > %(now)s - interval '7 days'),
       count(*) FILTER (WHERE last_contact_at > %(now)s - interval '30 days'),
       count(*) FILTER (WHERE created_at > %(now)s - interval '1 day')
  FROM portal_host WHERE retired_at IS NULL
"""
_CAPPED: Final = "SELECT count(*) FROM accounting_note WHERE day = %s AND kind = %s"
_KEYS: Final = "SELECT count(*) FROM portal_clientkey WHERE revoked_at IS NULL"


def take(now: dt.datetime) -> Iterator[Sample]:
    totals = heartbeats.rpc_totals()
    yield Sample("am.rpcs", sum(count for (path, _error), count in totals.items() if path == RPC_PATH))
    yield Sample("am.refused", 0)
    for (path, error_num), count in totals.items():
        if path == RPC_PATH and error_num != "0":
            yield Sample("am.refused", count, error_num)
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE, {"now": now})
        day, week, month, new = cursor.fetchone()
        cursor.execute(_CAPPED, [now.astimezone(dt.UTC).date(), NoteKind.DROPPED.value])
        capped = cursor.fetchone()[0]
        cursor.execute(_CAPPED, [now.astimezone(dt.UTC).date(), NoteKind.SPEED_REPLACED.value])
        yield Sample("am.replaced_speeds", cursor.fetchone()[0])
        cursor.execute(_KEYS)
        keys = cursor.fetchone()[0]
        cursor.execute(MONTHS_AHEAD, [now.astimezone(dt.UTC).date()])
        ahead = cursor.fetchone()[0]
    for within, count in zip(_WITHIN, (day, week, month), strict=True):
        yield Sample("am.active", count, within)
    yield Sample("am.first_contacts", new)
    yield Sample("am.capped", capped)
    yield Sample("am.keys", keys)
    yield Sample("am.limit_requests", HostLimitRequest.objects.filter(decided_at=None).count())
    yield Sample("services.partitions", ahead)
    found = dict(ProjectTrouble.objects.order_by().values_list("kind").annotate(Count("project", distinct=True)))
    for kind, name in _TROUBLE_NAMES.items():
        yield Sample("am.troubles", found.get(kind, 0), name)
    yield Sample("am.projects_down", Project.objects.filter(down_since__isnull=False).count())
    late = StatisticsImport.objects.filter(is_on=True, trouble_since__lt=now - _UNREAD_AFTER)
    yield Sample("am.imports_failing", late.count())
    mails = heartbeats.mail_totals()
    yield Sample("am.mails_sent", mails["sent"])
    yield Sample("am.mails_failed", mails["failed"])
    yield Sample("am.mails_bounced", mails["bounced"])


def take_tables(now: dt.datetime) -> dict[str, list[list[object]]]:
    troubles = ProjectTrouble.objects.select_related("project").order_by("since")[:50]
    return {
        "am.troubles": [
            [
                [trouble.project.name, reverse("admin:accounting_project_change", args=[trouble.project_id])],
                _TROUBLE_NAMES.get(trouble.kind, trouble.kind),
                trouble.processor_type or _ALL_TYPES,
                moment(trouble.since),
                {"number": str(trouble.volunteers), "all": str(trouble.of_volunteers)},
            ]
            for trouble in troubles
        ]
    }


def register() -> None:
    """Called once, when the app is ready, if the site has an account manager."""
    registry.add_panel(Panel(KEY, _("Account manager"), 4))
    registry.add_source(Source(KEY, FIGURES, take, TABLES, take_tables))
    registry.words.extend((*_TROUBLE_NAMES.values(), _ALL_TYPES, *_WITHIN))
