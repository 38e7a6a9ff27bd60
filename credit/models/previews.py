"""Previews of changed settings, and the validator's inputs in its last passes, so that they can be replayed."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from credit.models.apps import App
from credit.models.versions import AppVersion
from portal.languages.sentences import MessageField
from portal.models import User


class Preview(models.Model):
    """What a change of settings would have done to an app's last granted workunits.

    ``changes``: ``{"app": {field: [before, after]}, "versions": {"<pk>": {field: [before, after]}}, "reset": [pk]}``.
    ``reset`` are versions whose statistics start again. ``result``: all figures of its page.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="previews", verbose_name=_("app"))
    app_version = models.ForeignKey(
        AppVersion, models.SET_NULL, null=True, blank=True, related_name="previews", verbose_name=_("app version")
    )
    asked_by = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("requested by")
    )
    asked_at = models.DateTimeField(_("requested"))
    changes: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(_("changes"))
    progress = models.FloatField(_("progress"), default=0)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    failure = MessageField(_("failure"))
    result: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(
        _("result"), null=True, blank=True
    )

    class Meta:
        verbose_name = _("preview")
        verbose_name_plural = _("previews")
        ordering = ["-id"]
        constraints = [
            CheckConstraint(condition=Q(progress__gte=0, progress__lte=1), name="preview_progress_range"),
            CheckConstraint(
                condition=Q(result__isnull=True) | Q(finished_at__isnull=False), name="preview_result_when_finished"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.app} · {self.asked_at:%Y-%m-%d %H:%M}"


class LoggedPass(models.Model):
    """A pass of the validator that decided something, or a run of the feeder, with the facts that it used.

    The order of the ids is the order in which they changed the versions' statistics. Those of the last
    PREVIEW_WORKUNITS granted workunits are kept. The columns of bytes are arrays of ``credit.statistics.pass_log``.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    is_feeder = models.BooleanField(default=False)
    # Those granted for the first time in it
    nworkunits = models.PositiveIntegerField(default=0)
    min_avg_pfc = models.FloatField(null=True)
    versions = models.BinaryField()
    records = models.BinaryField(default=b"")
    workunits = models.BinaryField(default=b"")
    results = models.BinaryField(default=b"")

    class Meta:
        verbose_name = _("logged pass")
        verbose_name_plural = _("logged passes")
        indexes = [models.Index(fields=["app", "-id"], name="loggedpass_app")]

    def __str__(self) -> str:
        return f"{self.app} at {self.at:%Y-%m-%d %H:%M:%S}"
