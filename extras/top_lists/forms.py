"""Check volunteers' input: about being shown, and about a new team."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from credit.models import Team
from portal.models import MAX_NAME_CHARS
from portal.people.name_field import NameField


class ListingForm(forms.Form):
    """Whether to be shown, and under which name."""

    is_shown = forms.BooleanField(required=False)
    shown_name = NameField(
        label=_("Name in the lists"),
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text=_("Empty: the display name of your profile. If that is empty too, you are shown as “Anonymous”."),
    )


class TeamForm(forms.ModelForm):
    """A new team."""

    url = forms.URLField(label=_("Web address"), required=False, max_length=200, assume_scheme="https")

    class Meta:
        model = Team
        fields = ("name", "type", "url", "country", "description")
        field_classes = {"name": NameField}
