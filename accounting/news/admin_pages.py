"""Operators write news: saved as a draft, previewed, and then published."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action
from unfold.enums import ActionVariant

from accounting.models import Announcement
from accounting.rpc import catalogue
from portal.audit.admin import AuditedAdmin
from portal.templatetags.markdown import markdown

AUDIENCE = ("project", "platform", "older_than", "app_name", "app_version_num")


class AnnouncementAdmin(AuditedAdmin):
    """News: saved but unpublished items are drafts, which nobody else sees."""

    list_display = ("title", "state", "published_at", "ends_at", "is_for_everybody", "urgent_until")
    list_filter = ("is_draft", "project")
    list_select_related = ("project",)
    search_fields = ("title",)
    readonly_fields = ("preview",)
    actions_submit_line = ("publish", "take_back")
    fieldsets = (
        (None, {"fields": ("title", "text")}),
        (_("When"), {"fields": ("published_at", "ends_at", "urgent_until")}),
        (
            _("Audience"),
            {
                "fields": AUDIENCE,
                "description": _(
                    "All conditions entered here must be met. If all are empty, the announcement is for "
                    "everybody and appears "
                    "on the news page. Otherwise, only the clients of matching computers show it."
                ),
            },
        ),
    )

    class Media:
        css = {"all": ("accounting/admin_previews.css",)}

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        return (*fieldsets, (_("Preview (as saved)"), {"fields": ("preview",)}))

    @admin.display(description=_("for everybody"), boolean=True)
    def is_for_everybody(self, row: Announcement) -> bool:
        return row.audience.is_everybody

    @admin.display(description=_("state"))
    def state(self, row: Announcement) -> str:
        now = timezone.now()
        if row.is_draft:
            return gettext("draft")
        if row.ends_at is not None and row.ends_at <= now:
            return gettext("expired")
        return gettext("scheduled") if row.published_at > now else gettext("shown")

    @admin.display(description="")
    def preview(self, row: Announcement) -> SafeString:
        return format_html('<div class="as-shown"><h2>{}</h2>{}</div>', row.title, markdown(row.text))

    @action(description=_("Save and publish"), permissions=["publish"], variant=ActionVariant.PRIMARY)
    def publish(self, request: HttpRequest, obj: Announcement) -> None:
        now = timezone.now()
        if obj.ends_at is not None and obj.ends_at <= now:
            self.message_user(request, gettext("Not published: “shown until” is in the past."), messages.ERROR)
            return
        # It counts as new from now on: clients drop items older than 30 days.
        obj.is_draft, obj.published_at = False, max(obj.published_at, now)
        obj.save(update_fields=["is_draft", "published_at"])
        self.message_user(request, gettext("Published. Clients fetch news once a day."))

    @action(description=_("Save and unpublish"), permissions=["take_back"])
    def take_back(self, request: HttpRequest, obj: Announcement) -> None:
        Announcement.objects.filter(pk=obj.pk).update(is_draft=True)
        self.message_user(
            request, gettext("It is a draft again. Clients that have already fetched it show it for up to 30 days.")
        )

    # Without a number, the question is repeated before the button takes effect.
    def has_publish_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_change_permission(request) and (object_id is None or _is_draft(object_id))

    def has_take_back_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_change_permission(request) and (object_id is None or not _is_draft(object_id))

    def save_model(self, request: HttpRequest, obj: Announcement, form: Any, change: bool) -> None:
        if not change:
            obj.is_draft = True
        super().save_model(request, obj, form, change)
        transaction.on_commit(catalogue.forget)

    def response_add(
        self, request: HttpRequest, obj: Announcement, post_url_continue: str | None = None
    ) -> HttpResponse:
        messages.success(request, gettext("Saved as a draft. Check the preview below, then publish it."))
        return redirect("admin:accounting_announcement_change", obj.pk)

    def delete_model(self, request: HttpRequest, obj: Announcement) -> None:
        super().delete_model(request, obj)
        transaction.on_commit(catalogue.forget)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Announcement]) -> None:
        super().delete_queryset(request, queryset)
        transaction.on_commit(catalogue.forget)


def _is_draft(object_id: Any) -> bool:
    return Announcement.objects.filter(pk=object_id, is_draft=True).exists()
