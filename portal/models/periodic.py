"""When each periodic task was last done."""

from __future__ import annotations

from django.db import models


class PeriodicTask(models.Model):
    """A task that was done at least once; its time is that of the database's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    # When the last run that succeeded began
    done_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
