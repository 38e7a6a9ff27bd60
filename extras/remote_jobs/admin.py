"""Operators' page of templates of apps."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin

from extras.remote_jobs.models import JobTemplate
from extras.remote_jobs.wire import job_templates
from extras.remote_jobs.wire.xml_tree import XmlError
from portal.audit.admin import AuditedAdmin, AuditedForm


class JobTemplateForm(AuditedForm):
    """A template that parses; otherwise the element and the line are named."""

    class Meta:
        model = JobTemplate
        fields = ("app", "kind", "name", "text")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        read: Any = (
            job_templates.read_input if cleaned.get("kind") == JobTemplate.Kind.INPUT else job_templates.read_output
        )
        try:
            read(cleaned.get("text", ""))
        except XmlError as error:
            raise forms.ValidationError({"text": str(error)}) from error
        return cleaned


@admin.register(JobTemplate)
class JobTemplateAdmin(AuditedAdmin):
    """Templates by app and name."""

    form = JobTemplateForm
    list_display = ("name", "app", "kind")
    list_filter = ("app", "kind")
