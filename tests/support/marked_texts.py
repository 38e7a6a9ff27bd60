"""A language in which every text that is marked for translation stands in brackets, and what of a page does not.

``⟦Computers⟧`` is marked; ``Computers`` is not, unless it is data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Final

import pytest
from django.apps import apps
from django.db.models import Model

from portal.languages.messages import Message

OPEN, CLOSE = "⟦", "⟧"
# As a list of words for a filter: yesno:"yes,no".
_LIST: Final = re.compile(r"[\w ]+(,[\w ]+)+")
_SILENT: Final = {"script", "style", "code", "pre", "kbd", "samp", "canvas"}
_VOID: Final = {"meta", "link", "input", "img", "br", "hr", "path", "rect", "use", "circle", "line", "polyline"}
_SPOKEN: Final = {"title", "aria-label", "aria-description", "placeholder", "alt"}
_BUTTONS: Final = {"submit", "button", "reset"}
# Addresses, the names of functions, tasks, settings, figures and files, and hashes that are not shown.
_ADDRESS: Final = re.compile(
    r"https?://\S+|\b\w+(?:\.\w+){2,}\b|\b(?:[Aa]m|credit|jobs|services|status)\.\w+|\b\w+\.(?:xml|json|csv|zip)\b|\b[a-z]+(?:_[a-z0-9]+)+\b|\S*\*{5,}|\bmd5\b|\b[0-9A-Z]{4}(?:-[0-9A-Z]{4})+\b"
)
# Pages part thousands by a narrow space, in English, too.
_COMMA: Final = re.compile(r"\d,\d{3}\b")
_WORD: Final = re.compile(r"[^\W\d_⁰¹²³⁴-⁹]{2,}")
# Names and units that are the same in every language.
NAMES: Final = re.compile(
    r"API|ARM|CUDA|OpenCL|Android|ATI|BOINC|CPU|CPUs|CSV|CPID|DNS|English|Deutsch|Español|Français|FLOPS|FLOPs|GFLOPS|TFLOPS|GPU|GPUs|GHz|GiB|GitHub"
    r"|HTML|HTTP|JSON|KiB|MB|MiB|MHz|RAC|REC|REST|RPC|TiB|URL|UTC|XML|ZIP|credits|min|https|http|ntfy|www|org|boinc|"
    r"berkeley|edu|PostgreSQL|Valkey|WSL|Windows|macOS|Linux"
)


@dataclass
class Texts:
    """The texts that were asked for, by context: `gettext` under another name."""

    seen: set[tuple[str | None, str]] = field(default_factory=set)

    def bracketed(self, text: str, context: str | None = None, one: str = "") -> str:
        """The text in brackets. ``one``: the singular, by which catalogues have a plural."""
        self.seen.add((context, one or text))
        if _LIST.fullmatch(text):
            return ",".join(f"{OPEN}{part}{CLOSE}" for part in text.split(","))
        return f"{OPEN}{text}{CLOSE}" if text else text


def speak_in_brackets(monkeypatch: pytest.MonkeyPatch) -> Texts:
    """Have every marked text answered in brackets from now on."""
    texts = Texts()

    def gettext(message: str) -> str:
        return texts.bracketed(str(message))

    def ngettext(one: str, many: str, number: float) -> str:
        return texts.bracketed(str(one if number == 1 else many), one=str(one))

    def pgettext(context: str, message: str) -> str:
        return texts.bracketed(str(message), context)

    def npgettext(context: str, one: str, many: str, number: float) -> str:
        return texts.bracketed(str(one if number == 1 else many), context, str(one))

    for fake in (gettext, ngettext, pgettext, npgettext):
        monkeypatch.setattr(f"django.utils.translation._trans.{fake.__name__}", fake)
    return texts


@dataclass
class _Reader(HTMLParser):
    """The texts of a page that stand outside brackets, which may be around tags."""

    outside: list[str] = field(default_factory=list)
    with_commas: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if self.depth == 0:
            spoken = [value or "" for name, value in attrs if name in _SPOKEN]
            if tag == "input" and values.get("type") in _BUTTONS:
                spoken.append(values.get("value") or "")
            # The exact time on hover is the same for all.
            self.outside += [_without_brackets(value) for value in spoken]
        if tag not in _VOID:
            # The names of icons, which a font draws.
            is_icon = "material-symbols" in (values.get("class") or "")
            self.open.append("script" if is_icon else tag)
            self.tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.tags:
            while self.tags.pop() != tag:
                self.open.pop()
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if _SILENT.intersection(self.open):
            return
        if _COMMA.search(data):
            self.with_commas.append(data.strip()[:150])
        found = []
        for part in re.split(f"([{OPEN}{CLOSE}])", data):
            if part in (OPEN, CLOSE):
                self.depth += 1 if part == OPEN else -1
            elif self.depth == 0:
                found.append(part)
        self.outside.append(" ".join(" ".join(found).split()))


def _without_brackets(text: str) -> str:
    before = None
    while before != text:
        before, text = text, re.sub(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}", " ", text)
    return " ".join(text.split())


def unmarked(page: str, data: Iterable[str]) -> list[str]:
    """The texts of the page outside brackets that have words in them which are neither data nor names and units, and
    those with thousands in Python's notation.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    found = reader.with_commas
    for text in reader.outside:
        rest = _ADDRESS.sub(" ", text)
        if not has_words(rest):
            continue
        for value in data:
            if value in rest:
                rest = rest.replace(value, " ")
        if has_words(rest):
            found.append(text[:150])
    return found


def has_words(text: str) -> bool:
    """Whether there is a word that is no name or unit."""
    return any(not NAMES.fullmatch(word) for word in _WORD.findall(text))


_NO_DATA: Final = {
    "auth.Group",
    "auth.Permission",
    "contenttypes.ContentType",
    "portal.OperatingFigure",
    "portal.OperatingTable",
}


def data_of_site(*more: str) -> list[str]:
    """All texts that rows have, and ``more``; longest first, so that no name of a thing is cut by a shorter one."""
    found = set(more)
    for model in apps.get_models():
        if model._meta.label not in _NO_DATA and not model._meta.proxy:
            for row in model._default_manager.all()[:1000]:
                found.update(_texts_of(row))
    found |= {text[:1].upper() + text[1:] for text in found}
    return sorted((text for text in found if len(text) > 1), key=len, reverse=True)


def _texts_of(row: Model) -> Iterator[str]:
    for concrete_field in row._meta.concrete_fields:
        # The words of a choice are marked where it is declared.
        if not concrete_field.choices:
            yield from _strings(getattr(row, concrete_field.attname))
    # Addresses are shown by their first part.
    yield str(getattr(row, "email", "")).partition("@")[0]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, Message):
        yield from _strings(value.args)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
