"""Signature images, and the facts that each shows."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from portal.models import User


class SignatureImage(models.Model):
    """A volunteer's signature image, and the facts that it shows. Without a row there is none.

    Anyone who has the link sees the image; a new link replaces the old one at once.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="signature_image")
    token = models.CharField(max_length=32, unique=True, editable=False)
    shown_name = models.CharField("name on the image", max_length=60, blank=True)
    shows_total = models.BooleanField("estimated credit", default=True)
    shows_average = models.BooleanField("recent average credit", default=True)
    shows_projects = models.BooleanField("projects with most credit", default=False)
    shows_badges = models.BooleanField("number of badges", default=False)
    changed_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"signature image of {self.user}"
