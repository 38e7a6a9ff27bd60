"""How far imports of other sites are."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ImportStep(models.Model):
    """A step of an import: up to which row it is done, and what was read, taken, changed and left so far."""

    # "boinc", …
    source = models.CharField(max_length=20)
    name = models.CharField(max_length=40)
    # Imports after the first read what changed since.
    run = models.PositiveIntegerField(default=1)
    last_key = models.BigIntegerField(default=0)
    # `engine.tally.Tally`
    tally = models.JSONField(default=dict)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)
    # When the last run that came to its end began
    previous_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("step of an import")
        verbose_name_plural = _("steps of imports")
        constraints = [models.UniqueConstraint(fields=["source", "name"], name="importstep_once")]

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"
