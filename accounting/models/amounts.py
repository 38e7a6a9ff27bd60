"""The six amounts of work, as columns."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounting.engine.amounts import Totals


class Amounts(models.Model):
    """Estimated credit in micro-credits, run time in microseconds, and jobs that succeeded and failed."""

    cpu_ec = models.BigIntegerField(default=0)
    gpu_ec = models.BigIntegerField(default=0)
    cpu_time = models.BigIntegerField(default=0)
    gpu_time = models.BigIntegerField(default=0)
    njobs_success = models.BigIntegerField(_("finished tasks"), default=0)
    njobs_error = models.BigIntegerField(_("failed tasks"), default=0)

    class Meta:
        abstract = True

    @property
    def amounts(self) -> Totals:
        return Totals(self.cpu_ec, self.gpu_ec, self.cpu_time, self.gpu_time, self.njobs_success, self.njobs_error)
