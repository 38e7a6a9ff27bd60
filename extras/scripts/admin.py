"""Operators' page of scripts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextareaWidget

from extras.scripts import storing
from extras.scripts.models import Script
from portal.audit import two_persons
from portal.audit.admin import AuditedAdmin, AuditedForm
from portal.people.access import signed_in
from portal.people.fresh_login import FreshLogin

_CODE = {"rows": 20, "spellcheck": "false", "style": "font-family: monospace", "class": "w-full"}


class ScriptForm(AuditedForm):
    """A script that can be run."""

    class Meta:
        model = Script
        fields = ("name", "kind", "protocol", "source", "words", "check_source", "check_words")
        widgets = {
            "source": UnfoldAdminTextareaWidget(attrs=_CODE),
            "check_source": UnfoldAdminTextareaWidget(attrs=_CODE),
        }


@admin.register(Script)
class ScriptAdmin(AuditedAdmin):
    """Scripts; an app names one under “Outputs”."""

    form = ScriptForm
    # It allows running any program on the server.
    fresh_login = FreshLogin(keeps_form=True)
    list_display = ("name", "kind", "protocol", "last_fault", "failed_at", "rests_until")
    list_filter = ("kind",)
    search_fields = ("name",)
    fieldsets = (
        (None, {"fields": ("name", "kind", "protocol", "source")}),
        (
            _("Arguments and exit codes"),
            {"classes": ("collapse",), "fields": ("words", "check_source", "check_words")},
        ),
        (_("Limits"), {"fields": ("max_secs", "max_memory_mib")}),
        (_("Last failure"), {"fields": ("last_fault", "failed_at", "rests_until")}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Omit failures of a script that was never called."""
        return self.fieldsets[:-1] if obj is None else self.fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Lock the name: apps refer to it, in the field for its kind."""
        state = ("last_fault", "failed_at", "rests_until")
        return state if obj is None else ("name", "kind", *state)

    def save_settings(self, request: HttpRequest, obj: Script, form: Any, change: bool) -> None:
        try:
            is_stored = storing.save(obj, signed_in(request), timezone.now())
        except two_persons.StepRefused as refusal:
            messages.error(request, str(refusal))
        else:
            if not is_stored:
                text = _(
                    "Another operator has to confirm its program, at “Steps to confirm”. Until then the previous one "
                    "is used; limits take effect at once."
                )
                messages.warning(request, text)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse while an app names it."""
        return super().has_delete_permission(request, obj) and (obj is None or not storing.is_used(obj))
