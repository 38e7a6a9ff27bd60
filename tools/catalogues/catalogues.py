"""Catalogues as files: read, updated with the texts of the site, and written.

A file is the same however its entries came about: they are sorted by text, and there are no dates or line numbers. So
branches that add texts can be merged, and a check can compare.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog, Message
from babel.messages.plurals import get_plural
from babel.messages.pofile import PoFileError, read_po, write_po

from portal.languages.sources import APPS, DOMAINS, Catalogue
from tools.catalogues.extraction import extracted

_HEADER: Final = """msgid ""
msgstr ""
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {plural_forms}\\n"

"""


class CatalogueError(Exception):
    """A file that is not a catalogue; the message names it and the reason."""


def parse(path: Path, language: str) -> Catalog:
    """Return the file's entries; none if there is no file."""
    if not path.exists():
        return Catalog(locale=language)
    try:
        return read_po(BytesIO(path.read_bytes()), locale=language, abort_invalid=True)
    except (PoFileError, ValueError) as error:
        raise CatalogueError(f"{path} cannot be read: {error}") from error


def entries(catalog: Catalog) -> list[Message]:
    """Return all entries except the header."""
    return [message for message in catalog if message.id]


def up_to_date(root: Path, place: Catalogue, language: str) -> Catalog:
    """Return the site's present texts with their translations.

    A text that this catalogue does not translate gets the translation of another app that has the same text.
    """
    catalogs = [parse(place.path(root, language), language)]
    catalogs += [parse(Catalogue(app, domain).path(root, language), language) for domain in DOMAINS for app in APPS]
    catalog = Catalog(locale=language)
    for message in entries(extracted(root, place, language)):
        catalog.add(
            message.id,
            _translation(message, catalogs),
            locations=message.locations,
            auto_comments=message.auto_comments,
            context=message.context,
        )
    return catalog


def _translation(message: Message, catalogs: Iterable[Catalog]) -> str | tuple[str, ...] | None:
    for catalog in catalogs:
        entry = catalog.get(message.id, message.context)
        # A text may have gained a plural since.
        if entry and entry.id == message.id and all(translations(entry)):
            forms = translations(entry)
            return tuple(forms) if isinstance(entry.id, tuple) else forms[0]
    return None


def translations(message: Message) -> list[str]:
    """Return the translation, or those of all plural forms; empty where one is missing."""
    if isinstance(message.string, str):
        return [message.string]
    return list(message.string or [""])


def as_text(catalog: Catalog, language: str) -> str:
    """Return the file's content; empty for a catalogue without entries, which has no file."""
    if not entries(catalog):
        return ""
    body = BytesIO()
    write_po(body, catalog, width=0, omit_header=True, sort_output=True, include_lineno=False)
    header = _HEADER.format(language=language, plural_forms=get_plural(language).plural_forms)
    return header + body.getvalue().decode().strip() + "\n"


def update(root: Path, places: Iterable[Catalogue], languages: Iterable[str]) -> list[Path]:
    """Update the files, and return those that changed. Entries whose text is gone are removed."""
    changed = []
    for language in languages:
        for place in places:
            path = place.path(root, language)
            text = as_text(up_to_date(root, place, language), language)
            if text == (path.read_text() if path.exists() else ""):
                continue
            changed.append(path)
            if text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            else:
                path.unlink()
    return changed
