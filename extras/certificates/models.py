"""Signed certificates of volunteers' work."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.utils import timezone

from portal.models import User

MAX_SHOWN_NAME: Final = 60
"""Characters of the name on a certificate."""


class Certificate(models.Model):
    """A signed statement of a volunteer's work in a range of days, with the facts that they chose to show.

    ``statement`` never changes: it is what ``signature`` signs, in the form of `portal.wire.statements`.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="certificates")
    code = models.CharField("public code", max_length=16, unique=True, editable=False)
    statement = models.JSONField(editable=False)
    signature = models.CharField(max_length=88, editable=False)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # The key of the form that made it, so that repeating the form makes only one
    form_key = models.UUIDField(null=True, editable=False)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["user", "form_key"], name="certificate_form_once")]

    def __str__(self) -> str:
        return self.code
