"""The replies: nested elements, as BOINC's PHP writes them. Pure.

Declared as ISO-8859-1, as there. Characters beyond ASCII are references, so the bytes are valid in whatever encoding a
reader assumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from portal.clients.messages import ClientReply


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is XML already."""

    text: str


Value = Markup | str | int | float | bool | None | list["Element"]
Element = tuple[str, Value]
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def markup(text: str) -> Markup | None:
    """Return the single element that this text is, for use in a reply; None if it is not one."""
    text = _encoded(_NOT_XML.sub("", text)).decode("ascii")
    try:
        # Written by clients; expat refuses entities that grow beyond measure.
        ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError:
        return None
    return Markup(text)


def reply(root: str, elements: Iterable[Element]) -> ClientReply:
    """Render a reply. True is an empty element; None and False are left out."""
    text = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n' + "".join(_lines((root, list(elements)), ""))
    return ClientReply(_encoded(text), content_type="text/xml; charset=ISO-8859-1")


def _encoded(text: str) -> bytes:
    return text.encode("ascii", "xmlcharrefreplace")


def _lines(element: Element, indent: str) -> Iterable[str]:
    tag, value = element
    if isinstance(value, list):
        yield f"{indent}<{tag}>\n"
        for inner in value:
            yield from _lines(inner, indent + "    ")
        yield f"{indent}</{tag}>\n"
    elif isinstance(value, Markup):
        yield f"{indent}<{tag}>\n{_NOT_XML.sub('', value.text)}\n{indent}</{tag}>\n"
    elif value is True:
        yield f"{indent}<{tag}/>\n"
    elif value is not None and value is not False:
        yield f"{indent}<{tag}>{escape(_NOT_XML.sub('', str(value)))}</{tag}>\n"
