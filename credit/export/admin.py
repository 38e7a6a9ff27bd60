"""The operators' list of exports."""

from __future__ import annotations

from django.contrib import admin

from credit.models import StatisticsExport
from portal.admin import ReadOnlyAdmin


class StatisticsExportAdmin(ReadOnlyAdmin):
    """How far the running export is, and how those of the last sixty days ended."""

    list_display = ("started_at", "state", "nrecords", "nusers", "nteams", "nhosts", "nbytes")

    @admin.display(description="state")
    def state(self, made: StatisticsExport) -> str:
        if made.finished_at is None:
            return "running"
        return f"failed: {made.failure}" if made.failure else "published"
