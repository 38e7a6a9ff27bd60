"""Forms of the pages that prepare and release versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from credit.models import PROCESSOR_TYPES, App, ProcessorType
from portal.languages.sentences import sentence
from scheduler.engine.limits import is_name, name_rule
from scheduler.models import PlanClass
from scheduler.programs.release import MAX_CLIENT_VERSION, MAX_VERSION_NUM

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_VERSION_FIELDS: Final = (
    "app",
    "version_num",
    "platform",
    "plan_class",
    "processor_type",
    "avg_ncpus",
    "gpu_usage",
    "min_gpu_ram_bytes",
    "min_client_version",
    "max_client_version",
    "api_version",
    "cmdline",
    "is_wrapper",
    "needs_network",
    "dont_throttle",
    "file_prefix",
)


def _text(
    label: StrOrPromise, help_text: StrOrPromise = "", *, required: bool = True, max_length: int = 64, initial: str = ""
) -> Any:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=required,
        max_length=max_length,
        initial=initial,
        widget=UnfoldAdminTextInputWidget,
    )


def _number(
    label: StrOrPromise, low: float, high: float, initial: float, help_text: StrOrPromise = ""
) -> forms.FloatField:
    widget = UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"})
    return forms.FloatField(
        label=label, min_value=low, max_value=high, initial=initial, help_text=help_text, widget=widget, localize=False
    )


def _flag(label: StrOrPromise, help_text: StrOrPromise) -> forms.BooleanField:
    return forms.BooleanField(label=label, help_text=help_text, required=False, widget=UnfoldBooleanWidget)


class VersionForm(forms.Form):
    """Describe a version: the fields of a version.toml, and those of an app that does not exist yet."""

    app = _text(_("App"), _("The app’s short name. If there is no such app, it is created when the version is stored."))
    app_name = _text(_("Name of a new app"), _("The name shown to volunteers."), required=False, max_length=100)
    app_description = forms.CharField(
        label=_("Description of a new app"), required=False, max_length=2000, widget=UnfoldAdminTextareaWidget
    )
    one_result_per_user = forms.BooleanField(
        label=_("New app: one result per volunteer and workunit"),
        required=False,
        initial=True,
        widget=UnfoldBooleanWidget,
    )
    version_num = forms.IntegerField(
        label=_("Version number"),
        min_value=1,
        max_value=MAX_VERSION_NUM,
        help_text=_("101 is shown as 1.01."),
        widget=UnfoldAdminIntegerFieldWidget,
    )
    platform = _text(_("Platform"), _("For example x86_64-pc-linux-gnu or windows_x86_64."))
    plan_class = forms.ChoiceField(
        label=_("Plan class"),
        required=False,
        help_text=_("Determines which computers can run the version. Plan classes have a page of their own."),
        widget=UnfoldAdminSelectWidget,
    )
    processor_type = forms.ChoiceField(
        label=_("Processor type"), choices=PROCESSOR_TYPES, initial=ProcessorType.CPU, widget=UnfoldAdminSelectWidget
    )
    avg_ncpus = _number(_("Processors used"), 0, 1024, 1)
    gpu_usage = _number(_("GPUs used"), 0, 64, 0, _("More than 0 for a GPU type, otherwise 0."))
    min_gpu_ram_bytes = forms.IntegerField(
        label=_("Minimum GPU memory (bytes)"),
        min_value=0,
        max_value=2**50,
        initial=0,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    min_client_version = forms.IntegerField(
        label=_("Minimum version of BOINC"),
        min_value=0,
        max_value=MAX_CLIENT_VERSION,
        required=False,
        initial=0,
        help_text=_("Computers with an older one do not get this version. 71620 is 7.16.20; 0 means any."),
        widget=UnfoldAdminIntegerFieldWidget,
    )
    max_client_version = forms.IntegerField(
        label=_("Maximum version of BOINC"),
        min_value=0,
        max_value=MAX_CLIENT_VERSION,
        required=False,
        initial=0,
        help_text=_("Computers with a newer one do not get this version. 0 means any."),
        widget=UnfoldAdminIntegerFieldWidget,
    )
    api_version = _text(
        _("Version of the BOINC API"),
        _("For example 7.20.0. Leave empty if there is none."),
        required=False,
        max_length=11,
    )
    cmdline = _text(_("Arguments"), _("Added after the arguments of each job."), required=False, max_length=255)
    is_wrapper = _flag(_("Starts other programs"), _("A wrapper: BOINC starts it above the lowest priority."))
    needs_network = _flag(_("Needs the network while it runs"), _("It waits while BOINC may not use the network."))
    dont_throttle = _flag(
        _("Is never slowed down"),
        _("“Use at most x % of CPU time” does not apply. Newer clients decide this by GPUs and VirtualBox alone."),
    )
    file_prefix = _text(
        _("Folder of inputs and outputs"),
        _("Below the job’s folder; files are copied there. Leave empty if there is none."),
        required=False,
        max_length=16,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = PlanClass.objects.values_list("name", flat=True)
        plan_class = self.fields["plan_class"]
        assert isinstance(plan_class, forms.ChoiceField)
        plan_class.choices = [("", gettext("none")), *((name, name) for name in names)]

    def clean_app(self) -> str:
        return self._name("app")

    def clean_platform(self) -> str:
        return self._name("platform")

    def _name(self, field: str) -> str:
        name: str = self.cleaned_data[field]
        if not is_name(name, 64):
            raise forms.ValidationError(gettext("Use a name of %(rule)s.") % {"rule": sentence(name_rule(64))})
        return name

    def described(self) -> dict[str, Any]:
        """Return the fields of a version.json."""
        given = self.cleaned_data
        fields = {name: given[name] for name in _VERSION_FIELDS if given[name] not in ("", None, False)}
        if not App.objects.filter(name=given["app"]).exists():
            named = {"user_friendly_name": given["app_name"], "description": given["app_description"]}
            new_app = {name: text for name, text in named.items() if text}
            fields["new_app"] = {**new_app, "one_result_per_user": given["one_result_per_user"]}
        return fields


def initial_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the form's values for a draft's fields."""
    new_app = fields.get("new_app", {})
    return {
        **fields,
        "app_name": new_app.get("user_friendly_name", ""),
        "app_description": new_app.get("description", ""),
        "one_result_per_user": new_app.get("one_result_per_user", True),
    }


class FileForm(forms.Form):
    """Upload a program file, and say what it is for."""

    file = forms.FileField(label=_("File"), widget=UnfoldAdminFileFieldWidget)
    open_name = _text(
        _("Name in the job’s folder"),
        _("Leave empty if the program does not open the file by a name."),
        required=False,
        max_length=200,
    )
    is_main_program = forms.BooleanField(label=_("Main program"), required=False, widget=UnfoldBooleanWidget)
    is_executable = forms.BooleanField(label=_("Executable"), required=False, widget=UnfoldBooleanWidget)
    is_copied = forms.BooleanField(
        label=_("Copied into the job’s folder instead of linked"), required=False, widget=UnfoldBooleanWidget
    )


class SignaturesForm(forms.Form):
    """Submit the output of sign_manifest, pasted or as a file, or a NAME.sig for each file."""

    text = forms.CharField(
        label=_("Signatures, as printed by sign_manifest"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
    )
    file = forms.FileField(label=_("Or their file, or a NAME.sig"), required=False, widget=UnfoldAdminFileFieldWidget)
