"""Steps that wait for a second person: what each would do, and “Confirm” and “Refuse”."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from portal.admin.base import ReadOnlyAdmin
from portal.audit import two_persons
from portal.models import ConfirmationRequest
from portal.people.access import signed_in
from portal.people.fresh_login import needs_fresh_login


@admin.register(ConfirmationRequest)
class ConfirmationRequestAdmin(ReadOnlyAdmin):
    """Steps that one operator asked for and another one has to confirm."""

    list_display = ("subject", "step", "asked_by", "asked_at", "decision", "decided_by", "decided_at")
    list_filter = ("is_confirmed",)
    list_select_related = ("asked_by", "decided_by")
    fields = list_display

    @admin.display(description=_("step"), ordering="kind")
    def step(self, row: ConfirmationRequest) -> str:
        kind = two_persons.kind_named(row.kind)
        return str(kind.title) if kind is not None else row.kind

    @admin.display(description=_("decision"), ordering="is_confirmed")
    def decision(self, row: ConfirmationRequest) -> str:
        if row.is_confirmed is None:
            return gettext("waits")
        return gettext("confirmed") if row.is_confirmed else gettext("refused")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        decide = view(require_POST(self.decide))
        return [path("<int:pk>/decide/", decide, name="confirmation_decide"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a step and what it would change."""
        if not object_id.isdecimal():
            raise Http404("no such step")
        row = get_object_or_404(ConfirmationRequest.objects.select_related("asked_by", "decided_by"), pk=object_id)
        if not self.has_view_permission(request, row) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        person, kind = signed_in(request), two_persons.kind_named(row.kind)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": row.subject,
            "row": row,
            "step": self.step(row),
            "lines": kind.lines(row.payload) if kind is not None else [],
            "is_open": row.is_confirmed is None,
            "is_own": row.asked_by == person,
            "may_decide": two_persons.may_decide(person, row.kind),
        }
        return TemplateResponse(request, "portal/audit/confirmation.html", context)

    @needs_fresh_login()
    def decide(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Confirm or refuse a step."""
        row = get_object_or_404(ConfirmationRequest, pk=pk)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        act = two_persons.confirm if "confirm" in request.POST else two_persons.refuse
        try:
            decided = act(pk, signed_in(request), timezone.now())
        except two_persons.StepRefused as refusal:
            messages.error(request, str(refusal))
        else:
            message = (
                gettext("Confirmed and done.") if decided.is_confirmed else gettext("Refused: nothing was changed.")
            )
            messages.success(request, message)
        return redirect("admin:portal_confirmationrequest_change", pk)
