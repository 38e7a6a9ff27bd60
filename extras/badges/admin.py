"""Operators' pages of badges: the rules, and how many volunteers have earned each."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from extras.badges.models import Badge
from extras.badges.texts import rule_text
from portal.admin.base import column
from portal.audit.admin import AuditedAdmin
from portal.languages import supplied


@admin.register(Badge)
class BadgeAdmin(AuditedAdmin):
    """A rule that somebody has met cannot be deleted: switch it off instead."""

    shown_title = column("title", _("title"), supplied.shown)
    list_display = ("shown_title", "rule", "is_active", "nawarded")
    list_filter = ("is_active", "kind")
    search_fields = ("title",)
    fieldsets = (
        (
            None,
            {
                "fields": ("title", "text", "kind", "subject", "threshold", "is_active"),
                "description": _(
                    "Volunteers see their badges on a page of their own, and choose whether others see them. A badge "
                    "is never taken away. If you change a rule, those who have the badge keep it, with the rule as it "
                    "was. Others get it within a day if they reached the new one, dated by the day on which they did."
                ),
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).annotate(nawards=Count("awards"))
        return rows

    @admin.display(description=_("what has to be reached"))
    def rule(self, row: Badge) -> str:
        return rule_text(row)

    @admin.display(description=_("volunteers who have it"), ordering="nawards")
    def nawarded(self, row: Any) -> int:
        return int(row.nawards)
