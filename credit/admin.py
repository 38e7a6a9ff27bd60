"""Admin pages for validated credit: editable apps and versions, and read-only records."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget

from credit import functions
from credit.changes import reset
from credit.export.admin import StatisticsExportAdmin
from credit.models import (
    App,
    AppVersion,
    Batch,
    Comparison,
    ConfirmingPair,
    CreditSystem,
    HostAppVersion,
    Platform,
    Preview,
    ProcessorType,
    Result,
    StatisticsExport,
    Workunit,
)
from credit.models.versions import MAX_GPU_RAM_BYTES
from credit.previews.admin import PreviewAdmin
from credit.statistics.builds import build_speeds
from portal.admin import ReadOnlyAdmin
from portal.admin.base import column
from portal.audit import proposals
from portal.audit.admin import AuditedAdmin, AuditedForm
from portal.templatetags.display import significant

VERSION_STATISTICS = ("pfc_n", "average", "factor", "credit", "ngranted", "daily", "as_of")


class SettingsAdmin(AuditedAdmin):
    """Base for models that mix operators' settings with state that the site maintains."""

    def save_settings(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only the changed fields: a validator or the feeder may have updated others since the row was read."""
        if not change:
            super().save_settings(request, obj, form, change)
        elif form.changed_data:
            obj.save(update_fields=form.changed_data)


class AppForm(AuditedForm):
    """Edit an app's settings, with checks across fields."""

    class Meta:
        model = App
        fields = ("credit_system",)  # the admin takes those of its fieldsets

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for kind in functions.FunctionKind:
            if kind in self.fields:
                self.fields[kind] = self._function_field(kind)

    def _function_field(self, kind: functions.FunctionKind) -> forms.ChoiceField:
        """Build a choice field of the registered functions. A stored name that is no longer registered is listed, but
        refused.
        """
        present = getattr(self.instance, kind)
        names = [*functions.registered(kind)]
        choices = [("", gettext("none")), *((name, name) for name in names)]
        if present and present not in names:
            choices.append((present, gettext("%(name)s (not registered)") % {"name": present}))
        before = self.fields[kind]
        return forms.ChoiceField(
            label=before.label,
            help_text=before.help_text,
            required=False,
            choices=choices,
            widget=UnfoldAdminSelectWidget,
        )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for kind in functions.FunctionKind:
            self._check_function(kind, cleaned.get(kind) or "")
        if cleaned.get("comparison") == Comparison.CUSTOM and not cleaned.get("comparison_function"):
            self.add_error(
                "comparison_function",
                gettext("Choose the function that compares outputs, or another way of comparing."),
            )
        amounts = (cleaned.get("fixed_credit"), cleaned.get("fixed_credit_per_flop"))
        if cleaned.get("credit_system") == CreditSystem.FIXED and amounts == (None, None):
            self.add_error("fixed_credit", gettext("Enter a fixed amount per job or per estimated FLOP."))
        if cleaned.get("credit_system") == CreditSystem.RUN_TIME and cleaned.get("max_credited_secs") is None:
            self.add_error("max_credited_secs", gettext("Enter the longest run time that is credited."))
        if cleaned.get("credit_system") == CreditSystem.ASSIGNED and cleaned.get("comparison") != Comparison.CUSTOM:
            self.add_error(
                "comparison", gettext("Only a function can assign credit. Choose one that compares outputs.")
            )
        return cleaned

    def _check_function(self, kind: functions.FunctionKind, name: str) -> None:
        if not name:
            return
        try:
            functions.load(kind, name)
        except Exception as error:
            # Importing a project's module may raise anything.
            self.add_error(kind, ValidationError(gettext("This cannot be used: %(reason)s") % {"reason": error}))


class VersionForm(AuditedForm):
    """Edit the correctable fields of a version. The processor type is not one of them, but GPU usage must match it."""

    class Meta:
        model = AppVersion
        fields = ("is_deprecated", "avg_ncpus", "gpu_usage", "min_gpu_ram_bytes", "cross_project_scale")

    def clean_gpu_usage(self) -> float:
        usage: float = self.cleaned_data["gpu_usage"]
        is_gpu = self.instance.processor_type != ProcessorType.CPU
        if is_gpu and not usage:
            raise ValidationError(gettext("A GPU version must use more than 0 GPUs."))
        if usage and not is_gpu:
            raise ValidationError(gettext("A CPU version uses no GPU. Enter 0."))
        return usage

    def clean_avg_ncpus(self) -> float:
        ncpus: float = self.cleaned_data["avg_ncpus"]
        if not ncpus and self.instance.processor_type == ProcessorType.CPU:
            raise ValidationError(gettext("A CPU version must use more than 0 CPUs, or it could never be sent."))
        return ncpus

    def clean_min_gpu_ram_bytes(self) -> int:
        nbytes: int = self.cleaned_data["min_gpu_ram_bytes"]
        if not 0 <= nbytes <= MAX_GPU_RAM_BYTES:
            raise ValidationError(gettext("From 0 to %(most)s bytes.") % {"most": MAX_GPU_RAM_BYTES})
        return nbytes


@admin.register(App)
class AppAdmin(SettingsAdmin):
    form = AppForm
    list_display = (
        "name",
        "user_friendly_name",
        "credit_system",
        "rule_set",
        "host_scale_check",
        "paused",
        "is_deprecated",
    )
    list_filter = ("is_deprecated", "credit_system", "rule_set")
    search_fields = ("name", "user_friendly_name")
    least_average = column("min_avg_pfc", _("lowest average PFC"), significant)
    readonly_fields = ("least_average", "size_census", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "user_friendly_name", "description", "weight", "is_deprecated")}),
        (
            _("Credit"),
            {
                "fields": (
                    "credit_system",
                    "rule_set",
                    "host_scale_check",
                    "max_granted_credit",
                    "version_average",
                    "least_average",
                ),
                "description": _(
                    "How claims are made and granted. The feeder maintains the lowest average of normalised PFC. It is "
                    "used for jobs whose own claim cannot be used."
                ),
            },
        ),
        (
            _("Other credit systems"),
            {
                "classes": ("collapse",),
                "fields": (
                    "replica_rule",
                    "actual_flops_scale",
                    "benchmark_scale",
                    "fixed_credit",
                    "fixed_credit_per_flop",
                    "max_credited_secs",
                ),
                "description": _("Only for apps that do not use CreditNew."),
            },
        ),
        (
            _("Limits of the rules"),
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
                "description": _(
                    "The first N samples count equally, and each later one has weight A. A sample counts at most X "
                    "times the average."
                ),
            },
        ),
        (
            _("Jobs"),
            {
                "fields": (
                    "max_jobs_per_day_init",
                    "max_jobs_in_progress",
                    "max_gpu_jobs_in_progress",
                    "max_jobs_per_rpc",
                    "deadline_extension_secs",
                    "max_extended_secs",
                    "adaptive_replication",
                    "min_replication_chance",
                    "one_result_per_user",
                    "homogeneous_redundancy",
                    "homogeneous_app_version",
                    "reliable_turnaround_secs",
                    "n_size_classes",
                    "size_census",
                    "is_beta",
                    "is_non_cpu_intensive",
                )
            },
        ),
        (
            _("Outputs"),
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

    @admin.display(description=_("speeds of the size classes"))
    def size_census(self, app: App) -> str:
        """List the speeds at which the size classes begin, as of the last census."""
        if not app.size_limits:
            return gettext("not known yet: until more computers have been measured, all are in class 0")
        begins = [f"{limit / 1e9:.3g}" for limit in app.size_limits]
        text = gettext("classes 1, 2 … begin at %(speeds)s GFLOPS; computers counted: %(number)s")
        return text % {"speeds": ", ".join(begins), "number": sum(app.size_nhosts)}

    @admin.display(description=_("paused"), boolean=True)
    def paused(self, app: App) -> bool:
        return app.is_paused

    def view_on_site(self, obj: App) -> str:
        # Not the name that was just typed, as it may be invalid.
        return reverse("app", args=[App.objects.values_list("name", flat=True).get(pk=obj.pk)])

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Its tasks are volunteers' history: tick "no more jobs" instead.
        return False


@admin.register(Platform)
class PlatformAdmin(AuditedAdmin):
    list_display = ("name", "user_friendly_name", "is_deprecated")
    search_fields = ("name",)


@admin.register(AppVersion)
class AppVersionAdmin(SettingsAdmin):
    """List versions, which a command releases, so that they can be withdrawn and their requirements corrected."""

    form = VersionForm
    average = column("pfc_avg", _("average"), significant)
    factor = column("pfc_scale", _("factor"), significant)
    credit = column("total_credit", _("total credit"), significant)
    daily = column("expavg_credit", _("credit per day"), significant)
    list_display = (
        "__str__",
        "processor_type",
        "is_deprecated",
        "pfc_n",
        "average",
        "factor",
        "daily",
        "credit",
    )
    list_filter = ("app", "processor_type", "is_deprecated")
    list_select_related = ("app", "platform")
    readonly_fields = (
        "app",
        "platform",
        "version_num",
        "plan_class",
        "processor_type",
        "api_version",
        "cmdline",
        "is_wrapper",
        "needs_network",
        "dont_throttle",
        "file_prefix",
        *VERSION_STATISTICS,
        "speeds",
        "created_at",
    )
    fieldsets = (
        (None, {"fields": ("app", "platform", "version_num", "plan_class", "processor_type", "is_deprecated")}),
        (_("Resources used"), {"fields": ("avg_ncpus", "gpu_usage", "min_gpu_ram_bytes")}),
        (
            _("Start"),
            {
                "fields": (
                    *("api_version", "cmdline", "is_wrapper", "needs_network", "dont_throttle", "file_prefix"),
                    *("min_client_version", "max_client_version"),
                )
            },
        ),
        (
            _("Credit"),
            {
                "fields": (
                    "cross_project_scale",
                    *VERSION_STATISTICS,
                ),
                "description": _(
                    "Samples, the average of PFC divided by the estimated FLOPs, credit and the number of results "
                    "granted come from validators; the factor comes from the feeder. Credit per day is the recent "
                    "average, with a half-life of seven days, as of the last grant."
                ),
            },
        ),
        (
            _("Speed by hardware"),
            {
                "fields": ("speeds",),
                "description": _(
                    "This version and the others of its app, platform and type of processor that are sent, by the run "
                    "times that computers reported. Speed is the estimated FLOPs done in a second; spread is the "
                    "standard deviation among jobs and computers. The fastest version is sent most, the others are "
                    "tried now and then."
                ),
            },
        ),
        (None, {"fields": ("created_at",)}),
    )

    class Media:
        css = {"all": ("credit/preview.css",)}

    actions_detail = ("reset_statistics",)

    @action(description=_("Reset statistics"), permissions=["change"], icon="restart_alt")
    def reset_statistics(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Redirect to the confirmation step."""
        version = get_object_or_404(AppVersion, pk=object_id)
        return redirect("admin:portal_change_step", proposals.keep(request.session, reset.proposal(version)))

    @admin.display(description=_("speed by hardware"))
    def speeds(self, version: AppVersion) -> str:
        return render_to_string("credit/_build_speeds.html", {"speeds": build_speeds(version)})

    @admin.display(description=_("as of"), ordering="expavg_at")
    def as_of(self, version: AppVersion) -> str:
        return date_format(version.expavg_at, "DATETIME_FORMAT") if version.expavg_at else "–"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(HostAppVersion)
class HostAppVersionAdmin(ReadOnlyAdmin):
    samples = column("pfc_n", _("samples"), significant)
    average = column("pfc_avg", _("average"), significant)
    errors = column("error_rate", _("error rate"), significant)
    list_display = (
        "host",
        "app",
        "app_version",
        "processor_type",
        "samples",
        "average",
        "errors",
        "scale_probation",
    )
    list_filter = ("app", "scale_probation")
    list_select_related = ("host", "app", "app_version__app", "app_version__platform")
    show_full_result_count = False


@admin.register(ConfirmingPair)
class ConfirmingPairAdmin(ReadOnlyAdmin):
    """List pairs of volunteers whose results confirm each other more often than chance allows; updated every hour."""

    by_chance = column("expected", _("by chance"), significant)
    list_display = ("one", "other", "app", "together", "by_chance", "odds", "needs_another", "counted_at")
    list_filter = ("app", "needs_another")
    list_select_related = ("app", "one", "other")

    @admin.display(description=_("odds that any pair has as many"), ordering="chance")
    def odds(self, pair: ConfirmingPair) -> str:
        return _("1 in %(number)s") % {"number": f"{1 / pair.chance:.2g}"}


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    list_display = ("name", "app", "owner", "nworkunits", "created_at", "cancelled_at")
    list_filter = ("app",)
    list_select_related = ("app", "owner")
    search_fields = ("name",)


@admin.register(Workunit)
class WorkunitAdmin(ReadOnlyAdmin):
    credit = column("canonical_credit", _("credit"), significant)
    list_display = ("name", "app", "created_at", "need_validate", "credit", "error_mask", "assimilate_state")
    # Those with a fault wait until an operator repairs what kept them from being checked.
    list_filter = ("app", "assimilate_state", ("validate_fault", admin.EmptyFieldListFilter))
    list_select_related = ("app",)
    search_fields = ("=name",)
    show_full_result_count = False

    def view_on_site(self, obj: Workunit) -> str:
        return reverse("workunit", args=[obj.pk])


@admin.register(Result)
class ResultAdmin(ReadOnlyAdmin):
    """Show a result's columns; its page on the site explains its credit."""

    claimed = column("claimed_credit", _("claimed credit"), significant)
    granted = column("granted_credit", _("granted credit"), significant)
    list_display = (
        "name",
        "app",
        "server_state",
        "outcome",
        "validate_state",
        "host",
        "claimed",
        "granted",
    )
    list_filter = ("app", "server_state", "outcome", "validate_state")
    list_select_related = ("app", "host")
    search_fields = ("=name",)
    show_full_result_count = False

    def view_on_site(self, obj: Result) -> str:
        return reverse("task", args=[obj.pk])


admin.site.register(Preview, PreviewAdmin)
admin.site.register(StatisticsExport, StatisticsExportAdmin)
