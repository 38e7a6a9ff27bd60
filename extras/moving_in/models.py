"""How far imports of other sites are."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.models import User


class UnsubscribeCode(models.Model):
    """The code by which the links of old mails end a volunteer's status mails; only its hash is kept."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+")
    code_hash = models.BinaryField(max_length=32, editable=False)

    class Meta:
        verbose_name = _("code of old mails")
        verbose_name_plural = _("codes of old mails")

    def __str__(self) -> str:
        return f"code of {self.user}"


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
    # `Source.as_of` when this run began, and when the last completed run began
    as_of = models.DateTimeField(null=True)
    since = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("step of an import")
        verbose_name_plural = _("steps of imports")
        constraints = [models.UniqueConstraint(fields=["source", "name"], name="importstep_once")]

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"


class MergedHost(models.Model):
    """A computer's number that was merged into another one's before the move; that may be merged itself."""

    id = models.BigIntegerField(primary_key=True)
    into_id = models.BigIntegerField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.pk} into {self.into_id}"
