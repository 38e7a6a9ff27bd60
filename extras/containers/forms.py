"""Forms to run an image on many inputs, and to give an image a variant."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from extras.containers import images
from extras.containers.images import Variant
from extras.containers.models import MAX_NAME_CHARS, Image, ImageFile
from portal.languages.sentences import sentence
from scheduler.submission.forms import JobsForm
from scheduler.wire.container_jobs import command_fault

TYPICAL_FLOPS: Final = 4.3e9
"""The speed of one processor of a usual computer, as BOINC's own pages assume: it converts hours into FLOPs."""
MAX_HOURS: Final = 24 * 100
SHOWN_FIRST: Final = (
    *("app", "image", "image_name", "base", "command", "dockerfile", "file", "open_name", "output_files", "hours"),
    "name",
)
_TEXT: Final = forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "code"})


def _settings_field() -> forms.CharField:
    return forms.CharField(
        label=_("job.toml"),
        required=False,
        strip=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "code"}),
        help_text=_("Settings of the wrapper: workdir, use_gpu, verbose. Usually nothing."),
    )


def _dockerfile_field(help_text: Any, *, required: bool) -> forms.CharField:
    return forms.CharField(
        label=_("Dockerfile"),
        required=required,
        strip=False,
        max_length=images.MAX_DOCKERFILE_CHARS,
        widget=_TEXT,
        help_text=help_text,
    )


class RunForm(JobsForm):
    """An image, new or existing, and the inputs that it is run on."""

    image = forms.ModelChoiceField(
        Image.objects.none(), label=_("Image"), required=False, empty_label=_("a new one, described here")
    )
    image_name = forms.CharField(
        label=_("Name of the new image"),
        max_length=MAX_NAME_CHARS,
        required=False,
        help_text=_("You can use it again for later batches. Small letters, digits, _ and -."),
    )
    base = forms.CharField(
        label=_("Base image"), max_length=255, required=False, help_text=_("For example python:3.12-slim.")
    )
    command = forms.CharField(
        label=_("Command"),
        max_length=2000,
        required=False,
        help_text=_(
            "Runs in the folder with the inputs. $ARGS stands for the arguments of the job. For example: python3 -c "
            "'print(len(open(\"in\").read()))' > out"
        ),
    )
    dockerfile = _dockerfile_field(
        _("Instead of base image and command. Its folder is /app, and computers build it for each job."), required=False
    )
    settings = _settings_field()
    hours = forms.FloatField(
        label=_("Hours that a job takes"),
        min_value=0.001,
        max_value=MAX_HOURS,
        initial=1,
        help_text=_("On one processor of a usual computer (4.3 GFLOPS). Credit and the forecast follow from it."),
    )
    most_hours = forms.FloatField(
        label=_("Hours after which it is stopped"),
        min_value=0.001,
        max_value=100 * MAX_HOURS,
        required=False,
        help_text=_("If empty, 100 times as long."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("fpops_est", "fpops_bound"):
            del self.fields[name]
        app, image = self.fields["app"], self.fields["image"]
        assert isinstance(app, forms.ModelChoiceField) and isinstance(image, forms.ModelChoiceField)
        app.queryset = images.container_apps()
        image.queryset = Image.objects.filter(app__in=images.container_apps())
        self.fields["command_line"].label = _("Arguments of all jobs")
        self.fields["output_files"].required = True
        self.fields["file"].label = _("Inputs: a ZIP archive, or a CSV table")
        self.order_fields(SHOWN_FIRST)

    def parts(self) -> tuple[list[Any], list[Any]]:
        return [self[name] for name in SHOWN_FIRST], [field for field in self if field.name not in SHOWN_FIRST]

    def clean_command_line(self) -> str:
        command_line: str = self.cleaned_data["command_line"]
        if (message := command_fault(command_line)) is not None:
            raise forms.ValidationError(sentence(message))
        return command_line

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        image, app = cleaned.get("image"), cleaned.get("app")
        has_file = bool((cleaned.get("dockerfile") or "").strip())
        has_command = bool(cleaned.get("base") or cleaned.get("command"))
        if image is not None:
            if has_file or has_command:
                self.add_error("image", gettext("Either choose an image, or describe a new one."))
            elif app is not None and image.app_id != app.pk:
                self.add_error("image", gettext("This image is for the app %(app)s.") % {"app": image.app})
        elif has_file == has_command:
            self.add_error("base", gettext("Enter a base image and a command, or a Dockerfile, or choose an image."))
        elif not cleaned.get("image_name"):
            self.add_error("image_name", gettext("Give the new image a name."))
        hours, most = cleaned.get("hours"), cleaned.get("most_hours")
        if hours and most and most < hours:
            self.add_error("most_hours", gettext("This is less than a job takes."))
        return cleaned

    def variant(self) -> Variant:
        """Return the first variant of a new image. Raises ImageError."""
        given = self.cleaned_data
        text = given["dockerfile"] if given["dockerfile"].strip() else ""
        return Variant(text or images.dockerfile_of(given["base"], given["command"]), given["settings"])

    def clean_image_name(self) -> str:
        name: str = self.cleaned_data["image_name"]
        if name:
            Image._meta.get_field("name").run_validators(name)
        return name

    @property
    def defaults(self) -> dict[str, Any]:
        fields = super().defaults
        fields["fpops_est"] = max(self.cleaned_data["hours"] * 3600 * TYPICAL_FLOPS, 1.0)
        if self.cleaned_data["most_hours"]:
            fields["fpops_bound"] = self.cleaned_data["most_hours"] * 3600 * TYPICAL_FLOPS
        return fields


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files, or none."""

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        return [super(_FilesField, self).clean(file, initial) for file in data or ()]


class VariantForm(forms.Form):
    """A variant of an image: its computers and its files."""

    plan_class = forms.ChoiceField(label=_("Plan class"), required=False)
    cpu = forms.ChoiceField(label=_("Kind of CPU"), required=False, choices=[("", _("any")), *ImageFile.Cpu.choices])
    dockerfile = _dockerfile_field(_("Its folder is /app, where inputs and outputs are, too."), required=True)
    settings = _settings_field()
    more_files = _FilesField(
        label=_("Other files"),
        required=False,
        widget=_FilesInput(attrs={"multiple": True}),
        help_text=_("Programs and tables that every job gets. Those that begin with #! are made executable."),
    )

    def __init__(self, image: Image, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        plan_class = self.fields["plan_class"]
        assert isinstance(plan_class, forms.ChoiceField)
        plan_class.choices = [("", gettext("any")), *((name, name) for name in images.plan_classes_of(image.app))]

    def variant(self) -> Variant:
        given = self.cleaned_data
        return Variant(given["dockerfile"], given["settings"], given["more_files"], given["plan_class"], given["cpu"])
