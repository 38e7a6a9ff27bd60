"""Problems in catalogues: texts without a translation, and translations that would break a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from babel.messages.catalog import Message

from portal.languages.sources import Catalogue
from tools.catalogues.catalogues import as_text, entries, parse, translations, up_to_date

_PLACEHOLDER: Final = re.compile(r"%\(\w+\)[a-z]|%[sdf]|\{\w*\}")
_OTHER_THOUSANDS: Final = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[. \u00a0]\d{3})+(?!\d)")
_OF_LANGUAGE: Final = {
    "de": (re.compile(r"[a-zäöüß,] (?:Sie|Ihnen|Ihr(?:e[mnrs]?)?)\b"), "says “Sie” or “Ihr”; the site says “du”."),
    "fr": (re.compile(r" [:;?!»](?!\w)|« "), "has a sign that could be parted from its word at the end of a line."),
}
_TAG: Final = re.compile(r"</?[a-z][a-z0-9]*")


def problems(root: Path, places: Iterable[Catalogue], languages: Iterable[str]) -> list[str]:
    """Return one sentence for each problem, with the file's name first; none if all is well."""
    sentences: list[str] = []
    for language in languages:
        translated: dict[tuple[object, str | None], tuple[Path, list[str]]] = {}
        for place in places:
            path = place.path(root, language)
            name = path.relative_to(root)
            catalog = parse(path, language)
            if as_text(up_to_date(root, place, language), language) != (path.read_text() if path.exists() else ""):
                sentences.append(f"{name} is not up to date: run manage.py update_catalogues.")
            sentences += [f"{name}: {message.id!r} is obsolete." for message in catalog.obsolete.values()]
            for message in entries(catalog):
                sentences += [f"{name}: {problem}" for problem in _of_entry(message, language)]
                elsewhere, other = translated.setdefault((message.id, message.context), (name, translations(message)))
                if other != translations(message) and all(other) and all(translations(message)):
                    sentences.append(f"{name}: {message.id!r} is translated differently in {elsewhere}.")
    return sentences


def _of_entry(message: Message, language: str) -> Iterator[str]:
    if message.fuzzy:
        yield f"{message.id!r} is fuzzy."
    if not all(translations(message)):
        yield f"{message.id!r} has no translation."
        return
    texts = [message.id] if isinstance(message.id, str) else list(message.id)
    for form in translations(message):
        if difference := _difference(texts, form):
            yield f"{form!r} {difference}, unlike {texts[-1]!r}."
        if _OTHER_THOUSANDS.search(form):
            yield f"{form!r} has a number whose thousands are not separated by a narrow space."
        wrong, problem = _OF_LANGUAGE.get(language, (None, ""))
        if wrong and wrong.search(form):
            yield f"{form!r} {problem}"


def _difference(texts: list[str], form: str) -> str:
    """Return what the translation lacks, or has in addition. A form of a plural may leave the number out, as in
    English.
    """
    placeholders = [set(_placeholders(text)) for text in texts]
    here = set(_placeholders(form))
    if missing := placeholders[0].intersection(*placeholders) - here:
        return f"lacks {', '.join(sorted(missing))}"
    if unknown := here - placeholders[0].union(*placeholders):
        return f"has {', '.join(sorted(unknown))}"
    if len(texts) == 1 and Counter(_placeholders(texts[0])) != Counter(_placeholders(form)) and "%s" in form:
        return "has another number of %s"
    if Counter(_TAG.findall(form)) not in [Counter(_TAG.findall(text)) for text in texts]:
        return "has other tags"
    if [form.startswith("\n"), form.endswith("\n")] != [texts[-1].startswith("\n"), texts[-1].endswith("\n")]:
        return "begins or ends with another line"
    return ""


def _placeholders(text: str) -> list[str]:
    return _PLACEHOLDER.findall(text.replace("%%", ""))
