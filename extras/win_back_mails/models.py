"""Mails that operators write to volunteers whose computers no longer report."""

from __future__ import annotations

from typing import Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

MIN_LAPSED_DAYS: Final = 30
MAX_LAPSED_DAYS: Final = 3650


class MailCampaign(models.Model):
    """A mail to volunteers who agreed to it and whose computers have not reported for long."""

    title = models.CharField(pgettext_lazy("e-mail", "subject"), max_length=100)
    text = models.TextField(
        _("text"),
        max_length=4000,
        help_text=_("Plain text. The greeting and the unsubscribe link are added automatically."),
    )
    lapsed_days = models.PositiveIntegerField(
        _("days without a sync"),
        default=90,
        validators=[MinValueValidator(MIN_LAPSED_DAYS), MaxValueValidator(MAX_LAPSED_DAYS)],
        help_text=_("For volunteers none of whose computers has synced for this many days."),
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    released_at = models.DateTimeField(_("sending since"), null=True, editable=False)
    stopped_at = models.DateTimeField(_("stopped on"), null=True, editable=False)
    finished_at = models.DateTimeField(_("sent to everybody on"), null=True, editable=False)
    nsent = models.PositiveIntegerField(_("sent"), default=0, editable=False)
    nfailed = models.PositiveIntegerField(_("refused by mail servers"), default=0, editable=False)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("e-mail to inactive volunteers")
        verbose_name_plural = _("e-mails to inactive volunteers")
        constraints = [
            CheckConstraint(
                condition=Q(lapsed_days__gte=MIN_LAPSED_DAYS, lapsed_days__lte=MAX_LAPSED_DAYS),
                name="mailcampaign_lapsed_days",
            ),
        ]

    def __str__(self) -> str:
        return self.title
