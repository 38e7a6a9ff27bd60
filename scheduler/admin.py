"""Admin pages of the project server: plan classes to edit; files, keys, messages and the retry queue to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from credit.models import App, AppVersion, ProcessorType
from portal.admin import ReadOnlyAdmin
from portal.admin.base import column
from portal.audit.admin import AuditedAdmin, AuditedForm
from portal.languages.sentences import sentence
from scheduler.engine.choice.plan_classes import is_pattern
from scheduler.files.store import StoringError, store_file, store_gzipped
from scheduler.lanes.pages import LanePages
from scheduler.lifecycle import invalid_results
from scheduler.models import (
    AppKeyword,
    KeyChange,
    PlanClass,
    ReleaseDraft,
    RetryEntry,
    StoredFile,
    Submitter,
    Trickle,
    TrickleDown,
    WorkBlock,
)
from scheduler.releases.admin import ReleasePages
from scheduler.releases.key_pages import KeyPages
from scheduler.submission.drafts import MAX_UPLOAD_NBYTES

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_GPU_RAM_BYTES = 2**50
PLAN_CLASS_FIELDS: Final[tuple[tuple[StrOrPromise | None, tuple[str, ...]], ...]] = (
    (None, ("name", "processor_type", "avg_ncpus", "max_ncpus", "nthreads_cmdline", "projected_flops_scale")),
    (
        _("Which computers"),
        (
            *("min_ncpus", "cpu_features", "cpu_vendor_pattern", "cpu_model_pattern", "os_pattern"),
            *("min_os_version", "max_os_version", "min_libc_version"),
            *("min_client_version", "max_client_version"),
        ),
    ),
    (
        _("GPUs"),
        (
            *("gpu_usage", "cpu_share", "min_gpu_ram_bytes", "gpu_ram_used_bytes"),
            *("min_driver_version", "max_driver_version", "min_compute_capability", "max_compute_capability"),
            *("min_cuda_version", "max_cuda_version", "needs_opencl", "min_opencl_version", "max_opencl_version"),
            *("needs_double_precision", "min_gpu_peak_flops", "max_gpu_peak_flops", "gpu_model_pattern"),
        ),
    ),
    (
        _("Containers and virtual machines"),
        (
            *("needs_docker", "needs_wsl", "needs_virtualbox", "needs_vm_acceleration"),
            *("min_virtualbox_version", "max_virtualbox_version", "excluded_virtualbox_versions"),
        ),
    ),
)


class PlanClassForm(AuditedForm):
    """Edit a plan class, with checks across fields."""

    class Meta:
        model = PlanClass
        fields = tuple(name for _heading, names in PLAN_CLASS_FIELDS for name in names)
        labels = {
            "needs_opencl": _("Needs OpenCL"),
            "needs_docker": _("Needs Docker"),
            "needs_wsl": _("Needs WSL"),
            "needs_virtualbox": _("Needs VirtualBox"),
            "needs_vm_acceleration": _("Needs VT-x or AMD-V"),
        }
        help_texts = {
            "processor_type": _("The kind of processor that versions of this class use."),
            "avg_ncpus": _("For one job. Determines its peak FLOPS, and therefore its credit."),
            "max_ncpus": _(
                "If more than 1, a job uses all processors that its volunteer lets BOINC use, up to this number."
            ),
            "nthreads_cmdline": _(
                "Starts programs with --nthreads and the number of processors of the job. Programs with BOINC’s "
                "interface can read it there (ncpus)."
            ),
            "min_ncpus": _("Computers with fewer processors do not get these versions."),
            "cpu_features": _("Names as used by BOINC, separated by spaces: sse4_2 avx2."),
            "needs_docker": _("Only computers with Docker or Podman that BOINC may use."),
            "needs_wsl": _("Only computers with Windows Subsystem for Linux that BOINC may use."),
            "min_driver_version": _("As sent by clients: 53504 for NVIDIA’s 535.04. 0 means any, here and below."),
            "max_compute_capability": _("Major × 100 + minor, for example 705. NVIDIA only."),
            "min_cuda_version": _("Major × 1000 + minor × 10: 12020 for 12.2."),
            "min_opencl_version": _("Major × 100 + minor: 102 for 1.2."),
            "gpu_ram_used_bytes": _("A task starts only when this much is free. With 0, computers are not told."),
            "cpu_share": _(
                "From 0 to 1. If above 0, the processors used follow from it and from the computer’s speeds."
            ),
            "min_client_version": _("80204 is 8.2.4; 0 means any."),
            "os_pattern": _(
                "A regular expression for what BOINC reports, with at most three of * + ? and no repeated groups. "
                "Empty means any."
            ),
            "min_os_version": _(
                "For Windows, 1001904500 is 10.0.19045; for macOS, 220600 is Darwin 22.6.0; for Linux, 51500 is kernel "
                "5.15.0. 0 means any."
            ),
            "min_libc_version": _("231 is 2.31. Only Linux reports it; 0 means any or none."),
            "needs_virtualbox": _("Its versions go only to computers whose main platform is theirs."),
            "needs_vm_acceleration": _("Without it, a virtual machine runs slowly and with one processor."),
            "min_virtualbox_version": _("70012 is 7.0.12; 0 means any."),
            "excluded_virtualbox_versions": _("Version numbers like the ones above, separated by spaces."),
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        is_gpu = cleaned.get("processor_type") != ProcessorType.CPU
        if not is_gpu and cleaned.get("gpu_usage"):
            self.add_error("gpu_usage", gettext("A class for CPUs uses no GPU. Enter 0, or choose a type of GPU."))
        if not is_gpu and cleaned.get("avg_ncpus") == 0:
            self.add_error("avg_ncpus", gettext("A CPU job must use more than 0 CPUs, or it could never be sent."))
        if not 0 <= (cleaned.get("min_gpu_ram_bytes") or 0) <= MAX_GPU_RAM_BYTES:
            self.add_error("min_gpu_ram_bytes", gettext("From 0 to %(most)s bytes.") % {"most": MAX_GPU_RAM_BYTES})
        return cleaned

    def clean_os_pattern(self) -> str:
        return self._pattern("os_pattern")

    def clean_cpu_vendor_pattern(self) -> str:
        return self._pattern("cpu_vendor_pattern")

    def clean_cpu_model_pattern(self) -> str:
        return self._pattern("cpu_model_pattern")

    def clean_gpu_model_pattern(self) -> str:
        return self._pattern("gpu_model_pattern")

    def _pattern(self, field: str) -> str:
        pattern: str = self.cleaned_data[field]
        if not is_pattern(pattern):
            raise forms.ValidationError(
                gettext("Use a regular expression with at most three of * + ?, three groups, none repeated, and no {.")
            )
        return pattern

    def clean_processor_type(self) -> str:
        type_: str = self.cleaned_data["processor_type"]
        versions = AppVersion.objects.filter(plan_class=self.instance.name, is_deprecated=False)
        other = versions.exclude(processor_type=type_).first() if self.instance.pk else None
        if other is not None:
            raise forms.ValidationError(
                gettext("%(version)s is for %(type)s. Withdraw it first.")
                % {"version": other, "type": other.get_processor_type_display()}
            )
        return type_


@admin.register(PlanClass)
class PlanClassAdmin(AuditedAdmin):
    """Which computers can run the versions of a plan class; changes take effect within five seconds."""

    form = PlanClassForm
    fieldsets = [(heading, {"fields": names}) for heading, names in PLAN_CLASS_FIELDS]
    list_display = ("name", "processor_type", "avg_ncpus", "max_ncpus", "gpu_usage", "min_ncpus", "cpu_features")
    list_filter = ("processor_type",)
    search_fields = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: PlanClass | None = None) -> tuple[str, ...]:
        # Versions are released for this name, and clients have it.
        return ("name",) if obj is not None and self._is_used(obj) else ()

    def has_delete_permission(self, request: HttpRequest, obj: PlanClass | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not self._is_used(obj))

    def _is_used(self, obj: PlanClass) -> bool:
        return AppVersion.objects.filter(plan_class=obj.name).exists()

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # Deleting many at once does not check whether they are used.
        return {name: action for name, action in super().get_actions(request).items() if name != "delete_selected"}


@admin.register(AppKeyword)
class AppKeywordAdmin(AuditedAdmin):
    """The subjects of apps' jobs.

    Volunteers who said no to one get none of the jobs, and those who said yes get them first.
    """

    list_display = ("app", "keyword")
    list_filter = ("app",)
    list_select_related = ("app",)


class SubmitterForm(AuditedForm):
    """Edit the share and the limits of a submitter of jobs."""

    class Meta:
        model = Submitter
        fields = ("user", "share", "max_priority", "max_jobs", "max_fpops", "app_names")
        help_texts = {
            "share": _(
                "Of an app’s computing time, relative to other submitters who have jobs waiting: a share of 2 gets "
                "twice as much as a share of 1. A change applies to jobs submitted afterwards."
            ),
            "max_priority": _(
                "The highest priority they may give a job. Jobs of a higher priority are sent before all jobs of a "
                "lower one, whoever submitted them."
            ),
            "max_jobs": _("The most jobs they may have unfinished at a time. If empty, there is no limit."),
            "max_fpops": _("The most estimated FLOPs of these jobs, all copies included. If empty, there is no limit."),
            "app_names": _(
                "Short names of the apps they may submit jobs for, separated by spaces. If empty, all apps."
            ),
        }

    def clean_app_names(self) -> str:
        names = self.cleaned_data["app_names"].split()
        missing = sorted(set(names) - set(App.objects.filter(name__in=names).values_list("name", flat=True)))
        if missing:
            raise forms.ValidationError(gettext("There is no app called %(name)s.") % {"name": missing[0]})
        return " ".join(names)


@admin.register(Submitter)
class SubmitterAdmin(AuditedAdmin):
    """Submitters of jobs: their share of the computers, and their limits."""

    form = SubmitterForm
    list_display = ("user", "share", "max_priority", "most_jobs", "most_fpops", "apps")
    list_select_related = ("user",)
    search_fields = ("user__name",)
    fields = SubmitterForm.Meta.fields

    @admin.display(description=_("maximum open jobs"), ordering="max_jobs")
    def most_jobs(self, submitter: Submitter) -> str:
        return gettext("any number") if submitter.max_jobs is None else str(submitter.max_jobs)

    @admin.display(description=_("maximum open FLOPs"), ordering="max_fpops")
    def most_fpops(self, submitter: Submitter) -> str:
        return gettext("any number") if submitter.max_fpops is None else f"{submitter.max_fpops:g}"

    @admin.display(description=_("apps"), ordering="app_names")
    def apps(self, submitter: Submitter) -> str:
        return submitter.app_names or gettext("all")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only the accounts that may submit: a few among thousands."""
        kwargs["queryset"] = ModelBackend().with_perm("credit.add_batch").order_by("name", "pk")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Lock the person, who is the row's key: a change would create another row."""
        return () if obj is None else ("user",)


@admin.register(ReleaseDraft)
class ReleaseDraftAdmin(ReleasePages):
    """Versions of apps: prepare, sign, test, release, withdraw, roll back."""


class WorkBlockForm(AuditedForm):
    """Choose whom to block, and say why."""

    class Meta:
        model = WorkBlock
        fields = ("host", "user", "reason")
        help_texts = {
            "host": _("The number of the computer, as on its page."),
            "user": _("Or the number of the volunteer: then all of their computers."),
        }


@admin.register(WorkBlock)
class WorkBlockAdmin(AuditedAdmin):
    """Computers that get no new jobs, and volunteers none of whose computers do; deleting the block undoes it."""

    form = WorkBlockForm
    list_display = ("__str__", "host", "user", "reason", "created_at")
    list_select_related = ("host", "user")
    search_fields = ("reason", "host__domain_name", "user__name")
    raw_id_fields = ("host", "user")
    fields = WorkBlockForm.Meta.fields

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., HttpResponse] = self.admin_site.admin_view(require_safe(self.invalid_results))
        return [path("invalid-results/", view, name="invalid_results"), *super().get_urls()]

    def invalid_results(self, request: HttpRequest) -> HttpResponse:
        """Show which versions and computers return invalid results."""
        if not request.user.has_perm("credit.view_result"):
            raise PermissionDenied
        now = timezone.now()
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Invalid results"),
            "parts": [
                (gettext("By version"), invalid_results.by_version(now), False),
                (gettext("By computer and version"), invalid_results.by_host(now), True),
            ],
            "days": invalid_results.DAYS,
            "may_block": self.has_add_permission(request),
        }
        return TemplateResponse(request, "scheduler/admin/invalid_results.html", context)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Allow changes of the reason only; blocking somebody else is a new block."""
        return () if obj is None else ("host", "user")


@admin.register(RetryEntry)
class RetryEntryAdmin(LanePages):
    """Workunits that made a background step fail: why, and when they are retried."""

    list_display = ("workunit", "step", "fault", "ntries", "since", "retry_at")
    list_filter = ("step", "workunit__app")
    list_select_related = ("workunit",)
    search_fields = ("=workunit__name", "fault")
    show_full_result_count = False
    actions = ("try_now",)

    @admin.action(description=_("Try again in the next pass"), permissions=["retry"])
    def try_now(self, request: HttpRequest, queryset: QuerySet[RetryEntry]) -> None:
        count = queryset.update(retry_at=timezone.now())
        self.message_user(request, gettext("Workunits tried again now: %(number)s.") % {"number": count})

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduler.change_retryentry")


class InputFileForm(forms.ModelForm):
    """Add an input file that many jobs share, like the command store_file."""

    stored_name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=200,
        help_text=_("The name that jobs use. If empty, the name of the file. A changed file needs a new name."),
        widget=UnfoldAdminTextInputWidget,
    )
    file = forms.FileField(label=_("File"), help_text=_("At most 60 MiB."), widget=UnfoldAdminFileFieldWidget)
    is_gzipped = forms.BooleanField(
        label=_("Packed, too"),
        required=False,
        help_text=_("Stores it packed by gzip as well, as NAME.gz, for jobs that say so."),
        widget=UnfoldBooleanWidget,
    )

    class Meta:
        model = StoredFile
        fields = ()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        file = cleaned.get("file")
        if file is None:
            return cleaned
        if file.size > MAX_UPLOAD_NBYTES:
            self.add_error(
                "file",
                gettext("%(size)s bytes; the limit is %(most)s. The command accepts larger files.")
                % {"size": file.size, "most": MAX_UPLOAD_NBYTES},
            )
            return cleaned
        try:
            self.stored = store_file(cleaned.get("stored_name") or file.name, file)
            if cleaned.get("is_gzipped"):
                store_gzipped(self.stored.name, file)
        except StoringError as error:
            self.add_error("stored_name", str(error))
        return cleaned


@admin.register(StoredFile)
class StoredFileAdmin(ReadOnlyAdmin):
    """Programs and inputs that clients download. Inputs that many jobs share can be added here."""

    list_display = ("name", "nbytes", "md5", "is_executable", "batch", "created_at", "deleted_at")
    list_filter = ("is_executable",)
    list_select_related = ("batch",)
    search_fields = ("name",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduler.add_storedfile")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **kwargs) if obj else InputFileForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return (
            super().get_fieldsets(request, obj) if obj else ((None, {"fields": ("stored_name", "file", "is_gzipped")}),)
        )

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> StoredFile:
        stored: StoredFile = form.stored
        return stored

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Do nothing: the file is stored when its form is checked, because its name may have been used before."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: there is nothing else to save."""


@admin.register(Trickle)
class TrickleAdmin(ReadOnlyAdmin):
    """Messages of running jobs. Those with a fault could not be used, or the app's function failed."""

    shown_fault = column("fault", _("reason for the failure"), sentence)
    list_display = ("result", "variety", "received_at", "handled_at", "shown_fault")
    list_filter = (("fault", admin.EmptyFieldListFilter), ("handled_at", admin.EmptyFieldListFilter))
    list_select_related = ("result",)
    search_fields = ("=result__name",)
    show_full_result_count = False
    fields = ("host", "user", "result", "variety", "text", "written_at", "received_at", "handled_at", "shown_fault")


@admin.register(TrickleDown)
class TrickleDownAdmin(ReadOnlyAdmin):
    """Messages to running jobs; unacknowledged ones are sent with each reply."""

    list_display = ("result", "created_at", "told_deadline_at", "acknowledged_at")
    list_filter = (("acknowledged_at", admin.EmptyFieldListFilter),)
    list_select_related = ("result",)
    search_fields = ("=result__name",)
    show_full_result_count = False
    fields = ("result", "text", "created_at", "told_deadline_at", "acknowledged_at")


@admin.register(KeyChange)
class KeyChangeAdmin(KeyPages):
    """Changes of the code-signing key, and a new one."""
