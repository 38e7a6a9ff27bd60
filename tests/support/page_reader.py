"""Reads pages for tests: elements by name and attributes, and the words that a visitor sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.test import Client

_SILENT = {"script", "style", "title"}
_VOID = {"meta", "link", "input", "img", "br", "hr", "path", "rect", "use", "circle"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    text: str = ""


@dataclass
class _Reader(HTMLParser):
    elements: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        parents = tuple(element.tag for element in self.open)
        element = Element(tag, {name: value or "" for name, value in attrs}, parents)
        self.elements.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data
        if not any(element.tag in _SILENT for element in self.open):
            self.words.append(data)


class Page:
    """A page, or a part of one, from its text."""

    def __init__(self, text: str) -> None:
        reader = _Reader()
        reader.feed(text)
        reader.close()
        self.elements = reader.elements
        # Ordinary white space only: the thin and the unbreakable spaces of numbers are part of what is seen.
        self.words = " ".join(part for part in "".join(reader.words).replace("\n", " ").split(" ") if part)

    def all(self, tag: str, within: str = "", **attributes: str) -> list[Element]:
        """The elements of that name with these attributes ("data_kind" for "data-kind"), ``within`` a tag."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.tag == tag
            and wanted.items() <= element.attributes.items()
            and (not within or within in element.parents)
        ]

    def one(self, tag: str, within: str = "", **attributes: str) -> Element:
        """The only such element."""
        (found,) = self.all(tag, within, **attributes)
        return found


def page_of(client: Client, address: str, data: Any = None, headers: Any = None) -> Page:
    """Fetch the page that this browser gets."""
    reply = client.get(address, data, headers=headers)
    assert reply.status_code == 200
    return Page(reply.content.decode())
