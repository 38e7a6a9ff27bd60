"""Checks what volunteers enter: about being shown, and about a new team."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from credit.models import Team
from portal.models import MAX_NAME_CHARS
from portal.people.accounts import ClientAuthError, check_name


class ListingForm(forms.Form):
    """Whether to be shown, and under which name."""

    is_shown = forms.BooleanField(required=False)
    shown_name = forms.CharField(
        label=_("Name in the lists"),
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text=_("Empty: the display name of your profile. If that is empty too, you are shown as “Anonymous”."),
    )

    def clean_shown_name(self) -> str:
        name = " ".join(str(self.cleaned_data["shown_name"]).split())
        if name:
            try:
                check_name(name)
            except ClientAuthError as error:
                raise ValidationError(_("Use only letters, digits and other visible characters.")) from error
        return name


class TeamForm(forms.ModelForm):
    """A new team."""

    url = forms.URLField(label=_("Web address"), required=False, max_length=200, assume_scheme="https")

    class Meta:
        model = Team
        fields = ("name", "type", "url", "country", "description")

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())
