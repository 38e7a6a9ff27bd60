"""The form of a volunteer's preferences for this project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from credit.models import PROCESSOR_TYPES, App
from portal.languages.fields import LocalisedFloatField
from scheduler.engine.project_preferences import MAX_CPUS, MAX_JOBS, MAX_SHARE, TYPES, ProjectPreferences, bounded


class ProjectPreferencesForm(forms.Form):
    """Edit apps, limits and kinds of processors; an empty number means no limit."""

    apps = forms.MultipleChoiceField(
        label=_("Applications"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("If none is ticked, your computers get tasks of all of them, including any added later."),
    )
    other_apps = forms.BooleanField(
        label=_("Tasks of other applications if these have none"), required=False, initial=True
    )
    types = forms.MultipleChoiceField(
        label=_("Processors for this project"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=[(value, label) for value, label in PROCESSOR_TYPES.items() if value in TYPES],
    )
    max_jobs = forms.IntegerField(
        label=_("Maximum tasks at a time"),
        required=False,
        min_value=1,
        max_value=MAX_JOBS,
        help_text=_("On each computer, including waiting ones. Empty: as many as the project allows."),
    )
    max_cpus = forms.IntegerField(
        label=_("Maximum processors"),
        required=False,
        min_value=1,
        max_value=MAX_CPUS,
        help_text=_(
            "A computer gets work as if it had no more than these. BOINC may still run single-processor tasks on all "
            "its processors: limit the tasks, too, if that is too much."
        ),
    )
    max_threads = forms.IntegerField(
        label=_("Maximum processors for one task"),
        required=False,
        min_value=1,
        max_value=MAX_CPUS,
        help_text=_("For programs that use several at once. With fewer, several tasks run side by side."),
    )
    tests = forms.BooleanField(
        label=_("Versions that are being tested, if I agreed to test"), required=False, initial=True
    )
    resource_share = LocalisedFloatField(
        label=_("Resource share"),
        required=False,
        min_value=0,
        max_value=MAX_SHARE,
        help_text=_(
            "How much this project gets compared with your others; 100 is usual. Only for computers that were added to "
            "it without an account manager. Empty: 100."
        ),
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, shown: ProjectPreferences) -> None:
        initial = {
            "apps": [str(app) for app in shown.apps],
            "other_apps": shown.other_apps,
            "types": [type_ for type_ in TYPES if type_ not in shown.refused_types],
            "max_jobs": shown.max_jobs,
            "max_cpus": shown.max_cpus,
            "max_threads": shown.max_threads,
            "tests": shown.tests,
            "resource_share": shown.resource_share,
        }
        super().__init__(data, initial=initial)
        apps = App.objects.filter(is_deprecated=False).order_by("user_friendly_name", "name")
        field = self.fields["apps"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(str(app.pk), app.user_friendly_name or app.name) for app in apps]

    def clean_types(self) -> list[str]:
        types: list[str] = self.cleaned_data["types"]
        if not types:
            raise forms.ValidationError(_("Choose at least one, or remove the project from your computers."))
        return types

    @property
    def chosen(self) -> ProjectPreferences:
        values = dict(self.cleaned_data)
        types = values.pop("types")
        return bounded(
            **values | {"apps": map(int, values["apps"])}, refused_types=[t for t in TYPES if t not in types]
        )
