"""No page shows a text that is not marked for translation, and German has all texts that pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.http import HttpResponse, HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils.translation import trans_real

from portal.languages import zones
from portal.wire.keywords import KEYWORDS
from tests.portal.web.test_access_matrix import MATRIX
from tests.support.marked_texts import STORED_FAULTS, data_of_site, has_words, speak_in_brackets, unmarked
from tests.support.site_world import World

# Texts for programs, or for the authors of programs: the description of the API is that of its schema.
FOR_PROGRAMS: Final = re.compile(r"/(api/v1/|notices|project/[a-z_]+\.php|server_status)")


def pages_of_world(world: World) -> Iterator[tuple[str, str]]:
    """Who asks, and for what."""
    for line in MATRIX:
        path = "/" + (line.path or line.route).format(**world.ids)
        if line.method == "GET":
            yield from ((who, path) for who in ("owner", "stranger"))


def admin_pages() -> Iterator[str]:
    """The list of each table, its form and its first row."""
    yield "/admin/"
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        yield reverse(f"{name}_add")
        row = model._default_manager.first()
        if row is not None:
            yield from (reverse(f"{name}_{kind}", args=[row.pk]) for kind in ("change", "history"))


def text_of(response: HttpResponseBase) -> str:
    """The page's text; nothing for files and for pages that lead elsewhere."""
    is_page = response.headers.get("Content-Type", "").startswith("text/html") and response.status_code != 302
    return response.content.decode() if isinstance(response, HttpResponse) and is_page else ""


def offending(client: Client, who: str, path: str, data: list[str]) -> list[str]:
    if FOR_PROGRAMS.match(path) or path in settings.CLIENT_PATHS:
        return []
    return [f"{who} {path}: {text}" for text in unmarked(text_of(client.get(path)), data)]


@pytest.mark.django_db
def test_no_page_shows_an_unmarked_text(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tables that have no page are named by Django's lists of permissions alone.
    tables = [str(each._meta.verbose_name) for each in apps.get_models() if not admin.site.is_registered(each)]
    keywords = [each.name for each in KEYWORDS.values()]
    zone_names = [name.replace("_", " ") for name in zones.names()]
    for label, column in STORED_FAULTS:
        apps.get_model(label).objects.update(**{column: "alpha.example.org: its answer was cut off."})
    data = data_of_site(settings.SITE_NAME, *tables, *keywords, *zone_names)
    texts = speak_in_brackets(monkeypatch)
    found: list[str] = []
    for who, path in pages_of_world(world):
        found += offending(world.clients[who], who, path, data)
    for path in admin_pages():
        found += offending(world.clients["staff"], "staff", path, data)
    assert len(texts.seen) > 200
    monkeypatch.undo()
    # Some data have translations, as subjects have; names of universities need none.
    missing = [
        text
        for context, text in sorted(texts.seen, key=str)
        if text not in data and has_words(text) and not is_translated(text, context)
    ]
    assert found == [], "unmarked texts:\n" + "\n".join(dict.fromkeys(found))
    assert missing == [], "texts without a German translation:\n" + "\n".join(missing)


def is_translated(text: str, context: str | None) -> bool:
    if text in dict(settings.LANGUAGES).values():
        return True  # each is shown in its own language
    key = f"{context}\x04{text}" if context else text
    catalog: Any = vars(trans_real.translation("de"))["_catalog"]
    return any(_has(catalog, each) for each in (key, (key, 0)))


def _has(catalog: Any, key: object) -> bool:
    try:
        return bool(catalog[key])
    except KeyError:
        return False
