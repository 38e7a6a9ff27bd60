"""The numbers behind a claim, stored with what was granted for it (engine.explanation)."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class StoredClaim(models.Model):
    """The columns of a claim, which explain a grant."""

    claim_rule = models.SmallIntegerField(_("claim rule"), null=True, blank=True)
    raw_pfc = models.FloatField(_("PFC before scaling"), null=True, blank=True)
    claimed_pfc = models.FloatField(_("claimed PFC"), null=True, blank=True)
    claimed_credit = models.FloatField(_("claimed credit"), null=True, blank=True)
    is_approximate = models.BooleanField(_("approximate"), null=True, blank=True)
    version_scale = models.FloatField(_("version factor"), null=True, blank=True)
    host_scale = models.FloatField(_("host factor"), null=True, blank=True)
    on_probation = models.BooleanField(_("on probation"), null=True, blank=True)
    version_pfc_n = models.BigIntegerField(_("samples of the version"), null=True, blank=True)
    version_pfc_avg = models.FloatField(_("average of the version"), null=True, blank=True)
    host_pfc_n = models.BigIntegerField(_("samples of the computer"), null=True, blank=True)
    host_pfc_avg = models.FloatField(_("average of the computer"), null=True, blank=True)
    min_avg_pfc = models.FloatField(_("lowest average of the app"), null=True, blank=True)

    class Meta:
        abstract = True
