"""A claim and what it was made of, kept with what was granted for it (engine.explanation)."""

from __future__ import annotations

from django.db import models


class StoredClaim(models.Model):
    """The columns of a claim, which explain a grant."""

    claim_rule = models.SmallIntegerField(null=True, blank=True)
    raw_pfc = models.FloatField(null=True, blank=True)
    claimed_pfc = models.FloatField(null=True, blank=True)
    claimed_credit = models.FloatField(null=True, blank=True)
    is_approximate = models.BooleanField(null=True, blank=True)
    version_scale = models.FloatField(null=True, blank=True)
    host_scale = models.FloatField(null=True, blank=True)
    on_probation = models.BooleanField(null=True, blank=True)
    version_pfc_n = models.BigIntegerField(null=True, blank=True)
    version_pfc_avg = models.FloatField(null=True, blank=True)
    host_pfc_n = models.BigIntegerField(null=True, blank=True)
    host_pfc_avg = models.FloatField(null=True, blank=True)
    min_avg_pfc = models.FloatField(null=True, blank=True)

    class Meta:
        abstract = True
