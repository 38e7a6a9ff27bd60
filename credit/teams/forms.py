"""Checks what a founder enters."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from credit.models import Team


class TeamForm(forms.ModelForm):
    """A new team."""

    url = forms.URLField(label=_("Web address"), required=False, max_length=200, assume_scheme="https")

    class Meta:
        model = Team
        fields = ("name", "type", "url", "country", "description")

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())
