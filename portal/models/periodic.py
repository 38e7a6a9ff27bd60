"""The time of each periodic task's last success."""

from __future__ import annotations

from django.db import models


class PeriodicTask(models.Model):
    """A task that has succeeded; the time is that of the database's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    # When its last successful run began
    done_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
