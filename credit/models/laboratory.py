"""Experiments of the credit laboratory: what was asked for, how far it is, and what was measured."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone

from portal.models import User


class CreditExperiment(models.Model):
    """Rules side by side on simulated populations. Only its owner and operators see it, unless it is shared.

    ``settings``: ``Experiment.as_json`` of credit.laboratory.experiment. ``results``: a list of ``Found.as_json``.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="credit_experiments")
    title = models.CharField(max_length=100)
    settings = models.JSONField()
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)
    progress = models.FloatField(default=0)
    failure = models.CharField("why it failed", max_length=500, blank=True)
    results = models.JSONField(null=True, blank=True)
    share_token = models.CharField(max_length=32, null=True, blank=True, unique=True, editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = "credit experiment"
        constraints = [
            CheckConstraint(condition=Q(progress__gte=0, progress__lte=1), name="creditexperiment_progress_range"),
        ]

    def __str__(self) -> str:
        return self.title
