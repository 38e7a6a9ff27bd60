"""Steps that one operator asks for and another one confirms."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.people import User


class ConfirmationRequest(models.Model):
    """A step that waits for a second person, or was confirmed or refused (portal/audit/two_persons.py).

    ``payload``: what the step needs, by its ``kind``. The database ensures that nobody confirms their own.
    """

    kind = models.CharField(_("step"), max_length=32)
    # What it is about, in English, named as at the time
    subject = models.CharField(_("what it is about"), max_length=300)
    payload = models.JSONField(editable=False)
    asked_by = models.ForeignKey(User, models.CASCADE, related_name="+", verbose_name=_("asked for by"))
    asked_at = models.DateTimeField(_("asked for"), default=timezone.now)
    decided_by = models.ForeignKey(User, models.CASCADE, related_name="+", null=True, verbose_name=_("decided by"))
    decided_at = models.DateTimeField(_("decided"), null=True)
    is_confirmed = models.BooleanField(_("confirmed"), null=True)

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        verbose_name = _("step to confirm")
        verbose_name_plural = _("steps to confirm")
        constraints = [
            CheckConstraint(
                condition=Q(is_confirmed=True, decided_by__isnull=False) & ~Q(decided_by=F("asked_by"))
                | Q(is_confirmed=False, decided_by__isnull=False)
                | Q(is_confirmed__isnull=True, decided_by__isnull=True),
                name="confirmationrequest_two",
            )
        ]

    def __str__(self) -> str:
        return self.subject
