"""Publication of the project's statistics: consents, removals, and the exports made."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models import User


class ExportConsent(models.Model):
    """What a volunteer lets other sites know about them. Without a row: nothing."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="export_consent")
    exports_statistics = models.BooleanField(_("name and credit are published"), default=False)
    shows_hosts = models.BooleanField(_("computers are published"), default=False)
    # When one of the two was last given or withdrawn
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("consent to the statistics export")
        verbose_name_plural = _("consents to the statistics export")

    def __str__(self) -> str:
        return str(self.user)


class GoneUser(models.Model):
    """A volunteer who is no longer published, by number and published id only, so that readers drop them."""

    user_id = models.BigIntegerField(primary_key=True)
    cpid = models.CharField(_("published cross-project id"), max_length=32)
    gone_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("volunteer no longer published")
        verbose_name_plural = _("volunteers no longer published")

    def __str__(self) -> str:
        return f"volunteer {self.user_id}"


class GoneHost(models.Model):
    """A computer that is no longer published."""

    host_id = models.BigIntegerField(primary_key=True)
    cpid = models.CharField(_("published cross-project id"), max_length=32)
    gone_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("computer no longer published")
        verbose_name_plural = _("computers no longer published")

    def __str__(self) -> str:
        return f"computer {self.host_id}"


class StatisticsExport(models.Model):
    """An export of the statistics: its progress, or how it ended."""

    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(_("finished"), null=True)
    nrecords = models.BigIntegerField(_("records written"), default=0)
    nusers = models.BigIntegerField(_("volunteers"), default=0)
    nteams = models.BigIntegerField(_("teams"), default=0)
    nhosts = models.BigIntegerField(_("computers"), default=0)
    nbytes = models.BigIntegerField(_("total size of the files (bytes)"), default=0)
    failure = models.CharField(_("failure"), max_length=200, blank=True)
    # Whether the storage has some or all of its files
    is_in_storage = models.BooleanField(default=False, db_default=False, editable=False)
    published_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name_plural = _("statistics exports")
        ordering = ["-id"]
        default_permissions = ("view",)
        verbose_name = _("statistics export")

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M}"

    @property
    def folder(self) -> str:
        """The folder of its files in the storage."""
        return f"statistics/{self.pk}"
