"""Long-running work that volunteers asked for."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.people import User


class RequestedWork(models.Model):
    """Work that a volunteer asked for, in the queue of portal/requested_work; deleted a day after its end."""

    user = models.ForeignKey(User, models.CASCADE, related_name="requested_work", verbose_name=_("volunteer"))
    # What to do, and the number of the row to do it to
    kind = models.CharField(_("kind"), max_length=20)
    subject = models.BigIntegerField(_("subject"))
    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    ntries = models.PositiveSmallIntegerField(_("times started"), default=0)
    is_given_up = models.BooleanField(_("given up"), default=False)

    class Meta:
        verbose_name = _("requested work")
        verbose_name_plural = _("requested work")
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject"], name="requestedwork_once"),
            models.CheckConstraint(
                condition=models.Q(is_given_up=False) | models.Q(finished_at__isnull=False),
                name="requestedwork_given_up_is_over",
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(finished_at=None), name="requestedwork_unfinished"),
            models.Index(fields=["finished_at"], name="requestedwork_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
