"""Changes of settings."""

from __future__ import annotations

from typing import Final

from auditlog.models import AbstractLogEntry
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

MAX_REASON_LENGTH: Final = 500


class Change(AbstractLogEntry):  # type: ignore[misc]  # of a library without types
    """A change of settings: who made it, when and why, and the values before and after (portal/audit).

    ``changes``: {field: [before, after]}; None for a row that was not there. Written by django-auditlog; its columns
    for addresses of visitors stay empty.
    """

    reason = models.CharField(_("reason"), max_length=MAX_REASON_LENGTH, blank=True)
    # The change whose earlier values this one restored
    undoes = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="undone_by", verbose_name=_("undoes")
    )

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        verbose_name = _("change of settings")
        verbose_name_plural = _("changes of settings")

    def __str__(self) -> str:
        return f"{self.object_repr} {self.timestamp:%Y-%m-%d %H:%M}"

    @property
    def done(self) -> str:
        """The action on the row, in a word."""
        return {self.Action.CREATE: gettext("added"), self.Action.DELETE: gettext("deleted")}.get(
            self.action, gettext("changed")
        )
