"""The form of a certificate: the days, its subject, and the facts that it shows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounting.history.periods import MAX_YEARS, earliest_for
from extras.certificates.facts import ALL, SHOWN, CertificateRequest, Scopes
from extras.certificates.models import MAX_SHOWN_NAME
from extras.certificates.texts import SHOWN_LABELS
from portal.extras import awards_titles
from portal.people.name_field import NameField


class CertificateForm(forms.Form):
    """``today``: the last day that can be certified, up to now."""

    first = forms.DateField(
        label=gettext_lazy("First day"),
        widget=forms.DateInput({"type": "date"}, "%Y-%m-%d"),
        help_text=gettext_lazy("If your computers only started working later, the certificate begins on that day."),
    )
    last = forms.DateField(label=gettext_lazy("Last day"), widget=forms.DateInput({"type": "date"}, "%Y-%m-%d"))
    about = forms.ChoiceField(label=gettext_lazy("For"))
    name = NameField(
        label=gettext_lazy("Name on the certificate"),
        max_length=MAX_SHOWN_NAME,
        required=False,
        help_text=gettext_lazy("Your name as others should read it. If empty, the certificate does not name anyone."),
    )
    shows = forms.MultipleChoiceField(
        label=gettext_lazy("What it shows"),
        choices=[(name, SHOWN_LABELS[name]) for name in SHOWN],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one item for the certificate to show.")},
    )

    def __init__(
        self, data: Mapping[str, Any] | None, *, scopes: Scopes, today: dt.date, first: dt.date | None = None
    ) -> None:
        initial = {"first": first or today, "last": today, "about": ALL, "shows": ["credit", "run_time", "tasks"]}
        super().__init__(data, initial=initial)
        self.today = today
        shows = self.fields["shows"]
        assert isinstance(shows, forms.MultipleChoiceField)
        if not awards_titles():
            shows.choices = [(name, label) for name, label in SHOWN_LABELS.items() if name != "badges"]
        choice = self.fields["about"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [
            (ALL, _("All projects")),
            (_("One project"), [(key, project.name) for key, project in scopes.projects.items()]),
            (_("A subject"), list(scopes.subjects.items())),
        ]

    def clean_last(self) -> dt.date:
        last: dt.date = self.cleaned_data["last"]
        if last > self.today:
            raise ValidationError(
                _("This day is in the future. The last day cannot be later than %(day)s (UTC).") % {"day": self.today}
            )
        return last

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        first, last = cleaned.get("first"), cleaned.get("last")
        if first and last:
            if first > last:
                self.add_error("first", _("The first day is after the last one."))
            elif first < earliest_for(last):
                self.add_error("first", _("A certificate can cover at most %(years)s years.") % {"years": MAX_YEARS})
        return cleaned

    @property
    def request(self) -> CertificateRequest:
        """Return the valid form's request."""
        return CertificateRequest(
            **{name: self.cleaned_data[name] for name in ("first", "last", "about", "shows", "name")}
        )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the valid form's values, as a further form sends them."""
        request = self.request
        single = {"first": request.first, "last": request.last, "about": request.about, "name": request.name}
        return [(name, str(value)) for name, value in single.items()] + [("shows", part) for part in request.shows]
