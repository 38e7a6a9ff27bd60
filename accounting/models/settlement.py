"""How far the credit of each computer at each project is settled, and how projects' grants compare with estimates.

Credit is whole numbers of 1e-6. The rules are in accounting/engine/reconciliation.py, and explained in
docs/reconciliation.md.
"""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from portal.models import Host


class Settlement(models.Model):
    """A computer at a project whose statistics have listed it: the fields of the engine's ``SettledCredit``.

    Without such a row, all credit of the computer at the project is estimated, and that is its total.
    """

    host = models.ForeignKey(
        Host,
        models.CASCADE,
        related_name="settlements",
        db_index=False,
        verbose_name=_("computer"),
    )
    project = models.ForeignKey("accounting.Project", models.CASCADE, related_name="+", verbose_name=_("project"))
    seen_on = models.DateField(_("first in the statistics"))
    read_on = models.DateField(_("last in the statistics"))
    # Without the day seen_on, which may still grow. Negative only after two records were merged.
    estimated_before = models.BigIntegerField(_("estimated before, micro-credits"))
    is_whole = models.BooleanField(_("all grants are known"))
    granted = models.BigIntegerField(_("granted, micro-credits"), default=0)
    # The part of it from read_on and later days, to which the next statistics may add
    granted_last = models.BigIntegerField(default=0)
    # The long-run ratio: credit estimated and granted in the same time
    compared_from = models.BigIntegerField(_("estimated and not compared, micro-credits"), default=0)
    estimated = models.BigIntegerField(_("estimated, micro-credits"), default=0)
    is_outside = models.BooleanField(_("outside the expected range"), default=False)

    class Meta:
        ordering = ["-is_outside", "project", "host"]
        verbose_name = _("credit comparison")
        verbose_name_plural = _("credit comparisons")
        constraints = [
            UniqueConstraint(fields=["host", "project"], name="settlement_once"),
            CheckConstraint(
                condition=Q(granted__gte=F("granted_last"), granted_last__gte=0, estimated__gte=0),
                name="settlement_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host} · {self.project}"


class ProjectRatio(models.Model):
    """The usual grant of volunteers' computers at a project per estimated credit."""

    project = models.OneToOneField("accounting.Project", models.CASCADE, primary_key=True, related_name="ratio")
    as_of = models.DateTimeField("export of")
    median = models.FloatField(null=True)
    computers = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [CheckConstraint(condition=Q(median__isnull=True) | Q(median__gte=0), name="projectratio_range")]

    def __str__(self) -> str:
        return f"ratio at {self.project}"
