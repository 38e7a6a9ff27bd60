"""The forms of a computer's page. They only parse and display; the modules that save decide what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from accounting.computers.reads import HostPage, ProjectLine
from accounting.engine.host_wishes import NO_WISHES, HostWishes
from accounting.models import processor_name
from portal.computers.groups import MAX_GROUP_CHARS, MAX_GROUPS
from portal.models import MAX_NAME_CHARS, Host, Venue


class HostForm(forms.Form):
    """A computer's name and place."""

    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text=_("Leave empty to use the name that the computer reports."),
    )
    venue = forms.ChoiceField(
        label=_("Place"),
        choices=Venue.choices,
        required=False,
        help_text=_("Selects the preferences of that place, if you have saved any. Takes effect at the next sync."),
    )

    groups = forms.CharField(
        label=_("Groups"),
        required=False,
        max_length=MAX_GROUPS * (MAX_GROUP_CHARS + 2),
        help_text=_("Your own words, separated by commas, for filtering the list of computers."),
    )

    @classmethod
    def of(cls, host: Host, data: QueryDict | None = None) -> HostForm:
        return cls(data, initial={"name": host.given_name, "venue": host.venue, "groups": ", ".join(host.groups)})


class WishForm(forms.Form):
    """A computer's settings for one project."""

    excluded = forms.BooleanField(label=_("Not on this computer"), required=False)
    suspended = forms.BooleanField(label=_("Suspend"), required=False)
    no_new_work = forms.BooleanField(label=_("No new tasks"), required=False)
    drop_waiting = forms.BooleanField(label=_("Drop tasks that have not started"), required=False)
    update_asked = forms.BooleanField(label=_("Contact the project now"), required=False)

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
        choices = [(name, processor_name(name)) for name in resources]
        # On a computer without GPUs, excluding the processors would mean "not on this computer".
        if len(choices) > 1 or wish.no_rsc:
            self.fields["no_rsc"] = forms.MultipleChoiceField(
                required=False, choices=choices, widget=forms.CheckboxSelectMultiple
            )

    @property
    def switches(self) -> list[forms.BoundField]:
        return [self[name] for name in ("excluded", "suspended", "no_new_work", "drop_waiting", "update_asked")]

    def wish(self) -> HostWishes:
        """The wish; only valid after ``is_valid()``."""
        given: dict[str, Any] = self.cleaned_data
        return HostWishes(
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
        choices = [(name, processor_name(name)) for name in page.resources]
        self.fields["excluded_types"].choices = choices  # type: ignore[attr-defined]  # typed as any field

    @property
    def is_useful(self) -> bool:
        """False for a computer without GPUs, where it would mean "no work at all"."""
        return len(self.fields["excluded_types"].choices) > 1 or bool(self.initial["excluded_types"])  # type: ignore[attr-defined]  # as above


def wish_forms(page: HostPage, data: QueryDict | None = None) -> list[WishForm]:
    return [
        WishForm(line, page.resources, data) for line in page.lines if line.project.is_active or line.wish != NO_WISHES
    ]
