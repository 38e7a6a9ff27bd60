"""News that operators write, for everybody or for some readers."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounting.engine.audience import UNKNOWN, VERSION_PATTERN, Audience, version_of


class Announcement(models.Model):
    """News from the operators: shown as notices by clients, on the news page and, while urgent, in the client's log.

    With an audience, only matching computers get it; without one it is public.
    """

    title = models.CharField(_("title"), max_length=100)
    text = models.TextField(
        _("text"),
        max_length=2000,
        help_text=_("Markdown: blank lines, *emphasis*, lists, [links](https://example.org/). No HTML."),
    )
    is_draft = models.BooleanField(_("draft"), default=False, db_default=False, editable=False)
    published_at = models.DateTimeField(_("shown from"), default=timezone.now)
    ends_at = models.DateTimeField(
        _("shown until"),
        null=True,
        blank=True,
        help_text=_("If empty, clients show it for 30 days, and the news page shows it permanently."),
    )
    urgent_until = models.DateTimeField(
        _("urgent until"),
        null=True,
        blank=True,
        help_text=_("Until then, each reply to a client contains the title as a message."),
    )
    project = models.ForeignKey(
        "accounting.Project",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("project"),
        help_text=_("Only for computers attached to this project."),
    )
    platform = models.CharField(
        _("platform"),
        max_length=64,
        blank=True,
        help_text=_("Only for computers whose BOINC platform name begins with this, such as windows_ or x86_64-pc."),
    )
    older_than = models.CharField(
        _("client older than"),
        max_length=32,
        blank=True,
        validators=[RegexValidator(VERSION_PATTERN, _("Enter a client version, such as 8.2.0."))],
        help_text=_("Only for computers whose BOINC client is older than this version, such as 8.2.0."),
    )
    app_name = models.CharField(
        _("app"),
        max_length=255,
        blank=True,
        help_text=_("Only for computers that have run this app of this site’s own project."),
    )
    app_version_num = models.PositiveIntegerField(
        _("app version"), null=True, blank=True, help_text=_("Only this version of the app; 102 means version 1.02.")
    )

    class Meta:
        ordering = ["-published_at"]
        verbose_name = _("announcement")
        verbose_name_plural = _("announcements")
        constraints = [
            CheckConstraint(
                condition=Q(ends_at=None) | Q(ends_at__gt=F("published_at")),
                name="announcement_ends_after_it_begins",
                violation_error_message=_("“Shown until” has to be later than “shown from”."),
            ),
            CheckConstraint(
                condition=Q(app_version_num=None) | ~Q(app_name=""),
                name="announcement_version_of_an_app",
                violation_error_message=_("Enter the app that this version belongs to."),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def clean(self) -> None:
        """Refuse version 0.0, which stands for no version, as no client is older."""
        if self.older_than and version_of(self.older_than) == UNKNOWN:
            raise ValidationError({"older_than": _("Enter a client version, such as 8.2.0.")})

    @property
    def audience(self) -> Audience:
        """The computers it is for."""
        return Audience(
            self.project_id, self.platform, version_of(self.older_than), self.app_name, self.app_version_num
        )


PUBLIC = Q(project=None, platform="", older_than="", app_name="")
"""Announcements for everybody."""
