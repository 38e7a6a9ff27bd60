"""Who sends the periodic tasks, and where each of them stands."""

from __future__ import annotations

from django.db import models


class BeatLease(models.Model):
    """Which of the beat processes sends the periodic tasks: the one that has the token, until the lease expires.

    One row at most. Times are those of the database's clock, which is the same for all machines.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    token = models.UUIDField()
    # Machine and number of the process, for people
    holder = models.CharField(max_length=200)
    taken_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="beatlease_one_row")]

    def __str__(self) -> str:
        return self.holder


class PeriodicTask(models.Model):
    """Where an entry of the schedule stands, by the database's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    # When it was last due and a beat took it in hand
    due_at = models.DateTimeField()
    # When the broker took the message; NULL: not known to have it, so it is sent again
    sent_at = models.DateTimeField(null=True)
    # When a worker last began with it
    begun_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
