"""Other servers' factors of versions: projects' exports, and averages over projects."""

from __future__ import annotations

from typing import Any, Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.languages.sentences import MessageField

MAX_PROBLEM: Final = 300
MAX_URL: Final = 255


class AskedServer(models.Model):
    """A server that is queried daily: the last query, the last good answer, and the problem since then."""

    url = models.CharField(_("address"), max_length=MAX_URL, unique=True)
    asked_at = models.DateTimeField(_("last asked"), null=True)
    read_at = models.DateTimeField(_("last read"), null=True)
    problem = MessageField(_("problem"))
    problem_since = models.DateTimeField(_("problem since"), null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.url


class CollectedExport(AskedServer):
    """A project's versions, as it exported them last (`credit.engine.cross_project.ExportedVersion`)."""

    versions: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(
        _("versions"), default=list
    )
    nversions = models.PositiveIntegerField(_("versions"), default=0)
    ncounted = models.PositiveIntegerField(_("versions used"), default=0)
    refused = models.CharField(_("left out"), max_length=MAX_PROBLEM, blank=True)

    class Meta:
        ordering = ["url"]
        default_permissions = ("view",)
        verbose_name = _("export of a project’s factors")
        verbose_name_plural = _("exports of projects’ factors")


class FactorList(AskedServer):
    """Average factors (`credit.engine.cross_project.Factor`) from the central server at this address.

    The row with an empty address has those that were averaged here.
    """

    factors: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(default=list)

    class Meta:
        verbose_name = _("list of factors")
        verbose_name_plural = _("lists of factors")
        default_permissions = ()
