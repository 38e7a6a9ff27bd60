"""The form that chooses projects by hand."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounting.choosing.choices import ChoiceRefused
from accounting.choosing.reads import Selection
from accounting.engine.choice.facts import MAX_SHARE
from accounting.models import Project, ProjectProfile
from portal.languages.fields import LocalisedFloatField


class ShareForm(forms.Form):
    """Whether a project is chosen, and its resource share; an empty share is the project's default."""

    chosen = forms.BooleanField(required=False)
    share = LocalisedFloatField(
        required=False,
        min_value=0,
        max_value=MAX_SHARE,
        error_messages={
            "invalid": _("Enter a number from 0 to 1\u202f000\u202f000, or leave it empty for the default."),
            "min_value": _("The smallest share is 0."),
            "max_value": _("The largest share is 1\u202f000\u202f000."),
        },
    )

    def __init__(self, project: Project, selection: Selection, data: QueryDict | None = None) -> None:
        row = selection.rows.get(project.pk)
        share = row.resource_share if row is not None else None
        super().__init__(
            data,
            prefix=f"p{project.pk}",
            initial={
                "chosen": row is not None and row.is_chosen,
                "share": int(share) if share is not None and share == int(share) else share,
            },
        )
        self.project = project
        self.colour = project.data_colour
        self.says_down = False
        self.fraction = selection.fraction(project.pk)
        self.has_own_accounts = project.has_own_accounts
        self.lacks_account = selection.lacks_account(project.pk)
        self.fields["chosen"].label = project.name
        widget = self.fields["share"].widget
        widget.attrs.update({"placeholder": f"{project.default_share:g}", "step": "any", "class": "input--short"})
        self.fields["share"].label = gettext("Share of %(project)s") % {"project": project.name}


def share_forms(selection: Selection, data: QueryDict | None) -> list[ShareForm]:
    """One form per active project, by name."""
    forms_ = [ShareForm(project, selection, data) for project in selection.projects.values() if project.is_active]
    down = set(ProjectProfile.objects.exclude(says_down_since=None).values_list("project", flat=True))
    for form in forms_:
        form.says_down = form.project.pk in down
    return forms_


def chosen_shares(forms_: Sequence[ShareForm]) -> dict[int, float | None]:
    """Return the choice that valid forms make."""
    return {form.project.pk: form.cleaned_data["share"] for form in forms_ if form.cleaned_data["chosen"]}


def shares_for_later(forms_: Sequence[ShareForm]) -> dict[int, float | None]:
    """Return the shares that were typed for projects that are not ticked."""
    return {
        form.project.pk: form.cleaned_data["share"]
        for form in forms_
        if "share" in form.changed_data and not form.cleaned_data["chosen"]
    }


def show_refusal(refusal: ChoiceRefused, forms_: Sequence[ShareForm]) -> bool:
    """Show the refusal beside its project; False if none of the forms is about it."""
    for form in forms_:
        if form.project.pk == refusal.project_id:
            form.add_error("share", str(refusal))
            return True
    return False
