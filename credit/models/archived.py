"""Daily sums of archived tasks: their results are deleted, but their owners keep the history."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q

from credit.models.apps import App
from portal.models import Host, User


class ArchivedDay(models.Model):
    """The archived tasks of one app that a volunteer's computer reported or was granted credit for on one UTC day.

    Credit counts on the day of the grant, run time and tasks on the day of the report. ``host`` is NULL if the computer
    was deleted.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    host = models.ForeignKey(Host, models.CASCADE, null=True, related_name="+")
    day = models.DateField()
    on_gpu = models.BooleanField()
    credit = models.FloatField(default=0)
    elapsed_secs = models.FloatField(default=0)
    nsucceeded = models.IntegerField(default=0)
    nfailed = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app", "day", "host", "on_gpu"], nulls_distinct=False, name="archivedday_once"
            ),
            CheckConstraint(
                condition=Q(credit__gte=0, elapsed_secs__gte=0, nsucceeded__gte=0, nfailed__gte=0),
                name="archivedday_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.host_id} for {self.app_id}"
