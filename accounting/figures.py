"""The account manager's figures: clients' requests, active computers and volunteers, projects in trouble."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from accounting.engine.states import NoteKind
from accounting.ledger.sql import MONTHS_AHEAD
from accounting.models import ProjectTrouble
from portal.dashboard.record import moment
from portal.dashboard.registry import Combine, Figure, FigureQuery, Part, Rows, Sample, Table, per_hour, per_minute
from portal.dashboard.rules import above, below
from portal.ops import heartbeats

RPC_PATH: Final = "/rpc.php"
_HOSTS: Final = "admin:portal_host_changelist"
_TROUBLES: Final = "admin:accounting_projecttrouble_changelist"

FIGURES: Final = (
    per_minute("am.rpcs", _("Account-manager RPCs"), about=_("As counted by the web processes.")),
    per_minute(
        "am.refused",
        _("Refused RPCs"),
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
    Figure("am.keys", _("Client keys"), link="admin:portal_clientkey_changelist", about=_("Valid keys.")),
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
    per_hour("am.mails_sent", _("E-mails sent"), about=_("Handed to the mail server.")),
    per_hour(
        "am.mails_failed",
        _("E-mails not accepted"),
        about=_("The mail server could not be reached, or refused them permanently or temporarily."),
        trouble=above(0, _("The mail server did not accept e-mails. Look for “mail_failed” in the log.")),
    ),
    per_hour(
        "am.mails_bounced",
        _("E-mails bounced"),
        about=_(
            "Refused permanently when handed over. E-mails that bounce later go to DEFAULT_FROM_EMAIL and are not "
            "known to the site."
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
_TROUBLE_NAMES: Final = {
    "no_work": gettext_noop("no work"),
    "failing": gettext_noop("its server fails"),
    "ended": gettext_noop("has ended"),
}
_ALL_TYPES: Final = gettext_noop("all types")
_WITHIN: Final = (gettext_noop("day"), gettext_noop("week"), gettext_noop("month"))
# One pass over all computers: it reads the whole table, so only a task runs it.
_ACTIVE: Final = """
SELECT w.key, w."am.active", w."am.first_contacts"
  FROM (SELECT count(*) FILTER (WHERE last_contact_at > %(now)s - interval '1 day') AS day,
               count(*) FILTER (WHERE last_contact_at > %(now)s - interval '7 days') AS week,
               count(*) FILTER (WHERE last_contact_at > %(now)s - interval '30 days') AS month,
               count(*) FILTER (WHERE created_at > %(now)s - interval '1 day') AS new
          FROM portal_host WHERE retired_at IS NULL) h,
       LATERAL (VALUES ('day', day, NULL), ('week', week, NULL), ('month', month, NULL), ('', NULL, new))
           AS w(key, "am.active", "am.first_contacts")
"""
_NOTES: Final = f"""
SELECT count(*) FILTER (WHERE kind = '{NoteKind.DROPPED}') AS "am.capped",
       count(*) FILTER (WHERE kind = '{NoteKind.SPEED_REPLACED}') AS "am.replaced_speeds"
  FROM accounting_note WHERE day = (%(now)s AT TIME ZONE 'UTC')::date
   AND kind IN ('{NoteKind.DROPPED}', '{NoteKind.SPEED_REPLACED}')
"""
_COUNTS: Final = f"""
SELECT (SELECT count(*) FROM portal_clientkey WHERE revoked_at IS NULL) AS "am.keys",
       (SELECT count(*) FROM portal_hostlimitrequest WHERE decided_at IS NULL) AS "am.limit_requests",
       (SELECT count(*) FROM accounting_project WHERE down_since IS NOT NULL) AS "am.projects_down",
       (SELECT count(*) FROM accounting_statisticsimport
         WHERE is_on AND trouble_since < %(now)s - interval '2 days') AS "am.imports_failing",
       ({MONTHS_AHEAD}) AS "services.partitions"
"""
_TROUBLE: Final = """
SELECT kind AS key, count(DISTINCT project_id) AS "am.troubles" FROM accounting_projecttrouble GROUP BY kind
"""


def _counted(now: dt.datetime) -> Iterator[Sample]:
    """Return what processes have counted."""
    totals = heartbeats.rpc_totals()
    yield Sample("am.rpcs", sum(count for (path, _error), count in totals.items() if path == RPC_PATH))
    yield Sample("am.refused", 0)
    for (path, error_num), count in totals.items():
        if path == RPC_PATH and error_num != "0":
            yield Sample("am.refused", count, error_num)
    for outcome, count in heartbeats.mail_totals().items():
        yield Sample(f"am.mails_{outcome}", count)


def read_troubles(now: dt.datetime) -> Rows:
    """Read the projects that send no work or fail, oldest trouble first."""
    return [
        [
            [trouble.project.name, reverse("admin:accounting_project_change", args=[trouble.project_id])],
            _TROUBLE_NAMES.get(trouble.kind, trouble.kind),
            trouble.processor_type or _ALL_TYPES,
            moment(trouble.since),
            {"number": str(trouble.volunteers), "all": str(trouble.of_volunteers)},
        ]
        for trouble in ProjectTrouble.objects.select_related("project").order_by("since")[:50]
    ]


READINGS: Final = (
    FigureQuery(_ACTIVE),
    FigureQuery(_NOTES),
    FigureQuery(_COUNTS),
    FigureQuery(_TROUBLE, lambda: _TROUBLE_NAMES),
    _counted,
)
_TROUBLES_TABLE: Final = Table(
    "am.troubles",
    read_troubles,
    _("Projects that send no work or fail"),
    (_("Project"), _("Problem"), _("For"), _("Since"), _("Volunteers affected")),
    _("No project has problems."),
)


_WORDS: Final = (*_TROUBLE_NAMES.values(), _ALL_TYPES, *_WITHIN)
PART: Final = Part("account_manager", FIGURES, READINGS, [_TROUBLES_TABLE], _WORDS)
