"""Operators' pages of validated credit: apps and versions with their settings; what the site itself keeps, to read."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.module_loading import import_string
from unfold.admin import ModelAdmin

from credit.models import (
    App,
    AppVersion,
    Batch,
    Comparison,
    CreditSystem,
    HostAppVersion,
    Platform,
    Result,
    Workunit,
)
from portal.admin import ReadOnlyAdmin

FUNCTION_FIELDS = ("comparison_function", "assimilation_function", "trickle_function")


class AppForm(forms.ModelForm):  # type: ignore[type-arg]  # generic for the type checker only
    """An app's settings; what belongs together is checked together."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for field in FUNCTION_FIELDS:
            self._check_function(field, cleaned.get(field) or "")
        if cleaned.get("comparison") == Comparison.CUSTOM and not cleaned.get("comparison_function"):
            self.add_error("comparison_function", "Name the function that compares outputs, or choose another way.")
        amounts = (cleaned.get("fixed_credit"), cleaned.get("fixed_credit_per_flop"))
        if cleaned.get("credit_system") == CreditSystem.FIXED and amounts == (None, None):
            self.add_error("fixed_credit", "A fixed amount has to be given: per job, or per FLOP estimated.")
        return cleaned

    def _check_function(self, field: str, path: str) -> None:
        if not path:
            return
        try:
            function = import_string(path)
        except ImportError as error:
            self.add_error(field, ValidationError(f"There is no such function on this server: {error}"))
            return
        if not callable(function):
            self.add_error(field, "This names something that cannot be called.")


@admin.register(App)
class AppAdmin(ModelAdmin):
    form = AppForm
    list_display = ("name", "user_friendly_name", "credit_system", "rule_set", "host_scale_check", "is_deprecated")
    list_filter = ("is_deprecated", "credit_system", "rule_set")
    search_fields = ("name", "user_friendly_name")
    readonly_fields = ("min_avg_pfc", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "user_friendly_name", "description", "weight", "is_deprecated")}),
        (
            "Credit",
            {
                "fields": (
                    "credit_system",
                    "rule_set",
                    "host_scale_check",
                    "max_granted_credit",
                    "version_average",
                    "min_avg_pfc",
                ),
                "description": "How claims are made and granted. The least average of normalised PFC is kept by the "
                "feeder: it prices jobs whose own claim cannot be used.",
            },
        ),
        (
            "Other credit systems",
            {
                "classes": ("collapse",),
                "fields": (
                    "replica_rule",
                    "actual_flops_scale",
                    "benchmark_scale",
                    "fixed_credit",
                    "fixed_credit_per_flop",
                ),
                "description": "Only for apps that are not credited by CreditNew.",
            },
        ),
        (
            "Limits of the rules",
            {
                "classes": ("collapse",),
                "fields": (
                    "host_avg_samples",
                    "host_avg_weight",
                    "host_avg_limit",
                    "version_avg_samples",
                    "version_avg_weight",
                    "version_avg_limit",
                    "min_host_samples",
                    "min_version_samples",
                    "max_host_scale",
                ),
                "description": "Averages take N samples evenly, then each later one with weight A; a sample counts at "
                "most X times the average.",
            },
        ),
        (
            "Jobs",
            {
                "fields": (
                    "max_jobs_per_day_init",
                    "adaptive_replication",
                    "one_result_per_user",
                    "is_non_cpu_intensive",
                )
            },
        ),
        (
            "Outputs",
            {
                "fields": (
                    "comparison",
                    "comparison_tolerance",
                    "comparison_absolute_tolerance",
                    "comparison_function",
                    "assimilation_function",
                    "trickle_function",
                )
            },
        ),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Its tasks are volunteers' history: tick "no more jobs" instead.
        return False


@admin.register(Platform)
class PlatformAdmin(ModelAdmin):
    list_display = ("name", "user_friendly_name", "is_deprecated")
    search_fields = ("name",)


@admin.register(AppVersion)
class AppVersionAdmin(ModelAdmin):
    """Versions are released by a command; here they are withdrawn, and their needs corrected."""

    list_display = ("__str__", "processor_type", "is_deprecated", "pfc_n", "pfc_avg", "pfc_scale", "expavg_credit")
    list_filter = ("app", "processor_type", "is_deprecated")
    list_select_related = ("app", "platform")
    readonly_fields = (
        "app",
        "platform",
        "version_num",
        "plan_class",
        "processor_type",
        "pfc_n",
        "pfc_avg",
        "pfc_scale",
        "expavg_credit",
        "expavg_at",
        "created_at",
    )
    fieldsets = (
        (None, {"fields": ("app", "platform", "version_num", "plan_class", "processor_type", "is_deprecated")}),
        ("What it uses", {"fields": ("avg_ncpus", "gpu_usage", "min_gpu_ram_bytes")}),
        (
            "Credit",
            {
                "fields": ("cross_project_scale", "pfc_n", "pfc_avg", "pfc_scale", "expavg_credit", "expavg_at"),
                "description": "Samples and average come from the validators, the factor from the feeder.",
            },
        ),
        (None, {"fields": ("created_at",)}),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(HostAppVersion)
class HostAppVersionAdmin(ReadOnlyAdmin):
    list_display = ("host", "app", "app_version", "processor_type", "pfc_n", "pfc_avg", "error_rate", "scale_probation")
    list_filter = ("app", "scale_probation")
    list_select_related = ("host", "app", "app_version__app", "app_version__platform")
    show_full_result_count = False


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    list_display = ("name", "app", "owner", "nworkunits", "created_at", "cancelled_at")
    list_filter = ("app",)
    list_select_related = ("app", "owner")
    search_fields = ("name",)


@admin.register(Workunit)
class WorkunitAdmin(ReadOnlyAdmin):
    list_display = ("name", "app", "created_at", "need_validate", "canonical_credit", "error_mask", "assimilate_state")
    list_filter = ("app", "assimilate_state")
    list_select_related = ("app",)
    search_fields = ("=name",)
    show_full_result_count = False


@admin.register(Result)
class ResultAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "app",
        "server_state",
        "outcome",
        "validate_state",
        "host",
        "claimed_credit",
        "granted_credit",
    )
    list_filter = ("app", "server_state", "outcome", "validate_state")
    list_select_related = ("app", "host")
    search_fields = ("=name",)
    show_full_result_count = False
