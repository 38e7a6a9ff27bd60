"""Read a BOINC client's files section by section, so that an error can name the file, the tag and the line.

The client's files look like XML but often are not well-formed ("Fish & chips" as a project's name). So this module uses
`portal.wire.scanner`, which reads as the client does, in time that grows linearly with the file. Entities are never
expanded, and a document type is refused. A schema names the sections to read; all others are skipped.
Pure: bytes in, sections out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from emulator.engine.scenario import ScenarioError
from portal.languages.messages import Message, at_place
from portal.wire.scanner import Limits, ProtocolError, TagScanner, as_bool, as_float, as_int, as_text

STATE_BYTES_MAX: Final = 16 << 20
SETTINGS_BYTES_MAX: Final = 1 << 20
TEXT_CHARS_MAX: Final = 255

Schema = Mapping[str, "Schema"]
"""The sections to enter, by name, each with the sections to enter inside it."""

_DOCTYPE = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_ATTRIBUTES_BYTES: Final = 300


class ScenarioFileError(ScenarioError):
    """A file from which no scenario can be made. `line` counts from 1; it is 0 if the whole file is wrong."""

    def __init__(self, file: str, tag: str, line: int, why: str | Message, /, **args: object) -> None:
        place = f", line {line}" if line else ""
        super().__init__(f"{file}{place}, <{tag}>" if tag else f"{file}{place}", why, **args)
        self.file = file
        self.tag = tag
        self.line = line

    @property
    def message(self) -> Message:
        if not self.line:
            return super().message
        place = {"file": self.file, "line": str(self.line)}
        return at_place(
            Message("place_line_tag", **place, tag=self.tag) if self.tag else Message("place_line", **place), self.why
        )


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's name and bytes, for the positions in errors."""

    file: str
    data: bytes = field(repr=False)

    def error(self, tag: str, at: int, why: str | Message, /, **args: object) -> ScenarioFileError:
        """Return the error for the text at that byte."""
        return ScenarioFileError(self.file, tag, self.data.count(b"\n", 0, at) + 1, why, **args)


@dataclass(slots=True)
class Section:
    """One element: its plain children by tag (the last of a name counts, as in the client) and its sections.

    `used` are the tags of the children that were read; `skipped` counts the children with children that the schema does
    not enter, by tag.

    The readers raise ScenarioFileError, with the child's line, for an invalid number or one out of range.
    """

    source: SourceFile
    name: str
    at: int
    leaves: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    sections: list["Section"] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    skipped: dict[str, int] = field(default_factory=dict)
    earlier: list[tuple[str, bytes]] = field(default_factory=list)  # plain children with a later one of their tag

    def error(self, tag: str, why: str | Message, /, **args: object) -> ScenarioFileError:
        """Return the error about that child, or about the whole section when it has none of that tag."""
        at = self.leaves[tag][1] if tag in self.leaves else self.at
        return self.source.error(tag, at, why, **args)

    def has(self, tag: str) -> bool:
        """Whether there is a plain child of that tag, which counts as used then."""
        self.used.add(tag)
        return tag in self.leaves

    def named(self, name: str) -> list["Section"]:
        """Return the sections of that name, in their order."""
        return [section for section in self.sections if section.name == name]

    def text(self, tag: str, default: str = "") -> str:
        """Return a child's text, entities decoded once; at most 255 characters."""
        if not self.has(tag):
            return default
        raw, at = self.leaves[tag]
        try:
            return as_text(tag, raw, TEXT_CHARS_MAX, entities=True)
        except ProtocolError:
            raise self.source.error(tag, at, "text_too_long", limit=TEXT_CHARS_MAX) from None

    def texts(self, tag: str) -> list[str]:
        """Return the texts of all children of that tag, in their order."""
        before = [raw.decode(errors="replace").strip() for name, raw in self.earlier if name == tag]
        return [*before, self.text(tag)] if self.has(tag) else []

    def number(self, tag: str, default: float, low: float, high: float) -> float:
        """Return a child's number from low to high, or the default when there is no such child."""
        if not self.has(tag):
            return default
        raw, at = self.leaves[tag]
        try:
            return as_float(tag, raw, low, high)
        except ProtocolError:
            raise self.source.error(tag, at, "not_a_decimal", low=float(low), high=float(high)) from None

    def integer(self, tag: str, default: int, low: int, high: int) -> int:
        """Return a child's integer from low to high, or the default when there is no such child."""
        if not self.has(tag):
            return default
        raw, at = self.leaves[tag]
        try:
            return as_int(tag, raw, low, high)
        except ProtocolError:
            raise self.source.error(tag, at, "not_an_integer", low=low, high=high) from None

    def flag(self, tag: str) -> bool:
        """Return whether a child is there and true (`<x/>`, or a number other than 0)."""
        if not self.has(tag):
            return False
        raw, at = self.leaves[tag]
        try:
            return as_bool(tag, raw)
        except ProtocolError as error:
            raise self.source.error(tag, at, error.reason) from None

    def attribute(self, name: str) -> str:
        """Return the value of an attribute of the opening tag; "" without one."""
        opening = self.source.data[self.at : self.at + _ATTRIBUTES_BYTES].split(b">", 1)[0]
        match = re.search(rb"\b" + name.encode() + rb"\s*=\s*[\"']([^\"']*)[\"']", opening)
        return match[1].decode(errors="replace") if match else ""


def read_sections(source: SourceFile, root: str, schema: Schema, bytes_max: int) -> Iterator[Section]:
    """Yield the sections of the schema that are direct children of the root element, then the root itself.

    The root comes last, with its own plain children and no sections. Raises ScenarioFileError when the file is larger
    than bytes_max, has the wrong format, or ends early.
    """
    limits = Limits(body_bytes=bytes_max, depth=32, elements=1_000_000, text_bytes=bytes_max, unclosed=100)
    declared = _DOCTYPE.search(source.data[:bytes_max])
    if declared is not None:
        raise source.error("!DOCTYPE", declared.start(), "doctype_refused")
    try:
        scanner = TagScanner(source.data, limits)
    except ProtocolError:
        raise ScenarioFileError(source.file, "", 0, "file_size_limit", limit_mib=bytes_max >> 20) from None
    try:
        yield from _top_sections(scanner, source, root, schema)
    except ProtocolError as error:
        if error.field == "elements":
            raise source.error("", scanner.start, "too_many_elements", limit=limits.elements) from None
        raise source.error(error.field, scanner.start, error.reason) from None


def _top_sections(scanner: TagScanner, source: SourceFile, root: str, schema: Schema) -> Iterator[Section]:
    if scanner.next() != root.encode():
        raise source.error(root, 0, "other_kind_of_file", tag=root)
    whole = Section(source, root, scanner.start)
    if scanner.text is None:
        names = {name.encode(): name for name in schema}
        while (tag := _next_child(scanner, whole, root)) is not None:
            if tag in names:
                yield _section(scanner, source, names[tag], schema[names[tag]])
            else:
                _keep_or_skip(scanner, whole, tag)
    yield whole


def _section(scanner: TagScanner, source: SourceFile, name: str, schema: Schema) -> Section:
    """Return the section whose opening tag was just read. Recursion is as deep as the schema, whatever the file."""
    section = Section(source, name, scanner.start)
    if scanner.text is not None:
        return section
    names = {inner.encode(): inner for inner in schema}
    own = name.encode()
    while (tag := _next_child(scanner, section, name)) is not None:
        if tag in names:
            section.sections.append(_section(scanner, source, names[tag], schema[names[tag]]))
        elif tag == own and scanner.text is None:
            raise source.error(name, scanner.start, "element_twice")
        else:
            _keep_or_skip(scanner, section, tag)
    return section


def _next_child(scanner: TagScanner, section: Section, name: str) -> bytes | None:
    """Return the next opening tag inside the section; None at its end. Closing tags that close nothing are skipped."""
    while (tag := scanner.next()) is not None:
        if not tag.startswith(b"/"):
            return tag
        if tag[1:] == name.encode():
            return None
    raise section.error(name, "element_not_closed")


def _keep_or_skip(scanner: TagScanner, section: Section, tag: bytes) -> None:
    if scanner.text is None:
        name = tag.decode("latin-1")
        section.skipped[name] = section.skipped.get(name, 0) + 1
        scanner.skip(tag)
    else:
        name = tag.decode("latin-1")
        if name in section.leaves:
            section.earlier.append((name, section.leaves[name][0]))
        section.leaves[name] = (scanner.text, scanner.start)
