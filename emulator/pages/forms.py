"""The emulator's forms: a computer and projects from scratch, files to upload, and settings to try with a scenario."""

from __future__ import annotations

import io
import math
import zipfile
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import CPU, GPU_EFFICIENCY, MAX_INSTANCES, Preferences, Processor, Scenario, ScenarioError
from emulator.files.archive import bytes_max_of
from emulator.files.sections import SETTINGS_BYTES_MAX
from emulator.files.time_log import TIME_LOG_FILE
from emulator.models import DAYS_MAX, POLICIES
from emulator.pages.drafts import ProjectFacts, ScenarioChange, draft
from emulator.pages.texts import parameter_texts, variant_texts
from emulator.runs.experiments import SEEDS_MAX, VARIANTS_MAX
from emulator.runs.sweeps import check_value, full_names, read_values, split
from emulator.runs.variants import Variant, swept
from portal.languages.sentences import sentence
from portal.templatetags.display import localised

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Text

GPU_KINDS: Final = [
    ("NVIDIA", _("NVIDIA GPU")),
    ("ATI", _("AMD GPU")),
    ("intel_gpu", _("Intel GPU")),
    ("apple_gpu", _("Apple GPU")),
]
PROJECT_ROWS: Final = 5
UPLOAD_BYTES_MAX: Final = 32 * 1024 * 1024
_LIMITS: Final = {"min_value": _("At least %(limit_value)s."), "max_value": _("At most %(limit_value)s.")}
LISTED_MAX: Final = 60
"""With more projects, the shares cannot be changed one by one."""


def _number(label: Text, low: float, high: float, initial: float, help_text: Text = "") -> forms.FloatField:
    return forms.FloatField(label=label, min_value=low, max_value=high, initial=initial, help_text=help_text)


class PlainForm(forms.Form):
    """Labels without a colon."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)

    def full_clean(self) -> None:
        """Shorten Django's own message, because there is little room beside a number."""
        for field in self.fields.values():
            field.error_messages |= _LIMITS
        super().full_clean()

    def get_initial_for_field(self, field: forms.Field, field_name: str) -> Any:
        """Return the initial value of a field: a whole number is shown without a point."""
        value = super().get_initial_for_field(field, field_name)
        return int(value) if isinstance(value, float) and value.is_integer() else value


class ComputerForm(PlainForm):
    """A computer, up to five projects, and the work buffer."""

    title = forms.CharField(label=_("Name"), max_length=100, initial=_("My experiment"))
    ncpus = forms.IntegerField(label=_("CPUs"), min_value=1, max_value=MAX_INSTANCES, initial=4)
    cpu_gflops = _number(_("GFLOPS per CPU"), 0.001, 1e6, 4)
    ngpus = forms.IntegerField(label=_("GPUs"), min_value=0, max_value=64, initial=0)
    gpu_kind = forms.ChoiceField(label=_("GPU type"), choices=GPU_KINDS)
    gpu_gflops = _number(_("Peak GFLOPS per GPU"), 0.001, 1e9, 5000)
    work_buf_min_days = _number(_("Minimum buffer (days)"), 0, 100, 0.1)
    work_buf_additional_days = _number(_("Additional buffer (days)"), 0, 100, 0.5)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for row in range(1, PROJECT_ROWS + 1):
            first = row <= 2
            self.fields[f"name{row}"] = forms.CharField(
                label=_("Project %(number)s") % {"number": row},
                max_length=60,
                required=False,
                initial="AB"[row - 1] if first else "",
            )
            self.fields[f"share{row}"] = _number(_("Share"), 0, 1e6, 100)
            self.fields[f"cpu_hours{row}"] = _optional(_("CPU task (hours)"), 0.001, 1e5, 1.0)
            self.fields[f"gpu_hours{row}"] = _optional(_("GPU task (hours)"), 0.001, 1e5, None)
            self.fields[f"deadline_days{row}"] = _number(_("Deadline (days)"), 0.01, 3660, 7)

    def project_rows(self) -> list[list[forms.BoundField]]:
        """The fields of each project, for the page."""
        names = ("name", "share", "cpu_hours", "gpu_hours", "deadline_days")
        return [[self[f"{name}{row}"] for name in names] for row in range(1, PROJECT_ROWS + 1)]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                cleaned["scenario"] = self._scenario(cleaned)
            except ScenarioError as error:
                raise ValidationError(sentence(error.message)) from None
        return cleaned

    def _scenario(self, data: dict[str, Any]) -> Scenario:
        processors = [Processor(CPU, data["ncpus"], data["cpu_gflops"] * 1e9)]
        if data["ngpus"]:
            processors.append(Processor(data["gpu_kind"], data["ngpus"], data["gpu_gflops"] * 1e9, GPU_EFFICIENCY))
        projects = []
        for row in range(1, PROJECT_ROWS + 1):
            if name := data[f"name{row}"]:
                hours = {CPU: data[f"cpu_hours{row}"], data["gpu_kind"]: data[f"gpu_hours{row}"]}
                hours_given = {kind: value for kind, value in hours.items() if value}
                if not hours_given:
                    self.add_error(f"cpu_hours{row}", gettext("Enter how long its tasks run on a CPU or on a GPU."))
                projects.append(ProjectFacts(name, data[f"share{row}"], hours_given, data[f"deadline_days{row}"]))
        if not projects:
            raise ScenarioError("projects", "nothing_named")
        preferences = Preferences(data["work_buf_min_days"], data["work_buf_additional_days"])
        return draft(processors, projects, preferences, name=data["title"])


def _optional(label: Text, low: float, high: float, initial: float | None) -> forms.FloatField:
    return forms.FloatField(label=label, min_value=low, max_value=high, initial=initial, required=False)


class UploadForm(PlainForm):
    """A ZIP of a client's data folder, or its files one by one. A worker reads them; here only sizes are checked."""

    archive = forms.FileField(label=_("ZIP of the data folder"), required=False)
    client_state = forms.FileField(label="client_state.xml", required=False)
    global_prefs = forms.FileField(label="global_prefs.xml", required=False)
    global_prefs_override = forms.FileField(label="global_prefs_override.xml", required=False)
    cc_config = forms.FileField(label="cc_config.xml", required=False)
    app_config = forms.FileField(label="app_config.xml", required=False)
    time_stats_log = forms.FileField(label="time_stats_log", required=False)

    def single_files(self) -> list[forms.BoundField]:
        """The fields for single files, for the page."""
        return [self[name] for name in self.fields if name != "archive"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and not cleaned.get("archive") and not cleaned.get("client_state"):
            self.add_error("archive", gettext("Choose a ZIP of the data folder, or client_state.xml."))
        for name, file in list(cleaned.items()):
            limit = self._limit(name)
            if file is not None and file.size > limit:
                too_large = gettext("This file has %(size)s bytes. The limit is %(limit)s bytes.")
                self.add_error(
                    name, too_large % {"size": localised(f"{file.size:,}"), "limit": localised(f"{limit:,}")}
                )
        return cleaned

    def _limit(self, name: str) -> int:
        """Return the maximum size in bytes of a field's file."""
        return UPLOAD_BYTES_MAX if name == "archive" else bytes_max_of(_file_name(name)) or SETTINGS_BYTES_MAX

    def archive_bytes(self) -> bytes:
        """Return the uploaded ZIP, or one of the single files, by the names that clients give them."""
        files = {name: file for name, file in self.cleaned_data.items() if file is not None}
        if "archive" in files:
            whole: bytes = files["archive"].read()
            return whole
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, file in files.items():
                archive.writestr(_file_name(name), file.read())
        return buffer.getvalue()


def _file_name(field: str) -> str:
    return field if field == TIME_LOG_FILE else f"{field}.xml"


class TrialForm(PlainForm):
    """Changes to a scenario, and the policies and values to try with it."""

    title = forms.CharField(label=_("Name"), max_length=100)
    days = _number(_("Days"), 0.01, DAYS_MAX, 30, _("Up to 100 years. Long runs take longer."))
    policies = forms.MultipleChoiceField(
        label=_("Policies"), choices=POLICIES, widget=forms.CheckboxSelectMultiple, initial=[PolicyName.REC.value]
    )
    quirks = forms.BooleanField(
        label=_("Also the current policy as BOINC implements it, with its deviations from the design"), required=False
    )
    no_rule = forms.BooleanField(
        label=_("Also long-term debt without the rule about which projects may accumulate debt"), required=False
    )
    seed = forms.IntegerField(label=_("First seed"), min_value=0, max_value=2**53 - 10, initial=1)
    nseeds = forms.IntegerField(
        label=_("Number of seeds"),
        min_value=1,
        max_value=SEEDS_MAX,
        initial=1,
        help_text=_("Several seeds show how much is due to chance."),
    )
    parameter = forms.ChoiceField(label=_("Vary"), required=False)
    values = forms.CharField(
        label=_("Values"),
        required=False,
        max_length=200,
        help_text=format_lazy(_("Up to {limit} values, such as 0.1 0.5 2, or 0:5:1 for 0 to 5."), limit=VARIANTS_MAX),
    )
    work_buf_min_days = _number(_("Minimum buffer (days)"), 0, 1000, 0.1)
    work_buf_additional_days = _number(_("Additional buffer (days)"), 0, 1000, 0.5)

    def __init__(self, scenario: Scenario, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scenario = scenario
        self._choice("policies").choices = POLICIES
        # For very many projects, the values are not offered one by one.
        names = [name for name in full_names(scenario) if not split(name)[1] or self._listed()]
        self._choice("parameter").choices = [
            ("", gettext("Nothing")),
            *((name, parameter_texts.with_unit(name)) for name in names),
        ]
        self.fields["work_buf_min_days"].initial = scenario.preferences.work_buf_min_days
        self.fields["work_buf_additional_days"].initial = scenario.preferences.work_buf_additional_days
        for number, processor in enumerate(scenario.host.processors):
            self.fields[f"instances{number}"] = forms.IntegerField(
                label=_instances(processor.kind), min_value=1, max_value=MAX_INSTANCES, initial=processor.instances
            )
            self.fields[f"gflops{number}"] = _number(_("GFLOPS each"), 1e-9, 1e9, processor.peak_flops / 1e9)
        for number, project in enumerate(self._listed()):
            self.fields[f"share{number}"] = _number(project.name, 0, 1e9, project.share)

    def _choice(self, name: str) -> forms.ChoiceField:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        return field

    def _listed(self) -> list[Any]:
        return list(self.scenario.projects) if len(self.scenario.projects) <= LISTED_MAX else []

    def processor_rows(self) -> list[tuple[str, forms.BoundField, forms.BoundField]]:
        """Kind, instances, speed."""
        return [
            (processor.kind, self[f"instances{number}"], self[f"gflops{number}"])
            for number, processor in enumerate(self.scenario.host.processors)
        ]

    def share_rows(self) -> list[forms.BoundField]:
        return [self[f"share{number}"] for number in range(len(self._listed()))]

    def clean_values(self) -> list[float]:
        try:
            values = read_values(self.cleaned_data["values"])
        except ScenarioError:
            raise ValidationError(
                gettext("Enter numbers separated by spaces, such as 0.1 0.5 2, or a range such as 0:5:0.5.")
            ) from None
        if len(values) > VARIANTS_MAX:
            raise ValidationError(
                gettext("You entered %(number)s values. The limit is %(limit)s.")
                % {"number": len(values), "limit": VARIANTS_MAX}
            )
        return values

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        parameter, values = cleaned.get("parameter", ""), cleaned.get("values") or []
        if parameter and not values:
            self.add_error("values", gettext("Enter the values to try."))
        try:
            for value in values if parameter else []:
                check_value(parameter, value)
        except ScenarioError as error:
            self.add_error("values", f"{parameter_texts.label(parameter)}: {sentence(error.why)}")
        return cleaned

    def change(self) -> ScenarioChange:
        """Return the changes to the scenario."""
        data = self.cleaned_data
        numbers = range(len(self.scenario.host.processors))
        listed = self._listed()
        return ScenarioChange(
            instances=[data[f"instances{number}"] for number in numbers],
            peak_flops=[self._peak_flops(number) for number in numbers],
            shares=[data[f"share{number}"] for number in range(len(listed))]
            if listed
            else [project.share for project in self.scenario.projects],
            work_buf_min_days=data["work_buf_min_days"],
            work_buf_additional_days=data["work_buf_additional_days"],
        )

    def _peak_flops(self, number: int) -> float:
        """Return the speed, exactly the old one unless it was changed: GFLOPS and back may differ in the last digit."""
        peak_flops = self.scenario.host.processors[number].peak_flops
        given: float = self.cleaned_data[f"gflops{number}"]
        return peak_flops if math.isclose(given, peak_flops / 1e9, rel_tol=1e-9) else given * 1e9

    def variants(self) -> list[Variant]:
        """Return each policy, or each policy at each value."""
        data = self.cleaned_data
        bases = [Variant(_stored_name(name), name) for name in data["policies"]]
        if data["quirks"]:
            bases.append(Variant(variant_texts.QUIRKS, PolicyName.REC.value, has_quirks=True))
        if data["no_rule"]:
            no_rule = {"eligibility_rule": False}
            bases.append(Variant(variant_texts.NO_RULE, PolicyName.LTD.value, parameters=no_rule))
        return swept(bases, data["parameter"], data["values"])

    def seeds(self) -> list[int]:
        first: int = self.cleaned_data["seed"]
        return list(range(first, first + self.cleaned_data["nseeds"]))


def trial_initial(trial: dict[str, Any] | None) -> dict[str, Any]:
    """Return the form's initial values for a scenario of a JSON file, so that its run is among the new ones."""
    if not trial:
        return {}
    initial: dict[str, Any] = {
        "policies": [trial["policy"]],
        "quirks": trial["quirks"],
        "seed": trial["seed"],
        "no_rule": trial["parameters"].get("eligibility_rule") is False,
    }
    half_life = trial["parameters"].get("half_life_days")
    if half_life is not None:
        initial |= {"parameter": "half_life_days", "values": f"{half_life:.12g}"}
    return initial


def _instances(kind: str) -> str:
    """Return the label of a number of processors."""
    return gettext("CPUs") if kind == CPU else gettext("%(kind)s GPUs") % {"kind": kind}


def _stored_name(policy: str) -> str:
    """Return the name that comparisons show: a user's own policy keeps its name."""
    names = variant_texts.NAMES
    return names[PolicyName(policy)] if policy in set(PolicyName) else policy
