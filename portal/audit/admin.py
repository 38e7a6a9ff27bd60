"""Operators' pages of changes: forms that refuse to overwrite another's change, and the history of a row."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import connection
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from unfold.admin import ModelAdmin

from portal.audit import proposals, signed_log
from portal.audit.proposals import Proposal
from portal.audit.steps import forecast_of
from portal.audit.values import in_words, lines_of, stored
from portal.models import Change

CHANGES_PER_PAGE = 50


class SeenField(forms.CharField):
    """Carries the values from when the form was made; not a setting itself."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class AuditedForm(forms.ModelForm):
    """A form that is refused if somebody else changed the row since it was shown."""

    seen = SeenField(required=False, label="")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.initial["seen"] = json.dumps(self._present())

    def _columns(self) -> list[Any]:
        return [field for field in self.instance._meta.concrete_fields if field.editable and field.name in self.fields]

    def _present(self) -> dict[str, Any]:
        return {field.name: stored(self.instance, field.name) for field in self._columns()}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        seen = _parsed(cleaned.pop("seen", ""))
        if self.instance.pk is None or not seen:
            return cleaned
        present = self._present()
        for field in self._columns():
            name = field.name
            if name in seen and seen[name] != present[name]:
                was, is_ = in_words(field, seen[name]), in_words(field, present[name])
                self.add_error(
                    None,
                    ValidationError(
                        gettext(
                            "Not saved: somebody changed “%(setting)s” from %(before)s to %(now)s since you opened "
                            "this page. Open it again to see the current settings, and make your change there."
                        )
                        % {"setting": field.verbose_name, "before": was, "now": is_}
                    ),
                )
        return cleaned


def _parsed(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


class AuditedAdmin(ModelAdmin):
    """Settings whose changes are recorded. For those with a forecast, "Save" leads to the step before the change."""

    form = AuditedForm

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fieldsets = [(name, dict(options)) for name, options in super().get_fieldsets(request, obj)]
        first = fieldsets[0][1]
        fields = tuple(name for name in first["fields"] if name != "seen")
        # A new row's form has nothing to overwrite.
        first["fields"] = (*fields, "seen") if obj is not None else fields
        return fieldsets

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Lock a row that is about to be saved, so that it stays as the form compares it."""
        entry = super().get_object(request, object_id, from_field)
        if entry is not None and request.method == "POST" and connection.in_atomic_block:
            signed_log.lock_for(self.model)
            self.model._default_manager.select_for_update(no_key=True).filter(pk=entry.pk).first()
            entry.refresh_from_db()
        return entry

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        proposal = self._proposal(obj, form) if change else None
        if proposal is None:
            self.save_settings(request, obj, form, change)
        else:
            request.step = proposals.keep(request.session, proposal)  # type: ignore[attr-defined]  # our own attribute

    def save_settings(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save at once, without the step."""
        super().save_model(request, obj, form, change)

    def _proposal(self, obj: Any, form: Any) -> Proposal | None:
        forecast = forecast_of(self.model)
        if forecast is None or not forecast.fields & set(form.changed_data):
            return None
        before = self.model._default_manager.get(pk=obj.pk)
        columns = {field.name for field in self.model._meta.concrete_fields}
        changes = {
            name: [stored(before, name), stored(obj, name)]
            for name in form.changed_data
            if name in columns and stored(before, name) != stored(obj, name)
        }
        return Proposal(model=self.model._meta.label, pk=obj.pk, changes=changes) if changes else None

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if hasattr(request, "step") else super().log_change(request, obj, message)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if step := getattr(request, "step", None):
            return redirect("admin:portal_change_step", step)
        answer: HttpResponse = super().response_change(request, obj)
        return answer

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show all changes of a row, newest first, with their values."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404("no such row")
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        changes = Change.objects.get_for_object(row).select_related("actor", "content_type", "undoes")
        page = Paginator(changes, CHANGES_PER_PAGE).get_page(request.GET.get("p"))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "object": row,
            "title": gettext("Changes of %(row)s") % {"row": row},
            "page": page,
            "entries": [(change, lines_of(change)) for change in page],
            "may_undo": self.has_change_permission(request, row),
        }
        return TemplateResponse(request, "portal/audit/history.html", context | (extra_context or {}))
