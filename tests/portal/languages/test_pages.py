"""No page shows a text that is not marked for translation, and each language has those of the pages it is for."""

from __future__ import annotations

import datetime as dt
import re
import socket
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.http import HttpResponse, HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import trans_real

from credit.engine.states import Outcome
from credit.models import HostAppVersion, Workunit
from portal.dashboard import record, registry, services
from portal.dashboard.reads import history_address
from portal.languages import zones
from portal.languages.messages import Message, at_place
from portal.languages.sentences import MessageField
from portal.languages.sources import WHOLE_LANGUAGES
from portal.models import Host, User
from portal.wire.keywords import KEYWORDS
from tests.portal.web.test_admin_matrix import APP_PAGES, PAGES
from tests.support.access_matrix import MATRIX
from tests.support.admin_rows import admin_rows
from tests.support.credit_factories import make_success
from tests.support.marked_texts import data_of_site, has_words, speak_in_brackets, unmarked
from tests.support.sessions import sign_in_lately
from tests.support.site_world import World

PROCESSES: Final = ("web", "pages", "worker", "beat", "celery", "requested")
"""Names of processes and queues, which operators read on their machines, too."""
# Texts for programs, or for the authors of programs: the description of the API is that of its schema.
FOR_SUBMITTERS: Final = re.compile(r"/(project/(batches|testing)|admin)/")
FOR_PROGRAMS: Final = re.compile(r"/(api/v1/|notices|project/[a-z_]+\.php|server_status)")


def pages_of_world(world: World) -> Iterator[tuple[str, str]]:
    """Who asks, and for what."""
    for line in MATRIX:
        path = "/" + (line.path or line.route).format(**world.ids)
        if line.method == "GET":
            yield from ((who, path) for who in ("owner", "stranger"))


def admin_pages(rows: dict[str, Model]) -> Iterator[str]:
    """Of each table the list, the form for a new row, and all pages of a row; each page of its own, each figure's."""
    for label, row in rows.items():
        name = f"admin:{label.replace('.', '_')}"
        yield from (reverse(f"{name}_{kind}") for kind in ("changelist", "add"))
        yield from (reverse(f"{name}_{kind}", args=[row.pk]) for kind in ("change", "history", "delete"))
    ids = {label.partition(".")[2]: str(row.pk) for label, row in rows.items()}
    yield from ("/" + (page.path or page.route).format(**ids) for page in PAGES)
    yield from (f"/admin/{app}/" for app in APP_PAGES)
    yield from (history_address(figure.name) for panel in registry.panels().values() for figure in panel.figures)


def text_of(response: HttpResponseBase) -> str:
    """The page's text; nothing for files and for pages that lead elsewhere."""
    is_page = response.headers.get("Content-Type", "").startswith("text/html") and response.status_code != 302
    return response.content.decode() if isinstance(response, HttpResponse) and is_page else ""


def offending(client: Client, who: str, path: str, data: list[str]) -> list[str]:
    if FOR_PROGRAMS.match(path) or path in settings.CLIENT_PATHS:
        return []
    return [f"{who} {path}: {text}" for text in unmarked(text_of(client.get(path)), data)]


def known_data(*more: str) -> list[str]:
    """What rows have, with messages that were stored, and what comes from lists of names."""
    registry.parts()  # their words are English from when they are imported
    message = at_place("alpha.example.org", Message("fetch_cut_off"))
    for model in apps.get_models():
        columns = {field.name: message for field in model._meta.fields if type(field) is MessageField}
        if "trouble" in columns:
            model._default_manager.update(**columns, trouble_since=timezone.now())
        elif columns:
            model._default_manager.update(**columns)
    keywords = [each.name for each in KEYWORDS.values()]
    zone_names = [name.replace("_", " ") for name in zones.names()]
    return data_of_site(settings.SITE_NAME, *keywords, *zone_names, *more)


def untranslated(seen: Iterable[tuple[str | None, str]], data: list[str], languages: Iterable[str]) -> list[str]:
    """Some data have translations, as subjects have; names of universities need none."""
    return [
        f"{language}: {text}"
        for language in languages
        for context, text in sorted(seen, key=str)
        if text not in data and has_words(text) and not is_translated(text, context, language)
    ]


@pytest.mark.django_db
def test_no_page_shows_an_unmarked_text(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    data = known_data()
    texts = speak_in_brackets(monkeypatch)
    pages = sorted(pages_of_world(world), key=lambda page: bool(FOR_SUBMITTERS.match(page[1])))
    found, for_volunteers = [], set[tuple[str | None, str]]()
    for who, path in pages:
        found += offending(world.clients[who], who, path, data)
        if not FOR_SUBMITTERS.match(path):
            for_volunteers = set(texts.seen)
    assert len(for_volunteers) > 200
    monkeypatch.undo()
    missing = untranslated(for_volunteers, data, settings.TRANSLATIONS)
    missing += untranslated(texts.seen, data, WHOLE_LANGUAGES & set(settings.TRANSLATIONS))
    assert found == [], "unmarked texts:\n" + "\n".join(dict.fromkeys(found))
    assert missing == [], "texts without a translation:\n" + "\n".join(missing)


@pytest.mark.django_db
def test_no_page_of_the_admin_shows_an_unmarked_text(
    alice: User, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = admin_rows(alice)
    workunit, host = Workunit.objects.get(), Host.objects.create(owner=alice)
    HostAppVersion.objects.create(host=host, app=workunit.app, failing_share=0.5)
    hour_ago = timezone.now() - dt.timedelta(hours=1)
    for status in (1, 195, -185):
        make_success(workunit, host, outcome=Outcome.CLIENT_ERROR, exit_status=status, received_at=hour_ago)
    record.take_all(timezone.now())
    # A fault of a draft begins with its field.
    data = known_data(socket.gethostname(), "files", "script:energy", *PROCESSES, *map(str, services.folders()))
    client = Client()
    sign_in_lately(client, operator)
    texts = speak_in_brackets(monkeypatch)
    found = [text for path in admin_pages(rows) for text in offending(client, "staff", path, data)]
    assert len(texts.seen) > 200
    monkeypatch.undo()
    missing = untranslated(texts.seen, data, WHOLE_LANGUAGES & set(settings.TRANSLATIONS))
    assert found == [], "unmarked texts:\n" + "\n".join(dict.fromkeys(found))
    assert missing == [], "texts without a translation:\n" + "\n".join(missing)


def is_translated(text: str, context: str | None, language: str) -> bool:
    if text in dict(settings.LANGUAGES).values():
        return True  # each is shown in its own language
    key = f"{context}\x04{text}" if context else text
    catalog: Any = vars(trans_real.translation(language))["_catalog"]
    return any(_has(catalog, each) for each in (key, (key, 0)))


def _has(catalog: Any, key: object) -> bool:
    try:
        return bool(catalog[key])
    except KeyError:
        return False


@pytest.mark.django_db
def test_what_libraries_say_on_forms_addresses_people_as_the_site_does(client: Client) -> None:
    """Django and allauth say “usted” in Spanish; this site does not."""
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "es"
    sign_up = text_of(client.post("/account/signup/", {"email": "x", "password1": "a"}))
    assert "Debe tener al menos 8 caracteres." in sign_up and "Escribe una dirección de correo válida." in sign_up
    log_in = text_of(client.post("/account/login/", {"login": "nobody@example.org", "password": "wrong"}))
    assert "La dirección de correo o la contraseña no son correctas." in log_in
    assert not re.search(
        r"\b[Ss]us? (?:contraseña|otra)|Introduzca|Asegúrese|ha indicado|Ha olvidado", sign_up + log_in
    )
