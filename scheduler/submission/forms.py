"""The form for submitting jobs in the browser."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.files.base import ContentFile
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import App
from portal.languages.messages import at_place
from portal.languages.sentences import sentence
from scheduler.engine.limits import is_name, name_rule
from scheduler.submission.drafts import DEFAULT_FIELDS, MAX_UPLOAD_NBYTES
from scheduler.wire.job_table import field_value

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from scheduler.wire.job_table import Fault

_MIB = 1024 * 1024
_DEFAULTS: dict[str, tuple[StrOrPromise, StrOrPromise]] = {
    "fpops_est": (
        _("FLOPs per job"),
        _("The expected run time and the credit are calculated from this. Example: 5e10."),
    ),
    "fpops_bound": (_("FLOPs at which a job is stopped"), _("If empty, 100 times the estimate.")),
    "output_files": (
        _("Output files"),
        _(
            "Names used by the program, separated by spaces, each with its maximum size in bytes: out:1000000 "
            "log:10000:optional"
        ),
    ),
    "command_line": (_("Command line"), ""),
    "delay_bound_secs": (_("Time from sending to the deadline (seconds)"), _("If empty, 7 days.")),
    "memory_bound_bytes": (_("Memory (bytes)"), _("If empty, 128 MiB. A job that uses more is stopped.")),
    "disk_bound_bytes": (_("Disk space (bytes)"), _("If empty, 128 MiB. A job that uses more is stopped.")),
    "min_quorum": (_("Results that must agree"), _("If empty, 2, or 1 if the app uses adaptive replication.")),
    "target_nresults": (_("Initial results"), _("If empty, as many as must agree.")),
    "max_error_results": (_("Errors after which a job fails"), _("If empty, 3.")),
    "max_total_results": (_("Maximum results of all kinds"), _("If empty, 10.")),
    "max_success_results": (_("Results without agreement after which a job fails"), _("If empty, 6.")),
    "credit": (_("Credit per job"), _("Only for apps whose credit is given with each job.")),
    "size_class": (
        _("Size class"),
        _("For apps with size classes: 0 for the smallest jobs. If empty, the jobs are for all computers alike."),
    ),
    "app_version_num": (
        _("Version of the app"),
        _("Only this one computes the jobs: 105 for 1.05. If empty, the best for each computer."),
    ),
    "target_host": (_("Only for the computer"), _("Its number. Its jobs go before all others.")),
    "target_user": (_("Only for the volunteer"), _("Their number.")),
    "target_team": (_("Only for the team"), _("Its number.")),
    "broadcast": (
        _("One job for each computer"),
        _("1: each job once for every computer of the volunteer or team above, or of all, that was active lately."),
    ),
    "priority": (_("Priority"), _("Higher priorities go first. If empty, 0.")),
}
SHOWN_FIRST = ("fpops_est", "output_files", "command_line")


class JobsForm(forms.Form):
    """Enter an app, the jobs as a table or an archive, and their common fields. The dry run checks the jobs."""

    app = forms.ModelChoiceField(App.objects.filter(is_deprecated=False), label=_("App"), empty_label=None)
    name = forms.CharField(label=_("Name of the batch"), max_length=100, required=False)
    table = forms.CharField(
        label=_("Jobs, as comma-separated values"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "code"}),
        help_text=_(
            "The first line names the columns, for example name,command_line,input_files,fpops_est. A table of more "
            "than 1 MiB must be a file."
        ),
    )
    file = forms.FileField(
        label=_("Or a file: CSV, or a ZIP archive of input files"),
        required=False,
        help_text=format_lazy(
            _(
                "At most {number} MiB. Each file of an archive is one job. If the archive contains a jobs.csv, the "
                "jobs are those of that table, which names the files."
            ),
            number=MAX_UPLOAD_NBYTES // _MIB,
        ),
    )
    open_name = forms.CharField(
        label=_("The program’s name for each file of an archive"),
        max_length=200,
        initial="in",
        required=False,
        help_text=_("Only for an archive without jobs.csv."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in sorted(DEFAULT_FIELDS, key=lambda name: name not in SHOWN_FIRST):
            label, help_text = _DEFAULTS[field]
            self.fields[field] = forms.CharField(label=label, help_text=help_text, max_length=2000, required=False)

    def parts(self) -> tuple[list[Any], list[Any]]:
        """Return the fields that most people need, and the others."""
        more = [name for name in DEFAULT_FIELDS if name not in SHOWN_FIRST]
        return [field for field in self if field.name not in more], [self[name] for name in more]

    def clean_open_name(self) -> str:
        name: str = self.cleaned_data["open_name"] or "in"
        if not is_name(name):
            raise forms.ValidationError(gettext("Use a name of %(rule)s.") % {"rule": sentence(name_rule())})
        return name

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file and file.size > MAX_UPLOAD_NBYTES:
            raise forms.ValidationError(
                gettext("This file has %(size)s bytes; the limit is %(most)s.")
                % {"size": file.size, "most": MAX_UPLOAD_NBYTES}
            )
        return file

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if bool(cleaned.get("file")) == bool((cleaned.get("table") or "").strip()) and "file" not in self.errors:
            self.add_error("table", gettext("Either enter the jobs here or choose a file."))
        return cleaned

    def add_faults(self, faults: Iterable[Fault]) -> None:
        """Say at its field what jobs cannot be made of: at a value for all jobs, else at the table or file."""
        source = "file" if self.cleaned_data["file"] else "table"
        for fault in faults:
            # As defaults.output_files[0].max_nbytes
            path = fault.field.removeprefix("defaults.")
            name = re.split(r"\W", path, maxsplit=1)[0]
            if not fault.place and name in self.fields:
                self.add_error(name, sentence(at_place(path.removeprefix(name), fault.message)))
            else:
                self.add_error(source, sentence(fault.whole()))

    @property
    def upload(self) -> Any:
        """Return the upload to store."""
        return self.cleaned_data["file"] or ContentFile(self.cleaned_data["table"].encode())

    @property
    def is_archive(self) -> bool:
        """Whether it begins like a ZIP archive, whatever its name."""
        file = self.cleaned_data["file"]
        if not file:
            return False
        file.seek(0)
        return bool(file.read(2) == b"PK")

    @property
    def defaults(self) -> dict[str, Any]:
        """Return what all jobs have in common, as fields of a job."""
        texts = {name: self.cleaned_data[name].strip() for name in DEFAULT_FIELDS if name in self.fields}
        return {name: field_value(name, text, {}) for name, text in texts.items() if text}
