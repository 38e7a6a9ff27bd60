"""Projects' exports of statistics: granted credit, and the progress of each project's import.

Credit is whole numbers of 1e-6 (micro-credits), as in the ledger; times are the project's own. The rules are in
accounting/engine/granted.py, and explained in docs/explanation/statistics-import.md.
"""

from __future__ import annotations

from django.core.validators import URLValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.languages.sentences import MessageField
from portal.models import Host, User


class StatisticsImport(models.Model):
    """A project's import: where its export is, which one was read last, and any obstacle."""

    project = models.OneToOneField(
        "accounting.Project",
        models.CASCADE,
        primary_key=True,
        related_name="statistics_import",
        verbose_name=_("project"),
    )
    is_on = models.BooleanField(_("read daily"), default=True)
    url = models.CharField(
        _("folder of the export"),
        max_length=255,
        blank=True,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text=_("If empty: stats/ below the address where the project answers web RPCs."),
    )
    account_email = models.EmailField(
        _("e-mail address of the shared account"),
        max_length=254,
        blank=True,
        help_text=_(
            "The e-mail address of the account that volunteers share at this project. Without it, the "
            "computers of that "
            "account cannot be found in the export."
        ),
    )
    # The version of tables.xml of the last export that was read; empty: its server named none
    etag = models.CharField(max_length=200, blank=True, editable=False)
    last_modified = models.CharField(max_length=60, blank=True, editable=False)
    update_time = models.DateTimeField(_("export date"), null=True, editable=False)
    first_update_time = models.DateTimeField(_("first export read"), null=True, editable=False)
    imported_at = models.DateTimeField(_("read on"), null=True, editable=False)
    # The last export: its records, and those of our volunteers
    hosts_read = models.PositiveIntegerField(_("computers in the export"), default=0, editable=False)
    hosts_kept = models.PositiveIntegerField(_("computers of volunteers here"), default=0, editable=False)
    users_read = models.PositiveIntegerField(_("accounts in the export"), default=0, editable=False)
    users_kept = models.PositiveIntegerField(_("accounts of volunteers here"), default=0, editable=False)
    # Records left out, or counted in part, because of an impossible number
    hosts_odd = models.PositiveIntegerField(_("odd computers in the export"), default=0, db_default=0, editable=False)
    users_odd = models.PositiveIntegerField(_("odd accounts in the export"), default=0, db_default=0, editable=False)
    # The project's numbers of those that belonged to our volunteers
    odd_ours = models.CharField(
        _("odd records of volunteers here"), max_length=300, blank=True, default="", db_default="", editable=False
    )
    granted = models.BigIntegerField(_("granted since the previous export, micro-credits"), default=0, editable=False)
    asked_at = models.DateTimeField(_("last asked"), null=True, editable=False)
    next_at = models.DateTimeField(_("next asked after"), default=timezone.now, db_index=True, editable=False)
    # Why the last attempt failed, since when no attempt has succeeded, and how many were made since
    trouble = MessageField(_("problem"))
    trouble_since = models.DateTimeField(_("problem since"), null=True, editable=False)
    failures = models.PositiveIntegerField(_("failures"), default=0, editable=False)

    class Meta:
        ordering = ["project__name"]
        verbose_name = _("statistics import")
        verbose_name_plural = _("statistics imports")
        constraints = [
            CheckConstraint(
                condition=Q(trouble__isnull=True, trouble_since=None, failures=0)
                | Q(trouble__isnull=False, trouble_since__isnull=False),
                name="statisticsimport_trouble_since",
            ),
            CheckConstraint(
                condition=Q(update_time=None, first_update_time=None) | Q(first_update_time__lte=F("update_time")),
                name="statisticsimport_first_before_last",
            ),
            CheckConstraint(
                condition=Q(hosts_kept__lte=F("hosts_read"), users_kept__lte=F("users_read"), granted__gte=0),
                name="statisticsimport_counts",
            ),
        ]

    def __str__(self) -> str:
        return str(self.project)


class GrantedTotal(models.Model):
    """The credit of one record of a computer at a project, by the project's number of it.

    Only of records whose cross-project id in the export is that of ``host``. A record belongs to one computer of ours
    at a time, so no grant counts twice. The counted part is in `GrantedDay`, too; the rest of the total was granted
    before the record was first seen.
    """

    project = models.ForeignKey("accounting.Project", models.CASCADE, related_name="+", db_index=False)
    project_host_id = models.BigIntegerField("number at the project")
    host = models.ForeignKey(Host, models.CASCADE, related_name="granted_totals")
    total_credit = models.BigIntegerField("total, micro-credits")
    highest_credit = models.BigIntegerField("highest total so far, micro-credits")
    counted_credit = models.BigIntegerField("counted on days, micro-credits", default=0)
    avg_credit = models.FloatField("recent average, credits a day", default=0)
    avg_at = models.DateTimeField("time of the average")
    made_at = models.DateTimeField("record made at the project")
    as_of = models.DateTimeField("export of")
    fits_since = models.DateTimeField("first export in which it was the computer's")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["project", "project_host_id"], name="grantedtotal_once"),
            CheckConstraint(
                condition=Q(total_credit__gte=0, counted_credit__gte=0, project_host_id__gt=0),
                name="grantedtotal_range",
            ),
            CheckConstraint(condition=Q(highest_credit__gte=F("total_credit")), name="grantedtotal_highest"),
            CheckConstraint(condition=Q(as_of__gte=F("fits_since")), name="grantedtotal_times"),
        ]

    def __str__(self) -> str:
        return f"number {self.project_host_id} at {self.project_id}"


class GrantedDay(models.Model):
    """What a project granted a computer between the previous export and that of this UTC day, in micro-credits.

    A day's credit only grows. Each export adds to the day of its own time, so the days of a record add up to the
    counted part of its total.
    """

    pk = models.CompositePrimaryKey("user_id", "day", "project_id", "host_id")
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    # As in Day: the key begins with the user, so a deletion would read the whole table to check them.
    project = models.ForeignKey(
        "accounting.Project", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    host = models.ForeignKey(Host, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    credit = models.BigIntegerField("granted, micro-credits")

    class Meta:
        constraints = [CheckConstraint(condition=Q(credit__gt=0), name="grantedday_positive")]

    def __str__(self) -> str:
        return f"{self.day}: {self.host_id} granted at {self.project_id}"


class AccountTotal(models.Model):
    """The export's total of a volunteer's own account at a project, found by the person's cross-project id."""

    project = models.ForeignKey("accounting.Project", models.CASCADE, related_name="+", db_index=False)
    project_user_id = models.BigIntegerField("number at the project")
    user = models.ForeignKey(User, models.CASCADE, related_name="account_totals")
    total_credit = models.BigIntegerField("total, micro-credits")
    avg_credit = models.FloatField("recent average, credits a day", default=0)
    avg_at = models.DateTimeField("time of the average")
    as_of = models.DateTimeField("export of")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["project", "project_user_id"], name="accounttotal_once"),
            CheckConstraint(condition=Q(total_credit__gte=0, project_user_id__gt=0), name="accounttotal_range"),
        ]

    def __str__(self) -> str:
        return f"account {self.project_user_id} at {self.project_id}"
