"""XML as BOINC's server keeps it in columns and files: elements in a row without a root, texts as programs wrote them.

A reader that asked for well-formed XML would refuse what clients have always taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

_OPENING: Final = re.compile(r"<(\w+)\s*(/)?>")
_END: Final = re.compile(r"\s*>")
_OFF: Final = frozenset({"0", "0.0", "no", "false"})


class Element(NamedTuple):
    tag: str
    inside: str

    @property
    def text(self) -> str:
        return unescape(self.inside).strip()


def elements(xml: str) -> Iterator[Element]:
    """The outermost elements, in order; what is never closed is none.

    Volunteers' clients wrote some of it, so it takes no longer than in proportion to its length.
    """
    at, unclosed = 0, set[str]()
    while (opening := _OPENING.search(xml, at)) is not None:
        at, tag = opening.end(), opening[1]
        if opening[2]:
            yield Element(tag, "")
        elif tag not in unclosed:
            closing = _closing(xml, tag, at)
            if closing is None:
                unclosed.add(tag)
                continue
            yield Element(tag, xml[at : closing[0]])
            at = closing[1]


def _closing(xml: str, tag: str, at: int) -> tuple[int, int] | None:
    """From where to where the next closing tag is."""
    closing = f"</{tag}"
    while (at := xml.find(closing, at)) >= 0:
        if (end := _END.match(xml, at + len(closing))) is not None:
            return at, end.end()
        at += 1
    return None


def sections(xml: str, tag: str) -> Iterator[dict[str, str]]:
    """The children of each element of this name; see `fields`."""
    return (fields(each.inside) for each in elements(xml) if each.tag == tag)


def fields(xml: str) -> dict[str, str]:
    """The texts of the elements by name. Of several the first counts, as for BOINC's own reader it mostly does."""
    found: dict[str, str] = {}
    for each in elements(xml):
        found.setdefault(each.tag, each.text)
    return found


def is_on(values: dict[str, str], tag: str) -> bool:
    """Whether a switch is there, such as <optional/> or <optional>1</optional>."""
    return tag in values and values[tag].lower() not in _OFF


def number(values: dict[str, str], tag: str, default: float = 0.0) -> float:
    """A number; what is none is the default, as C's atof has it."""
    match = re.match(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", values.get(tag, ""))
    return float(match[0]) if match else default
