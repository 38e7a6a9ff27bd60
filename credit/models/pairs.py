"""Pairs of volunteers who confirm each other's results more often than chance would."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import CheckConstraint, F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.engine.pairs import LEAST_CHANCE, MIN_TOGETHER
from credit.models.apps import App
from portal.models import User

MAX_PAIRS_PER_APP: Final = 1000
"""Those with the smallest chance are kept."""


class ConfirmingPair(models.Model):
    """Two volunteers, how often both had valid results of the same workunit of the app, and how often chance would
    explain.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="pairs", db_index=False, verbose_name=_("app"))
    one = models.ForeignKey(User, models.CASCADE, related_name="+", verbose_name=_("volunteer"))
    other = models.ForeignKey(User, models.CASCADE, related_name="+", verbose_name=_("other volunteer"))
    together = models.PositiveIntegerField(_("workunits in common"))
    expected = models.FloatField(_("by chance"))
    chance = models.FloatField(_("chance that any pair has as many"))
    needs_another = models.BooleanField(_("confirmed by a third volunteer"))
    counted_at = models.DateTimeField(_("counted"), default=timezone.now)

    class Meta:
        verbose_name = _("pair that confirms each other")
        verbose_name_plural = _("pairs that confirm each other")
        ordering = ["chance", "id"]
        constraints = [
            models.UniqueConstraint(fields=["app", "one", "other"], name="confirmingpair_once"),
            CheckConstraint(condition=Q(one__lt=F("other")), name="confirmingpair_lower_first"),
            CheckConstraint(
                condition=Q(together__gte=MIN_TOGETHER, expected__gte=0, expected__lt=F("together"))
                & Q(chance__gte=LEAST_CHANCE, chance__lte=1),
                name="confirmingpair_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.one} · {self.other}"
