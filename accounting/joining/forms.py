"""What volunteers enter to add many computers."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.computers.groups import MAX_GROUP_CHARS, group_name
from portal.computers.host_changes import HostChangeRefused

_LIFETIMES: Final = {"7": _("7 days"), "30": _("30 days"), "90": _("90 days"), "365": _("1 year")}
MAX_HOSTS: Final = 100_000


class JoinTokenForm(forms.Form):
    """A new join token."""

    group = forms.CharField(
        label=_("Group"),
        max_length=MAX_GROUP_CHARS,
        help_text=_("The computers land in this group of your list, for example “room 12”."),
    )
    max_hosts = forms.IntegerField(label=_("Number of computers"), min_value=1, max_value=MAX_HOSTS)
    days = forms.ChoiceField(label=_("It is valid for"), choices=list(_LIFETIMES.items()), initial="30")

    @property
    def lifetime(self) -> dt.timedelta:
        return dt.timedelta(days=int(self.cleaned_data["days"]))

    def clean_group(self) -> str:
        try:
            return group_name(self.cleaned_data["group"])
        except HostChangeRefused as refused:
            raise forms.ValidationError(str(refused)) from refused


class LimitRequestForm(forms.Form):
    """A request to add more computers within a day."""

    hosts_per_day = forms.IntegerField(label=_("Computers within a day"), min_value=1, max_value=MAX_HOSTS)
    reason = forms.CharField(
        label=_("What are they?"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("For example: the 400 computers of our computing centre, idle at night."),
    )
