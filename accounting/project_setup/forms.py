"""Operators' forms for setting a project up."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminEmailInputWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounting.engine.choice.facts import MAX_SHARE
from accounting.models import PROCESSOR_TYPES, Project
from accounting.project_setup.adding import NewProject
from accounting.project_setup.changes import keyword_text, version_text
from accounting.projects.addresses import project_at
from accounting.wire.project_config import ProjectConfig
from accounting.wire.requests import URLError, canonical_url
from portal.languages.sentences import sentence
from portal.wire import keywords as choice_keywords


def clean_key(key: str) -> str:
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValidationError(gettext("An account key must be printable ASCII text without spaces."))
    return key


class UrlForm(forms.Form):
    """The master URL of a project, as somebody typed it."""

    url = forms.CharField(
        label=_("Master URL"),
        max_length=255,
        help_text=_("As published by the project, such as https://project.example.org/science/."),
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True, "inputmode": "url"}),
    )

    def clean_url(self) -> str:
        try:
            return canonical_url(self.cleaned_data["url"])
        except URLError as error:
            raise ValidationError(
                gettext("Clients would refuse this: %(error)s.") % {"error": sentence(error.message)}
            ) from error


class FoundForm(forms.Form):
    """A new project, filled in from its own description."""

    name = forms.CharField(label=_("Name"), max_length=100, widget=UnfoldAdminTextInputWidget)
    master_url = forms.ChoiceField(
        label=_("Master URL"),
        widget=UnfoldAdminRadioSelectWidget,
        help_text=_("Computers keep this address permanently, and it is what is signed."),
    )
    web_url = forms.URLField(
        label=_("Website"), required=False, max_length=255, assume_scheme="https", widget=UnfoldAdminTextInputWidget
    )
    summary = forms.CharField(
        label=_("Summary of its science in one line"), required=False, max_length=200, widget=UnfoldAdminTextInputWidget
    )
    default_share = forms.FloatField(
        label=_("Default resource share"),
        min_value=0,
        max_value=MAX_SHARE,
        initial=100,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}),
    )
    account_mode = forms.ChoiceField(
        label=_("Accounts"),
        choices=Project.Account,
        initial=Project.Account.SHARED,
        widget=UnfoldAdminRadioSelectWidget,
    )
    versions = forms.MultipleChoiceField(
        label=_("Platforms"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("The platforms the project has programs for. If none is ticked, it counts as running everywhere."),
    )
    takes_platforms = forms.BooleanField(
        label=_("Apply changed platforms automatically"),
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
    )
    keywords = forms.MultipleChoiceField(
        label=_("Keywords"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("The subjects given by the project. You can change keywords and their weights later."),
    )

    def __init__(self, config: ProjectConfig, typed: str, data: Any = None) -> None:
        self._config = config
        self._typed = typed
        self._versions = {
            f"{platform} {type_}": (platform, type_) for platform, type_ in config.versions if type_ in PROCESSOR_TYPES
        }
        self._keywords = {str(id_): part for id_, part in config.keywords.items() if choice_keywords.known([id_])}
        urls = _urls(config, typed)
        initial = {
            "name": config.name,
            "web_url": urls[0],
            "master_url": urls[0],
            "versions": list(self._versions),
            "keywords": list(self._keywords),
        }
        super().__init__(data, initial=initial)
        self._fill("master_url", [(url, url) for url in urls])
        self._fill("versions", [(key, version_text(*version)) for key, version in self._versions.items()])
        self._fill("keywords", [(id_, keyword_text(int(id_), part)) for id_, part in self._keywords.items()])

    def _fill(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices
        if not choices:
            del self.fields[name]

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if Project.objects.filter(name=name).exists():
            raise ValidationError(gettext("Another project on this site has that name."))
        return name

    def clean_master_url(self) -> str:
        url = str(self.cleaned_data["master_url"])
        if project_at(url) is not None:
            raise ValidationError(gettext("This project is already on this site."))
        return url

    def chosen(self) -> NewProject:
        """Return the values of a valid form."""
        given = self.cleaned_data
        return NewProject(
            name=given["name"],
            master_url=given["master_url"],
            asked_url=self._typed,
            web_url=given["web_url"],
            summary=given["summary"],
            default_share=given["default_share"],
            account_mode=given["account_mode"],
            takes_platforms=given["takes_platforms"],
            versions=[self._versions[key] for key in given.get("versions", [])],
            keywords={int(id_): self._keywords[id_] for id_ in given.get("keywords", [])},
        )


def _urls(config: ProjectConfig, typed: str) -> list[str]:
    """Return the URL that the project states, if clients take it, and the one that was typed."""
    try:
        return list(dict.fromkeys([canonical_url(config.master_url), typed]))
    except ValueError:
        return [typed]


class SignatureForm(forms.Form):
    """A signature that was made elsewhere."""

    signature = forms.CharField(
        label=_("Signature"),
        max_length=16_384,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false", "class": "font-mono"}),
    )


class LookUpForm(forms.Form):
    """The login of an account at the project, for one request."""

    email = forms.CharField(
        label=_("E-mail address, or user name if the project uses those"),
        max_length=254,
        widget=UnfoldAdminEmailInputWidget(attrs={"type": "text", "autocomplete": "off"}),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=255,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text=_(
            "Used for this request only and not stored. The site sends what BOINC clients send for a password."
        ),
    )


class KeyForm(forms.Form):
    """An existing account key."""

    account_key = forms.CharField(
        label=_("Account key"),
        max_length=255,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text=_(
            "The authenticator, preferably a weak one (with an underscore). It is stored encrypted and never "
            "shown again."
        ),
    )

    def clean_account_key(self) -> str:
        return clean_key(str(self.cleaned_data["account_key"]))
