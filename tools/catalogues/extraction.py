"""The marked texts of an app's files, read without GNU gettext: by Babel, and Django's `templatize` for templates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from django.utils.translation.template import templatize

from portal.languages import sources

_COMMENT_TAGS: Final = ("Translators:",)
# {{ number|plural:"task,tasks" }}: portal/templatetags/display.py looks the two words up.
_PLURAL_FILTER: Final = re.compile(r'\|plural:"([^",]+),([^",]+)"')
_KEYWORDS: Final[dict[str, Any]] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}


def extracted(root: Path, place: sources.Catalogue, language: str) -> Catalog:
    """Return all marked texts that a catalogue of this language has, without translations.

    Raises SyntaxError for a template that has other tags within a `blocktranslate`.
    """
    catalog = Catalog()
    is_whole = language in sources.WHOLE_LANGUAGES
    if place.domain == "djangojs":
        for path in sources.scripts(root, place.app):
            _add(catalog, root, path, "javascript", path.read_bytes(), is_whole)
        return catalog
    for path in sources.modules(root, place.app):
        _add(catalog, root, path, "python", path.read_bytes(), is_whole)
    for path in sources.templates(root, place.app):
        _add(catalog, root, path, "python", _as_python(path), is_whole)
    return catalog


def _as_python(path: Path) -> bytes:
    """Return the template as calls of gettext. Within brackets, Python ignores its indentation."""
    text = path.read_text()
    plurals = "".join(f"ngettext({one!r}, {many!r}, n)\n" for one, many in _PLURAL_FILTER.findall(text))
    return f"(\n{templatize(text, origin=str(path))}\n{plurals})".encode()


def _add(catalog: Catalog, root: Path, path: Path, method: str, source: bytes, is_whole: bool) -> None:
    name = path.relative_to(root).as_posix()
    if not (is_whole or sources.is_for_volunteers(name)):
        return
    hidden = set[int]()
    if not is_whole and sources.has_choices_alone(name):
        hidden = _lines_of_models(source)
    for line, texts, comments, context in _messages(method, source):
        if line not in hidden:
            catalog.add(texts, locations=[(name, 1)], auto_comments=comments, context=context)


def _lines_of_models(source: bytes) -> set[int]:
    """Return the lines of classes, without those of Django's choices, which may be within a model."""
    models, choices = set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            is_choices = any(ast.unparse(base).endswith("Choices") for base in node.bases)
            (choices if is_choices else models).update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return models - choices


def _messages(method: str, source: bytes) -> Iterator[tuple[int, Any, list[str], str | None]]:
    # Nearly all files of the engines and wire formats have no text, and tokenising takes long.
    if b"gettext" in source or b"_(" in source:
        yield from extract(method, BytesIO(source), _KEYWORDS, _COMMENT_TAGS, {"encoding": "utf-8"})
