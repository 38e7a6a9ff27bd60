"""The mails that a volunteer wants, and those that were sent."""

from __future__ import annotations

from typing import Final

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.models.people import User

DEFAULT_SILENT_DAYS: Final = 3
MAX_SILENT_DAYS: Final = 60
STATUS_DAYS: Final = [(0, _("never")), (1, _("every day")), (7, _("every week")), (30, _("every month"))]


class MailChoice(models.Model):
    """The mails that a volunteer wants, besides those about the account's security, which are always sent.

    A volunteer without a row has the defaults.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="mail_choice")
    silence = models.BooleanField(_("a computer has not reported for some days"), default=True)
    # Pages, too, call a computer silent after this many days.
    silent_days = models.PositiveSmallIntegerField(
        _("days without a report"), default=DEFAULT_SILENT_DAYS, validators=[MinValueValidator(1)]
    )
    no_work = models.BooleanField(_("a computer gets no work"), default=False)
    failing_jobs = models.BooleanField(_("tasks of a computer fail"), default=False)
    weekly_summary = models.BooleanField(_("what my computers did, every Monday"), default=False)
    status_days = models.PositiveSmallIntegerField(
        _("days between e-mails about how my computers are"), default=0, db_default=0, choices=STATUS_DAYS
    )
    no_computer = models.BooleanField(_("no computer has reported in the first week"), default=True, db_default=True)
    lapsed = models.BooleanField(
        _("news, when my computers have been away for a long time"), default=False, db_default=False
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(silent_days__gte=1, silent_days__lte=MAX_SILENT_DAYS), name="mailchoice_silent_days"
            ),
        ]

    def __str__(self) -> str:
        return gettext("mails for %(person)s") % {"person": self.user}


class WaitingMail(models.Model):
    """A mail about what a BOINC client did, until a mail server accepts it (portal/people/key_mails.py).

    Only what its words need is stored; links are made when it is sent. ``due_at``: when to try it. The process that
    takes it moves that into the future, so that it is tried again if the process dies.
    """

    class Kind(models.TextChoices):
        NEW_KEY = "new_key"
        CONFIRMATION = "confirmation"

    user = models.ForeignKey(User, models.CASCADE, related_name="waiting_mails")
    kind = models.CharField(max_length=12, choices=Kind)
    # The address that asked for a new key
    address = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.kind} to {self.user}"


class SentMail(models.Model):
    """A subject that the volunteer was already mailed about, so that a task that runs twice sends one mail."""

    user = models.ForeignKey(User, models.CASCADE, related_name="sent_mails", db_index=False)
    # The kind and what it was about: "silence", "17 2026-03-01T08:00:00+00:00"; "weekly_summary", "2026-W09"
    kind = models.CharField(max_length=16)
    key = models.CharField(max_length=100)
    sent_at = models.DateTimeField(default=timezone.now)
    # If the recipient's mail server asked to try again later: when to, and how often it asked. Not sent yet.
    retry_at = models.DateTimeField(null=True, blank=True)
    nrefused = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "kind", "key"], name="sentmail_once")]
        # For the daily limit of such mails
        indexes = [models.Index(fields=["sent_at"], condition=models.Q(kind="lapsed"), name="sentmail_lapsed")]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user}, {self.key}"
