"""The operators' list of imports: each project's progress, and "Read now"."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from kombu.exceptions import OperationalError

from accounting.models import StatisticsImport
from accounting.statistics import run
from portal.admin.base import column
from portal.audit.admin import AuditedAdmin, AuditedForm
from portal.celery import app
from portal.languages.sentences import sentence
from portal.templatetags.display import count

TASK = "accounting.tasks.import_statistics_of"


def _share(kept: int, read: int) -> str:
    return gettext("%(number)s of %(all)s") % {"number": count(kept), "all": count(read)}


class ImportForm(AuditedForm):
    class Meta:
        model = StatisticsImport
        fields = ("project", "is_on", "url", "account_email")


class StatisticsImportAdmin(AuditedAdmin):
    """Each project's last export, any obstacle, and its address."""

    form = ImportForm
    shown_trouble = column("trouble", _("problem"), sentence)
    list_display = ("project", "shown_trouble", "update_time", "computers", "accounts", "odd", "credit", "is_on")
    list_filter = ("is_on", ("trouble", admin.EmptyFieldListFilter))
    list_select_related = ("project",)
    readonly_fields = (
        "folder", "update_time", "first_update_time", "imported_at", "computers", "accounts", "odd", "odd_ours",
        "credit", "asked_at", "next_at", "shown_trouble", "trouble_since", "failures",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("project", "is_on", "url", "account_email")}),
        (_("Last export read"), {"fields": readonly_fields[:9]}),
        (_("Attempts"), {"fields": readonly_fields[9:]}),
    )
    actions = ("read_now",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return ("project", *fields) if obj is not None else fields

    def save_settings(self, request: HttpRequest, obj: StatisticsImport, form: Any, change: bool) -> None:
        # An import may be writing the other columns.
        obj.save(update_fields=("is_on", "url", "account_email") if change else None)

    @admin.display(description=_("address"))
    def folder(self, row: StatisticsImport) -> str:
        return gettext("this site") if run.is_own(row, row.project) else run.url_of(row, row.project)

    @admin.display(description=_("our computers"))
    def computers(self, row: StatisticsImport) -> str:
        return _share(row.hosts_kept, row.hosts_read)

    @admin.display(description=_("our accounts"))
    def accounts(self, row: StatisticsImport) -> str:
        return _share(row.users_kept, row.users_read)

    @admin.display(description=_("odd records"))
    def odd(self, row: StatisticsImport) -> str:
        return count(row.hosts_odd + row.users_odd)

    @admin.display(description=_("last granted"), ordering="granted")
    def credit(self, row: StatisticsImport) -> str:
        return gettext("%(credit)s credits") % {"credit": count(round(row.granted / 1e6))}

    @admin.action(description=_("Read now"), permissions=["change"])
    def read_now(self, request: HttpRequest, queryset: QuerySet[StatisticsImport]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        queryset.update(next_at=timezone.now())
        try:
            for pk in ids:
                app.send_task(TASK, [pk], {"at_once": True}, retry=False)
        except OperationalError:
            words = gettext("Valkey cannot be reached. The statistics will be read within five minutes of its return.")
            self.message_user(request, words, messages.WARNING)
        else:
            self.message_user(
                request, gettext("Projects whose statistics are being read: %(number)s.") % {"number": len(ids)}
            )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # It would be created again. Imports are stopped by switching them off.
        return False
