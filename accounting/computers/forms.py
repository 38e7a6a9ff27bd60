"""Forms of the volunteers' pages. They read and show; the verbs decide what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from accounting.choosing.choices import NO_WISH, ChoiceRefused, Wish
from accounting.choosing.reads import Selection
from accounting.computers.reads import COLOURS, HostPage, ProjectLine
from accounting.models import MAX_SHARE, PROCESSOR_TYPES, Project
from portal.models import MAX_NAME_CHARS, Host, Venue


class HostForm(forms.Form):
    """Name and place of a computer."""

    name = forms.CharField(
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text="Leave it empty for the name that the computer reports.",
    )
    venue = forms.ChoiceField(
        label="Place",
        choices=Venue.choices,
        required=False,
        help_text="Picks the preferences of that place, if you saved some for it. The computer learns of it at its "
        "next contact.",
    )

    @classmethod
    def of(cls, host: Host, data: QueryDict | None = None) -> HostForm:
        return cls(data, initial={"name": host.given_name, "venue": host.venue})


class WishForm(forms.Form):
    """What one computer shall do with one project."""

    excluded = forms.BooleanField(label="Not on this computer", required=False)
    suspended = forms.BooleanField(label="Suspend", required=False)
    no_new_work = forms.BooleanField(label="No new jobs", required=False)
    drop_waiting = forms.BooleanField(label="Drop jobs that have not begun", required=False)
    update_asked = forms.BooleanField(label="Contact the project at once", required=False)

    def __init__(self, line: ProjectLine, resources: Iterable[str], data: QueryDict | None = None) -> None:
        wish = line.wish
        super().__init__(
            data,
            prefix=f"p{line.project.pk}",
            initial={
                "excluded": wish.excluded,
                "suspended": wish.suspended,
                "no_new_work": wish.no_new_work,
                "update_asked": wish.update_asked,
                "drop_waiting": wish.drop_waiting,
                "no_rsc": list(wish.no_rsc),
            },
        )
        self.line = line
        choices = [(name, PROCESSOR_TYPES.get(name, name)) for name in resources]
        # On a computer with processors alone, "not the processors" would be "not on this computer".
        if len(choices) > 1 or wish.no_rsc:
            self.fields["no_rsc"] = forms.MultipleChoiceField(
                required=False, choices=choices, widget=forms.CheckboxSelectMultiple
            )

    @property
    def switches(self) -> list[forms.BoundField]:
        return [self[name] for name in ("excluded", "suspended", "no_new_work", "drop_waiting", "update_asked")]

    def wish(self) -> Wish:
        """The wish, once ``is_valid()``."""
        given: dict[str, Any] = self.cleaned_data
        return Wish(
            suspended=given["suspended"],
            no_new_work=given["no_new_work"],
            excluded=given["excluded"],
            no_rsc=tuple(given.get("no_rsc", ())),
            update_asked=given["update_asked"],
            drop_waiting=given["drop_waiting"],
        )


class TypesForm(forms.Form):
    """Which processors of a computer no project may use."""

    excluded_types = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, page: HostPage, data: QueryDict | None = None) -> None:
        super().__init__(data, initial={"excluded_types": page.excluded_types})
        choices = [(name, PROCESSOR_TYPES.get(name, name)) for name in page.resources]
        self.fields["excluded_types"].choices = choices  # type: ignore[attr-defined]  # typed as any field

    @property
    def is_useful(self) -> bool:
        """On a computer with processors alone it would be "no work at all"."""
        return len(self.fields["excluded_types"].choices) > 1 or bool(self.initial["excluded_types"])  # type: ignore[attr-defined]  # as above


def wish_forms(page: HostPage, data: QueryDict | None = None) -> list[WishForm]:
    return [
        WishForm(line, page.resources, data) for line in page.lines if line.project.is_active or line.wish != NO_WISH
    ]


class ShareForm(forms.Form):
    """Whether a project is chosen, and its resource share; an empty share is the project's default."""

    chosen = forms.BooleanField(required=False)
    share = forms.FloatField(
        required=False,
        min_value=0,
        max_value=MAX_SHARE,
        error_messages={
            "invalid": "Enter a number from 0 to 1 000 000, or nothing for the default.",
            "min_value": "The smallest share is 0.",
            "max_value": "The largest share is 1 000 000.",
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
        self.colour = project.colour % COLOURS
        self.fraction = selection.fraction(project.pk)
        self.lacks_account = selection.lacks_account(project.pk)
        self.fields["chosen"].label = project.name
        widget = self.fields["share"].widget
        widget.attrs.update({"placeholder": f"{project.default_share:g}", "step": "any", "class": "input--short"})
        self.fields["share"].label = f"Share of {project.name}"


def share_forms(selection: Selection, data: QueryDict | None = None) -> list[ShareForm]:
    """One form per active project, by name."""
    return [ShareForm(project, selection, data) for project in selection.projects.values() if project.is_active]


def chosen_shares(forms_: Sequence[ShareForm]) -> dict[int, float | None]:
    """The choice that valid forms make."""
    return {form.project.pk: form.cleaned_data["share"] for form in forms_ if form.cleaned_data["chosen"]}


def show_refusal(refusal: ChoiceRefused, forms_: Sequence[ShareForm]) -> bool:
    """Put the refusal beside the project that it is about; False if none of the forms is about it."""
    for form in forms_:
        if form.project.pk == refusal.project_id:
            form.add_error("share", str(refusal))
            return True
    return False
