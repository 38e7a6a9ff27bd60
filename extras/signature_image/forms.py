"""The form of a signature image."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from extras.signature_image.fonts import unwritable
from extras.signature_image.models import SignatureImage
from portal.extras import awards_titles
from portal.people.name_field import NameField


class SignatureImageForm(forms.ModelForm):
    """The facts that the image shows."""

    class Meta:
        model = SignatureImage
        fields = ("shown_name", "shows_total", "shows_average", "shows_projects", "shows_badges")
        field_classes = {"shown_name": NameField}
        labels = {
            "shown_name": gettext_lazy("Name on the image"),
            "shows_total": gettext_lazy("Estimated credit"),
            "shows_average": gettext_lazy("Recent average credit a day"),
            "shows_projects": gettext_lazy("The three projects with most credit"),
            "shows_badges": gettext_lazy("How many badges you have"),
        }
        help_texts = {
            "shown_name": gettext_lazy("Your name as others should read it. If empty, the image does not name anyone.")
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not awards_titles():
            del self.fields["shows_badges"]

    def clean_shown_name(self) -> str:
        name: str = self.cleaned_data["shown_name"]
        if lacks := unwritable(name):
            raise ValidationError(
                _(
                    "The picture cannot contain these characters: %(characters)s. It can contain Latin, Greek and"
                    " Cyrillic letters."
                )
                % {"characters": " ".join(lacks)}
            )
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not any(cleaned.get(name) for name in self.Meta.fields):
            raise ValidationError(_("Choose at least one item for the image to show."))
        return cleaned
