"""The sessions of browsers, by a keyed hash of their cookie."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from portal.models.people import User


class Session(models.Model):
    """One browser's session, read and written by portal/sign_in/sessions.py; the names are those of Django's store."""

    session_key = models.CharField(max_length=64, primary_key=True)
    session_data = models.TextField()
    expire_date = models.DateTimeField(db_index=True)
    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="sessions")
    # Noted at intervals, for operators only.
    active_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[models.Manager[Session]] = models.Manager()

    def __str__(self) -> str:
        return f"until {self.expire_date:%Y-%m-%d %H:%M}"
