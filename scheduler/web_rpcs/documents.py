"""The replies: elements of elements, as BOINC's PHP writes them. Pure.

ISO-8859-1 as there; other characters are references, so whoever reads bytes gets what an XML reader gets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape

from portal.clients.messages import ClientReply

Value = str | int | float | bool | None | list["Element"]
Element = tuple[str, Value]
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def reply(root: str, elements: Iterable[Element]) -> ClientReply:
    """True is an empty element, None and False are left out."""
    text = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n' + "".join(_lines((root, list(elements)), ""))
    return ClientReply(text.encode("iso-8859-1", "xmlcharrefreplace"), content_type="text/xml; charset=ISO-8859-1")


def _lines(element: Element, indent: str) -> Iterable[str]:
    tag, value = element
    if isinstance(value, list):
        yield f"{indent}<{tag}>\n"
        for inner in value:
            yield from _lines(inner, indent + "    ")
        yield f"{indent}</{tag}>\n"
    elif value is True:
        yield f"{indent}<{tag}/>\n"
    elif value is not None and value is not False:
        yield f"{indent}<{tag}>{escape(_NOT_XML.sub('', str(value)))}</{tag}>\n"
