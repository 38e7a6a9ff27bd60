"""What operators tell volunteers: news for everybody or for some, and mails to those whose computers have gone."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q
from django.utils import timezone

from accounting.engine.audience import UNKNOWN, VERSION_PATTERN, Audience, version_of

MIN_LAPSED_DAYS = 30
MAX_LAPSED_DAYS = 3650


class Announcement(models.Model):
    """News from the operators, as notices of clients, on the page of news and, while urgent, in the client's log.

    With an audience only the computers that it fits are told; without one it is public.
    """

    title = models.CharField(max_length=100)
    text = models.TextField(
        max_length=2000, help_text="Markdown: blank lines, *emphasis*, lists, [links](https://example.org/). No HTML."
    )
    is_draft = models.BooleanField("draft", default=False, db_default=False, editable=False)
    published_at = models.DateTimeField("shown from", default=timezone.now)
    ends_at = models.DateTimeField(
        "shown until", null=True, blank=True, help_text="Empty: clients show it for 30 days, the page of news always."
    )
    urgent_until = models.DateTimeField(
        null=True, blank=True, help_text="Until then each reply to a client carries the title as a message."
    )
    project = models.ForeignKey(
        "accounting.Project",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Only for computers that are attached to it.",
    )
    platform = models.CharField(
        max_length=64,
        blank=True,
        help_text="Only for computers whose platform begins with this, as BOINC calls it: windows_, x86_64-pc.",
    )
    older_than = models.CharField(
        "client older than",
        max_length=32,
        blank=True,
        validators=[RegexValidator(VERSION_PATTERN, "Enter a version of the client, such as 8.2.0.")],
        help_text="Only for computers with an older BOINC client, such as 8.2.0.",
    )
    app_name = models.CharField(
        "app", max_length=255, blank=True, help_text="Only for computers that have run this app of this site's project."
    )
    app_version_num = models.PositiveIntegerField(
        "version of the app", null=True, blank=True, help_text="Only this version of it; 102 is version 1.02."
    )

    class Meta:
        ordering = ["-published_at"]
        constraints = [
            CheckConstraint(
                condition=Q(ends_at=None) | Q(ends_at__gt=F("published_at")),
                name="announcement_ends_after_it_begins",
                violation_error_message="It has to be shown until later than from when.",
            ),
            CheckConstraint(
                condition=Q(app_version_num=None) | ~Q(app_name=""),
                name="announcement_version_of_an_app",
                violation_error_message="Name the app that the version is of.",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def clean(self) -> None:
        """No client is older than 0.0, which stands for no version."""
        if self.older_than and version_of(self.older_than) == UNKNOWN:
            raise ValidationError({"older_than": "Enter a version of the client, such as 8.2.0."})

    @property
    def audience(self) -> Audience:
        """Whom it is for."""
        return Audience(
            self.project_id, self.platform, version_of(self.older_than), self.app_name, self.app_version_num
        )


PUBLIC = Q(project=None, platform="", older_than="", app_name="")
"""Announcements for everybody."""


class MailCampaign(models.Model):
    """A mail to volunteers who agreed to it and whose computers have not reported for long."""

    title = models.CharField("subject", max_length=100)
    text = models.TextField(max_length=4000, help_text="Plain text. Greeting, and how to end such mails, are added.")
    lapsed_days = models.PositiveIntegerField(
        "days without a report",
        default=90,
        validators=[MinValueValidator(MIN_LAPSED_DAYS), MaxValueValidator(MAX_LAPSED_DAYS)],
        help_text="For volunteers none of whose computers has reported for so many days.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    released_at = models.DateTimeField("sending since", null=True, editable=False)
    stopped_at = models.DateTimeField("stopped", null=True, editable=False)
    finished_at = models.DateTimeField("everybody has it since", null=True, editable=False)
    nsent = models.PositiveIntegerField("sent", default=0, editable=False)
    nfailed = models.PositiveIntegerField("refused by a mail server", default=0, editable=False)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = "mail to lapsed volunteers"
        verbose_name_plural = "mails to lapsed volunteers"
        constraints = [
            CheckConstraint(
                condition=Q(lapsed_days__gte=MIN_LAPSED_DAYS, lapsed_days__lte=MAX_LAPSED_DAYS),
                name="mailcampaign_lapsed_days",
            ),
        ]

    def __str__(self) -> str:
        return self.title
