"""The admin list of exports."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import StatisticsExport
from portal.admin import ReadOnlyAdmin


class StatisticsExportAdmin(ReadOnlyAdmin):
    """Show the progress of the running export, and how those of the last sixty days ended."""

    list_display = ("started_at", "state", "nrecords", "nusers", "nteams", "nhosts", "nbytes")

    @admin.display(description=_("state"))
    def state(self, made: StatisticsExport) -> str:
        if made.finished_at is None:
            return gettext("running")
        return gettext("failed: %(reason)s") % {"reason": made.failure} if made.failure else gettext("published")
