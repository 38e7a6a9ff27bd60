"""The form with which jobs are submitted in the browser."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.files.base import ContentFile

from credit.models import App
from scheduler.engine.limits import is_name, name_rule
from scheduler.submission.drafts import DEFAULT_FIELDS, MAX_UPLOAD_NBYTES
from scheduler.wire.job_table import field_value

_MIB = 1024 * 1024
_DEFAULTS: dict[str, tuple[str, str]] = {
    "fpops_est": ("FLOPs of a job", "The expected run time and the credit are computed from it: 5e10, for instance."),
    "fpops_bound": ("FLOPs at which a job is ended", "Empty: 100 times the estimate."),
    "output_files": (
        "Output files",
        "As the program calls them, divided by blanks, each with its greatest size in bytes: out:1000000"
        " log:10000:optional",
    ),
    "command_line": ("Command line", ""),
    "delay_bound_secs": ("Time from sending to the deadline (seconds)", "Empty: 7 days."),
    "memory_bound_bytes": ("Memory (bytes)", "Empty: 128 MiB. A job that takes more is ended."),
    "disk_bound_bytes": ("Disk space (bytes)", "Empty: 128 MiB. A job that takes more is ended."),
    "min_quorum": ("Results that have to agree", "Empty: 2, or 1 where the app replicates adaptively."),
    "target_nresults": ("Results that are sent at first", "Empty: as many as have to agree."),
    "max_error_results": ("Errors after which a job fails", "Empty: 3."),
    "max_total_results": ("Results of all kinds", "Empty: 10."),
    "max_success_results": ("Results without agreement after which a job fails", "Empty: 6."),
    "priority": ("Priority", "Higher goes first; empty: 0."),
}
SHOWN_FIRST = ("fpops_est", "output_files", "command_line")


class JobsForm(forms.Form):
    """An app, the jobs as a table or an archive, and what they have in common. Jobs are checked by the dry run."""

    app = forms.ModelChoiceField(App.objects.filter(is_deprecated=False), label="App", empty_label=None)
    name = forms.CharField(label="Name of the batch", max_length=100, required=False)
    table = forms.CharField(
        label="Jobs, as comma-separated values",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "code"}),
        help_text="The first line names the columns, such as name,command_line,input_files,fpops_est. A table of more"
        " than 1 MiB has to be a file.",
    )
    file = forms.FileField(
        label="Or a file: CSV, or a ZIP archive of input files",
        required=False,
        help_text=f"At most {MAX_UPLOAD_NBYTES // _MIB} MiB. Each file of an archive is one job; with a jobs.csv in it,"
        " the jobs are those of that table, and name the files.",
    )
    open_name = forms.CharField(
        label="What the program calls the file of an archive",
        max_length=200,
        initial="in",
        required=False,
        help_text="Only for an archive without jobs.csv.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in sorted(DEFAULT_FIELDS, key=lambda name: name not in SHOWN_FIRST):
            label, help_text = _DEFAULTS[field]
            self.fields[field] = forms.CharField(label=label, help_text=help_text, max_length=2000, required=False)

    def parts(self) -> tuple[list[Any], list[Any]]:
        """The fields that most people need, and the others."""
        more = [name for name in DEFAULT_FIELDS if name not in SHOWN_FIRST]
        return [field for field in self if field.name not in more], [self[name] for name in more]

    def clean_open_name(self) -> str:
        name: str = self.cleaned_data["open_name"] or "in"
        if not is_name(name):
            raise forms.ValidationError(f"A name of {name_rule()}.")
        return name

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file and file.size > MAX_UPLOAD_NBYTES:
            raise forms.ValidationError(f"This file has {file.size} bytes; the limit is {MAX_UPLOAD_NBYTES}.")
        return file

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if bool(cleaned.get("file")) == bool((cleaned.get("table") or "").strip()) and "file" not in self.errors:
            self.add_error("table", "Give the jobs here, or choose a file: one of the two.")
        return cleaned

    @property
    def upload(self) -> Any:
        """What is to be kept."""
        return self.cleaned_data["file"] or ContentFile(self.cleaned_data["table"].encode())

    @property
    def is_archive(self) -> bool:
        """Whether it begins as a ZIP archive does, whatever it is called."""
        file = self.cleaned_data["file"]
        if not file:
            return False
        file.seek(0)
        return bool(file.read(2) == b"PK")

    @property
    def defaults(self) -> dict[str, Any]:
        """What all jobs have in common, as fields of a job."""
        texts = {name: self.cleaned_data[name].strip() for name in DEFAULT_FIELDS}
        return {name: field_value(name, text, {}) for name, text in texts.items() if text}
