"""Texts of scripts: Django's catalogue for JavaScript, at an address that changes with its content."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import translation
from django.views.decorators.http import require_safe
from django.views.i18n import JavaScriptCatalog

from portal.languages.sources import APPS

_YEAR_SECS: Final = 365 * 86_400


class _Catalogue(JavaScriptCatalog):
    # Our own apps only: the admin has a catalogue for its own scripts.
    packages = [app.replace("/", ".") for app in APPS]


_catalogue = _Catalogue.as_view()


@cache
def _version(language: str) -> str:
    """A hash of the texts in this language. It changes only with a release, as they do."""
    digest = hashlib.sha256()
    for folder in settings.LOCALE_PATHS:
        path = folder / language / "LC_MESSAGES" / "djangojs.mo"
        if path.exists():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def address() -> str:
    """The address of the scripts' texts in the language of this page."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return reverse("script_texts", args=[language, _version(language)])


@require_safe
def script_texts(request: HttpRequest, language: str, version: str) -> HttpResponseBase:
    """Define `gettext`, `ngettext` and `interpolate` for scripts, with the texts of a language."""
    if language not in dict(settings.LANGUAGES):
        raise Http404("there is no such language")
    with translation.override(language):
        response = _catalogue(request)
    # A page of another release may ask for this one's texts: it gets the present ones, but does not cache them.
    is_current = version == _version(language)
    response.headers["Cache-Control"] = f"public, max-age={_YEAR_SECS}, immutable" if is_current else "no-store"
    return response
