"""Changes of settings, and the site's own texts."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from portal.admin.base import ReadOnlyAdmin
from portal.audit import proposals, signed_log, step_view, undo
from portal.audit.admin import AuditedAdmin
from portal.audit.steps import sections_of
from portal.audit.values import lines_of, row_words_of
from portal.models import Change, SignedEntry, SiteText, User

admin.site.unregister(Change)  # django-auditlog's own page
VOLUNTEERS_OWN = frozenset({("accounting", "userproject")})
"""Volunteers' tables, by app and model: changes that operators make in them are recorded."""


class SettingKindFilter(admin.SimpleListFilter):
    """Filters by the kind of row, among those that have changes."""

    title = _("kind of setting")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        changes = Change.objects.order_by("content_type").distinct("content_type").select_related("content_type")
        return [(str(change.content_type_id), change.content_type.name.capitalize()) for change in changes]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Change]) -> QuerySet[Change]:
        value = self.value() or ""
        return queryset.filter(content_type=int(value)) if value.isdecimal() else queryset


@admin.register(Change)
class ChangeAdmin(ReadOnlyAdmin):
    """All changes of settings: who, when, what, why."""

    list_display = ("timestamp", "what", "summary", "person", "reason")
    list_display_links = ("timestamp",)
    list_filter = (SettingKindFilter, ("actor", admin.RelatedOnlyFieldListFilter), "timestamp")
    list_select_related = ("actor", "content_type")
    search_fields = ("object_repr", "reason")
    search_help_text = _("The name of what was changed, or the reason.")
    date_hierarchy = "timestamp"
    show_full_result_count = False

    @admin.display(description=_("changed"), ordering="object_repr")
    def what(self, change: Change) -> str:
        return f"{change.content_type.name}: {row_words_of(change)}"

    @admin.display(description=_("before → after"))
    def summary(self, change: Change) -> str:
        if change.action != Change.Action.UPDATE:
            return change.done
        return "; ".join(f"{line.label}: {line.before} → {line.after}" for line in lines_of(change))

    @admin.display(description=_("by"), ordering="actor")
    def person(self, change: Change) -> str:
        return str(change.actor) if change.actor is not None else gettext("a command")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("step/<str:key>/", view(step_view.step), name="portal_change_step"),
            path("<int:pk>/undo/", view(require_POST(self.undo_view)), name="portal_change_undo"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Change]:
        changes: QuerySet[Change] = super().get_queryset(request)
        for app, model in VOLUNTEERS_OWN:
            if not request.user.has_perm(f"{app}.view_{model}"):
                changes = changes.exclude(content_type__app_label=app, content_type__model=model)
        return changes

    def has_view_permission(self, request: HttpRequest, obj: Change | None = None) -> bool:
        """Allow it to those who see the volunteer's row or, for settings, either all changes or the row."""
        kind = obj.content_type.natural_key() if obj is not None else None
        if kind in VOLUNTEERS_OWN:
            return bool(request.user.has_perm("{}.view_{}".format(*kind)))
        if super().has_view_permission(request, obj):
            return True
        return obj is not None and step_view.may_see(request, obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a change with its values, its effect and "Undo"."""
        if not object_id.isdecimal():
            raise Http404("no such change")
        change = get_object_or_404(Change.objects.select_related("actor", "content_type", "undoes"), pk=object_id)
        if not self.has_view_permission(request, change):
            raise PermissionDenied
        row = undo.row_of(change)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Change of %(row)s") % {"row": row_words_of(change)},
            "change_row": change,
            "row_words": row_words_of(change),
            "lines": lines_of(change),
            "row_url": _row_url(change) if row is not None else "",
            "undone_by": change.undone_by.order_by("pk").last(),
            "again": undo.changed_again(change, row) if row is not None else [],
            "can_undo": row is not None
            and step_view.may_change(request, row)
            and undo.proposal_of(change, row) is not None,
            "sections": sections_of(change),
        }
        return TemplateResponse(request, "portal/audit/change.html", context)

    def undo_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Propose the earlier values, and lead to the step before the change."""
        change = get_object_or_404(Change, pk=pk)
        row = undo.row_of(change)
        if row is None:
            raise Http404("what was changed is gone")
        if not step_view.may_change(request, row):
            raise PermissionDenied
        proposal = undo.proposal_of(change, row)
        if proposal is None:
            self.message_user(
                request, gettext("There is nothing to undo: the earlier values are in effect, or were not stored.")
            )
            return redirect("admin:portal_change_change", pk)
        return redirect("admin:portal_change_step", proposals.keep(request.session, proposal))


@admin.register(SignedEntry)
class SignedEntryAdmin(ReadOnlyAdmin):
    """The append-only log of releases, keys and project addresses, and its export."""

    list_display = ("number", "at", "kind", "who", "told")
    list_display_links = ("number",)
    list_filter = ("kind", "at")
    fields = ("number", "at", "kind", "who", "signed")
    list_before_template = "portal/audit/signed_log.html"
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[SignedEntry]:
        entries: QuerySet[SignedEntry] = super().get_queryset(request)
        return entries.annotate(person_name=User.objects.filter(pk=OuterRef("person")).values("name")[:1])

    @admin.display(description=_("by"))
    def who(self, entry: Any) -> str:
        if not entry.person:
            return gettext("a command")
        return gettext("%(person)s (number %(number)s)") % {
            "person": entry.person_name or "–",
            "number": entry.person,
        }

    @admin.display(description=_("content"))
    def told(self, entry: SignedEntry) -> str:
        return signed_log.summary(entry)

    @admin.display(description=_("as it is signed and exported"))
    def signed(self, entry: SignedEntry) -> str:
        text = json.dumps(signed_log.exported(entry), ensure_ascii=False, indent=1)
        return format_html('<pre class="whitespace-pre-wrap break-all">{}</pre>', text)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("export.jsonl", view(require_safe(self.export)), name="signed_log_export"),
            *super().get_urls(),
        ]

    def export(self, request: HttpRequest) -> HttpResponseBase:
        """The log as lines of JSON."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        headers = {"Content-Disposition": 'attachment; filename="signed_log.jsonl"'}
        return StreamingHttpResponse(signed_log.export(), content_type="application/jsonl", headers=headers)


def _row_url(change: Change) -> str:
    kind = change.content_type
    try:
        return reverse(f"admin:{kind.app_label}_{kind.model}_change", args=[change.object_pk])
    except NoReverseMatch:
        return ""


@admin.register(SiteText)
class SiteTextAdmin(AuditedAdmin):
    """The texts of /about/, /privacy/ and /terms/; without a row, a page has the text that comes with the software."""

    list_display = ("page", "changed_at")
    fields = ("page", "text")
