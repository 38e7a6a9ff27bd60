"""Experiments of the credit laboratory: their settings, progress and results."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.languages.sentences import MessageField
from portal.models import User


class CreditExperiment(models.Model):
    """Rules compared on simulated populations. Only its owner and operators see it, unless it is shared.

    ``settings``: ``Experiment.as_json`` of `trials.experiment`. ``results``: a list of ``VariantGoals.as_json``.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="credit_experiments", verbose_name=_("owner"))
    title = models.CharField(_("title"), max_length=100)
    settings = models.JSONField(_("settings"))
    asked_at = models.DateTimeField(_("requested"), default=timezone.now, editable=False)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    progress = models.FloatField(_("progress"), default=0)
    failure = MessageField(_("reason for the failure"))
    results = models.JSONField(_("results"), null=True, blank=True)
    share_token = models.CharField(_("share token"), max_length=32, null=True, blank=True, unique=True, editable=False)

    class Meta:
        verbose_name_plural = _("credit experiments")
        ordering = ["-id"]
        verbose_name = _("credit experiment")
        constraints = [
            CheckConstraint(condition=Q(progress__gte=0, progress__lte=1), name="creditexperiment_progress_range"),
        ]

    def __str__(self) -> str:
        return self.title
