"""Admin pages of previews: past ones, and each one's result."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import Preview
from credit.previews.reads import page_of
from portal.admin import ReadOnlyAdmin


class PreviewAdmin(ReadOnlyAdmin):
    """List previews, which are requested where a setting is changed."""

    list_display = ("shown", "app_version", "asked_by", "asked_at", "finished_at")
    list_display_links = None
    list_filter = ("app",)
    list_select_related = ("app", "app_version__app", "app_version__platform", "asked_by")

    @admin.display(description=_("app"))
    def shown(self, preview: Preview) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("admin:credit_preview", args=[preview.pk]), preview.app)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.result_view)
        return [path("<int:pk>/result/", view, name="credit_preview"), *super().get_urls()]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return redirect("admin:credit_preview", object_id)

    def result_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the result, or the progress; htmx polls the part below the heading."""
        preview = get_object_or_404(Preview.objects.select_related("app", "asked_by"), pk=pk)
        if not (self.has_view_permission(request, preview) or request.user.has_perm("credit.change_app")):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Preview for %(app)s") % {"app": preview.app},
            **page_of(preview, timezone.now()),
        }
        part = "_preview.html" if request.headers.get("HX-Request") else "preview.html"
        return TemplateResponse(request, f"credit/previews/{part}", context)
