"""Operators' pages of the account manager: projects, accounts at them, announcements, and roll-ups."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.widgets import UnfoldAdminPasswordWidget

from accounting.engine import preferences
from accounting.engine.addresses import address_key
from accounting.engine.reconciliation import expected_range
from accounting.models import (
    AccountSettings,
    Announcement,
    HostClient,
    Note,
    Project,
    ProjectAddress,
    ProjectDay,
    ProjectKeyword,
    ProjectProfile,
    ProjectStanding,
    ProjectTrouble,
    ProjectVersion,
    Settlement,
    StatisticsImport,
    TaskSource,
    UserProject,
)
from accounting.news.admin_pages import AnnouncementAdmin
from accounting.project_setup import views as project_setup
from accounting.project_setup.forms import clean_key
from accounting.projects import moves, signing_key
from accounting.projects.addresses import project_at
from accounting.rpc import account_keys, catalogue
from accounting.statistics.admin_pages import StatisticsImportAdmin
from accounting.wire.requests import URLError, canonical_url
from portal.admin import ReadOnlyAdmin
from portal.admin.base import LabelledRows, column
from portal.audit import two_persons
from portal.audit.admin import AuditedAdmin, AuditedForm
from portal.audit.record import record
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.people.access import signed_in
from portal.templatetags.display import credit_text, duration_text, significant
from portal.wire import signing

KEY_DROPPED = _(
    "The address is on another server, so the account key was removed: it was entered for the previous server. Enter "
    "it again if the new server should have it."
)


class AccountKeyAdminForm(AuditedForm):
    """A form with an account key that can be written but never read."""

    new_account_key = forms.CharField(
        label=_("Account key at the project"),
        required=False,
        max_length=255,
        strip=True,
        help_text=_(
            "The authenticator of the account, preferably a weak one (with an underscore). It is stored "
            "encrypted and never "
            "shown again. Leave empty to keep the current one."
        ),
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
    )

    def clean_new_account_key(self) -> str:
        return clean_key(str(self.cleaned_data["new_account_key"]))


class ProjectForm(AccountKeyAdminForm):
    class Meta:
        model = Project
        fields = (
            "name",
            "master_url",
            "path_ignores_case",
            "web_url",
            "summary",
            "description",
            "is_active",
            "down_since",
            "down_reason",
            "default_share",
            "account_mode",
            "url_signature",
            "takes_platforms",
        )

    def clean_master_url(self) -> str:
        url = _attachable(self.cleaned_data["master_url"])
        if self.instance.is_own and url != self.instance.master_url:
            raise ValidationError(gettext("This is the site’s own project: its address follows the setting SITE_URL."))
        if (other := project_at(url)) is not None and other.pk != self.instance.pk:
            raise ValidationError(gettext("This is an address of %(project)s.") % {"project": other})
        return url

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        url = cleaned.get("master_url")
        if url:
            cleaned["url_signature"] = self._signature(url, cleaned.get("url_signature") or "")
        return cleaned

    def _signature(self, url: str, pasted: str) -> str:
        """Return the pasted signature if clients accept it, else a new one if the private key is on this server."""
        try:
            if pasted and signing_key.is_signed(url, pasted):
                return signing.clean_signature(pasted)
        except (signing.SigningError, OSError) as error:
            self.add_error("url_signature", gettext("This is not a signature: %(error)s") % {"error": _reason(error)})
            return pasted
        fresh = signing_key.sign_url(url)
        if fresh is None and pasted:
            self.add_error(
                "url_signature", gettext("This is not a signature of this URL made with the site’s signing key.")
            )
        return fresh or pasted


def _reason(error: signing.SigningError | OSError) -> str:
    return sentence(error.message) if isinstance(error, signing.SigningError) else str(error)


def _attachable(url: str) -> str:
    try:
        return canonical_url(url)
    except URLError as error:
        raise ValidationError(
            gettext("Clients would refuse this: %(error)s.") % {"error": sentence(error.message)}
        ) from error


class ProjectAddressForm(forms.ModelForm):
    class Meta:
        model = ProjectAddress
        fields = ("url", "is_active")

    def clean_url(self) -> str:
        url = _attachable(self.cleaned_data["url"])
        key = address_key(url)
        other = Project.objects.filter(address_key=key).first()
        if other is None:
            same = ProjectAddress.objects.filter(key=key).exclude(pk=self.instance.pk).select_related("project").first()
            other = same.project if same is not None else None
        if other is not None:
            raise ValidationError(gettext("This is an address of %(project)s.") % {"project": other})
        return url


class ProjectAddressForms(forms.BaseInlineFormSet):
    """The addresses that are saved together. Two spellings of one address count as one."""

    def clean(self) -> None:
        super().clean()
        keys = {address_key(self.instance.master_url)}
        for form in self.forms:
            if form.has_changed() and (url := form.cleaned_data.get("url")):
                if address_key(url) in keys:
                    form.add_error("url", gettext("This is an address of %(project)s.") % {"project": self.instance})
                keys.add(address_key(url))


class ProjectAddressInline(LabelledRows):
    model = ProjectAddress
    form = ProjectAddressForm
    formset = ProjectAddressForms
    fields = ("url", "source", "since", "is_active")
    readonly_fields = ("source", "since")
    extra = 0


class ProjectKeywordInline(LabelledRows):
    model = ProjectKeyword
    extra = 0


class ProjectVersionInline(LabelledRows):
    """The versions that a project publishes. Read-only, as they come from the project itself."""

    model = ProjectVersion
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Project | None = None) -> bool:
        return super().has_add_permission(request, obj) and not _says_platforms(obj)

    def has_change_permission(self, request: HttpRequest, obj: Project | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _says_platforms(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Project | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _says_platforms(obj)


def _says_platforms(project: Project | None) -> bool:
    profile = ProjectProfile.objects.filter(project=project).first() if project is not None else None
    return project is not None and project.takes_platforms and bool(profile and profile.said.get("versions"))


@admin.register(Project)
class ProjectAdmin(AuditedAdmin):
    form = ProjectForm
    list_display = ("name", "master_url", "is_active", "default_share", "account_mode", "has_account", "is_signed")
    list_filter = ("is_active", "account_mode")
    search_fields = ("name", "master_url")
    inlines = (ProjectAddressInline, ProjectKeywordInline, ProjectVersionInline)
    fieldsets = (
        (None, {"fields": ("name", "master_url", "path_ignores_case")}),
        (None, {"fields": ("web_url", "summary", "description", "is_active", "default_share")}),
        (None, {"fields": ("takes_platforms",)}),
        (_("Downtime"), {"fields": ("down_since", "down_reason")}),
        (
            _("Account"),
            {
                "fields": ("account_mode", "new_account_key"),
                "description": _(
                    "One account for all volunteers, whose key you enter here, or a separate one for each."
                ),
            },
        ),
        (
            _("Signature"),
            {
                "fields": ("url_signature",),
                "description": _(
                    "Created automatically if the private key is on this server. Otherwise, sign the URL elsewhere "
                    "(manage.py sign_url) and paste the result. Without it, no computer attaches to the project."
                ),
            },
        ),
    )

    actions_list = ("open_add_by_url", "open_troubles")
    actions_detail = ("open_set_up",)

    def get_urls(self) -> list[URLPattern]:
        return [*project_setup.urls(), *super().get_urls()]

    @action(description=_("Add by URL"), permissions=["add"], url_path="by-url")
    def open_add_by_url(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:accounting_project_add_by_url")

    @action(description=_("Problems"), permissions=["view"], url_path="troubles")
    def open_troubles(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:accounting_project_troubles")

    @action(description=_("Set up and test"), permissions=["view"], url_path="setup")
    def open_set_up(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect("admin:accounting_project_set_up", object_id)

    @admin.display(boolean=True, description=_("account key"))
    def has_account(self, project: Project) -> bool:
        return project.account_mode == Project.Account.PER_USER or bool(project.shared_account_key)

    @admin.display(boolean=True, description=_("signed"))
    def is_signed(self, project: Project) -> bool:
        try:
            return bool(project.url_signature) and signing_key.is_signed(project.master_url, project.url_signature)
        except (signing.SigningError, OSError):
            return False

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        key, had_key = form.cleaned_data["new_account_key"], bool(obj.shared_account_key)
        if change and two_persons.is_on() and moves.needs_two(obj, obj.master_url):
            self._ask_second(request, obj)
        if not change:
            obj.colour = Project.next_colour()
            obj.save()
        if key:
            obj.shared_account_key = account_keys.seal_shared(obj, key)
        super().save_model(request, obj, form, True)
        if had_key and not obj.shared_account_key:
            messages.warning(request, KEY_DROPPED)
        # From now on it is queried, even if it was entered by hand.
        ProjectProfile.objects.get_or_create(project=obj)

    def _ask_second(self, request: HttpRequest, obj: Project) -> None:
        """Leave the address unchanged, and have another operator confirm the new one."""
        stored = Project.objects.get(pk=obj.pk)
        payload = moves.payload(stored, obj.master_url, obj.url_signature)
        obj.master_url, obj.url_signature = stored.master_url, stored.url_signature
        try:
            two_persons.ask(
                moves.KIND, f"{stored.name}: {payload['master_url']}", payload, signed_in(request), timezone.now()
            )
        except two_persons.StepRefused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.warning(request, two_persons.asked_text())

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        # This is the last write of a project. Before the commit, an RPC would still read the old rows.
        transaction.on_commit(catalogue.forget)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Its days are part of volunteers' history. A project that has ended is made inactive instead.
        return False


class UserProjectForm(AccountKeyAdminForm):
    class Meta:
        model = UserProject
        fields = ("user", "project", "is_chosen", "resource_share")


@admin.register(UserProject)
class UserProjectAdmin(AuditedAdmin):
    """Volunteers' own rows: operators' changes to them are recorded, volunteers' own changes are not."""

    form = UserProjectForm
    list_display = ("user", "project", "is_chosen", "resource_share", "has_account")
    list_filter = ("project", "is_chosen")
    list_select_related = ("user", "project")
    search_fields = ("user__email",)
    autocomplete_fields = ("user",)
    fields = ("user", "project", "is_chosen", "resource_share", "new_account_key")

    @admin.display(boolean=True, description=_("own account"))
    def has_account(self, choice: UserProject) -> bool:
        return bool(choice.account_key)

    def save_settings(self, request: HttpRequest, obj: UserProject, form: Any, change: bool) -> None:
        before = UserProject.objects.filter(pk=obj.pk).first()
        if key := form.cleaned_data["new_account_key"]:
            obj.account_key = account_keys.seal_own(obj.user_id, obj.project, key)
        elif {"user", "project"} & set(form.changed_data):
            obj.account_key = None
        super().save_settings(request, obj, form, change)
        self._record(obj, before, obj)

    def delete_model(self, request: HttpRequest, obj: UserProject) -> None:
        self._record(obj, obj, None)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[UserProject]) -> None:
        for project in queryset:
            self._record(project, project, None)
        super().delete_queryset(request, queryset)

    def _record(self, row: UserProject, before: UserProject | None, after: UserProject | None) -> None:
        words = Message("audited_account", number=str(row.user_id), project=row.project)
        record(row, words, before, after, secret=["account_key"])


class AccountSettingsForm(forms.ModelForm):
    class Meta:
        model = AccountSettings
        fields = ("user", "preferences", "preferences_at", "keywords_yes", "keywords_no")

    def clean_preferences(self) -> dict[str, float]:
        chosen = self.cleaned_data["preferences"] or {}
        if not isinstance(chosen, dict):
            raise ValidationError(gettext('Enter an object such as {"max_ncpus_pct": 50}.'))
        if wrong := preferences.faults(chosen):
            raise ValidationError([f"{fault}." for fault in wrong])
        return chosen


@admin.register(AccountSettings)
class AccountSettingsAdmin(ModelAdmin):
    form = AccountSettingsForm
    list_display = ("user", "preferences_at", "keywords_yes", "keywords_no")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    autocomplete_fields = ("user",)


admin.site.register(Announcement, AnnouncementAdmin)
admin.site.register(StatisticsImport, StatisticsImportAdmin)


@admin.register(ProjectDay)
class ProjectDayAdmin(ReadOnlyAdmin):
    cpu_hours = column("cpu_time", _("CPU time"), duration_text)
    gpu_hours = column("gpu_time", _("GPU time"), duration_text)
    cpu_credit = column("cpu_ec", _("CPU credit"), credit_text)
    gpu_credit = column("gpu_ec", _("GPU credit"), credit_text)
    list_display = ("day", "project", "users", "hosts", "cpu_credit", "gpu_credit", "njobs_success", "njobs_error")
    list_filter = ("project",)
    list_select_related = ("project",)
    date_hierarchy = "day"
    ordering = ("-day", "project")

    fields = (
        "day", "project", "users", "hosts", "cpu_credit", "gpu_credit", "cpu_hours", "gpu_hours", "njobs_success",
        "njobs_error", "rolled_up_at",
    )  # fmt: skip


@admin.register(ProjectTrouble)
class ProjectTroubleAdmin(ReadOnlyAdmin):
    list_display = ("project", "kind", "processor_type", "since", "last_at", "volunteers", "of_volunteers")
    list_filter = ("project", "kind")
    list_select_related = ("project",)


@admin.register(ProjectStanding)
class ProjectStandingAdmin(ReadOnlyAdmin):
    target_percent = column("target", _("target (%)"), lambda share: number_format(100 * share, 1))
    got_percent = column("got", _("actual (%)"), lambda share: number_format(100 * share, 1))
    factor = column("boost", _("factor applied to its share"), lambda boost: number_format(boost, 2))
    list_display = ("project", "on_gpu", "target_percent", "got_percent", "factor", "day")
    list_filter = ("project", "on_gpu")
    list_select_related = ("project",)
    fields = list_display


@admin.register(Settlement)
class SettlementAdmin(ReadOnlyAdmin):
    """Computers far from what is usual at a project come first, as candidates for a closer look; this is no verdict."""

    granted_credit = column("granted", _("granted"), credit_text)
    estimated_credit = column("estimated", _("estimated"), credit_text)
    list_display = (
        "host", "project", "is_outside", "ratio", "expected", "granted_credit", "estimated_credit", "seen_on",
    )  # fmt: skip
    fields = (
        "host", "project", "seen_on", "read_on", "granted_credit", "is_whole", "estimated_credit", "ratio", "expected",
        "is_outside",
    )  # fmt: skip
    list_filter = ("is_outside", "project")
    list_select_related = ("host", "project__ratio")
    search_fields = ("=host__token",)
    show_full_result_count = False

    @admin.display(description=_("granted / estimated"))
    def ratio(self, row: Settlement) -> str:
        return significant(row.granted / row.estimated if row.estimated else None)

    @admin.display(description=_("expected"))
    def expected(self, row: Settlement) -> str:
        ratio = getattr(row.project, "ratio", None)
        low, high = expected_range(ratio.median, ratio.computers) if ratio else expected_range(None, 0)
        return gettext("%(low)s to %(high)s") % {"low": significant(low), "high": significant(high)}


@admin.register(TaskSource)
class TaskSourceAdmin(ReadOnlyAdmin):
    shown_problem = column("problem", _("problem"), sentence)
    list_display = ("project", "answered_at", "ask_after", "failures", "shown_problem")
    fields = list_display
    list_select_related = ("project",)


@admin.register(HostClient)
class HostClientAdmin(ReadOnlyAdmin):
    list_display = ("host", "cpid", "seen_at", "told_apart_at", "record")
    fields = list_display
    list_filter = (("told_apart_at", admin.EmptyFieldListFilter),)
    search_fields = ("cpid", "=host__token")
    list_select_related = ("host", "record")
    show_full_result_count = False


@admin.register(Note)
class NoteAdmin(ReadOnlyAdmin):
    list_display = ("day", "kind", "host", "project", "detail", "amount", "count", "last_at")
    list_filter = ("kind", "project")
    list_select_related = ("host", "project")
    show_full_result_count = False
