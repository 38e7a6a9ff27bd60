"""Submitters of jobs: their share of the computers, their limits, and where in the queues their work ends."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from credit.models import App
from portal.models import User
from scheduler.engine.submission.fair_queue import LEAST_SHARE, MOST_SHARE
from scheduler.engine.submission.submitter_limits import SubmitterLimits
from scheduler.wire.job_fields import LEAST_PRIORITY, MOST_PRIORITY


class Submitter(models.Model):
    """The share and the limits of a submitter of jobs. The first submission creates the row."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+", verbose_name=_("submitter"))
    share = models.FloatField(
        _("share"), default=1, validators=[MinValueValidator(LEAST_SHARE), MaxValueValidator(MOST_SHARE)]
    )
    max_priority = models.SmallIntegerField(
        _("highest priority"),
        default=0,
        validators=[MinValueValidator(LEAST_PRIORITY), MaxValueValidator(MOST_PRIORITY)],
    )
    # NULL: unlimited
    max_jobs = models.PositiveIntegerField(_("maximum open jobs"), null=True, blank=True, default=100_000)
    max_fpops = models.FloatField(
        _("maximum open FLOPs"), null=True, blank=True, default=1e20, validators=[MinValueValidator(0)]
    )
    app_names = models.CharField(_("apps"), max_length=1000, blank=True, default="")

    class Meta:
        verbose_name = _("submitter")
        verbose_name_plural = _("submitters")
        constraints = [
            CheckConstraint(condition=Q(share__gte=LEAST_SHARE, share__lte=MOST_SHARE), name="submitter_share_range")
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.share:g}"

    def limits(self) -> SubmitterLimits:
        return SubmitterLimits(self.max_priority, self.max_jobs, self.max_fpops, self.app_names.split())


class SubmitterPlace(models.Model):
    """Where a submitter's work ends in the queue of an app and a priority (`engine.submission.fair_queue`).

    ``lane``: each size class has a separate queue; 0: the queue of jobs without one.
    """

    submitter = models.ForeignKey(Submitter, models.CASCADE, related_name="places", db_index=False)
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    lane = models.BigIntegerField(default=0, db_default=0)
    priority = models.SmallIntegerField()
    # In queue positions, which may be fractional
    end = models.FloatField()

    class Meta:
        constraints = [UniqueConstraint(fields=["submitter", "app", "lane", "priority"], name="submitterplace_once")]

    def __str__(self) -> str:
        return f"{self.submitter}, {self.app}, {self.priority}: {self.end:.0f}"
