"""A reader of statistics exports as strict as the strictest of those that read them.

It asks by HEAD and refuses to go on without a strong ETag, gets the file, and reads it line by line. A record begins
and ends with a line that is its tag, at column 0 and without a blank behind it; elements are found by their tags in
one line each. Then the whole is parsed as XML, too, and every line of the file must have been understood.
"""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_ETAG = re.compile(r'"[^"]+"')
_ELEMENT = re.compile(r"^\s+<(\w+)>(.*)</\1>$")


class Unreadable(Exception):
    """The export is not as readers need it."""


@dataclass(frozen=True)
class Answer:
    """A reply to HEAD or GET."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Ask = Callable[[str, str], Answer]
"""Called with the method and the name of the file."""


def read(ask: Ask, name: str, root: str, record: str) -> list[dict[str, str]]:
    """The records of a file, each with its elements' texts as they stand there."""
    return list(records(fetch(ask, name), root, record))


def fetch(ask: Ask, name: str) -> bytes:
    """The unpacked file; raises Unreadable if its head is not as HEAD promised."""
    head = ask("HEAD", name)
    etag = head.headers.get("ETag", "")
    if head.status != 200 or not _ETAG.fullmatch(etag):
        raise Unreadable(f"{name}: HEAD gives {head.status} and the ETag {etag}")
    got = ask("GET", name)
    if got.status != 200 or got.headers.get("ETag") != etag or "Content-Encoding" in got.headers:
        raise Unreadable(f"{name}: GET gives {got.status} and another head: {dict(got.headers)}")
    for answer in (head, got):
        if answer.headers.get("Content-Length") != str(len(got.body)):
            raise Unreadable(f"{name}: Content-Length is not {len(got.body)}")
    return gzip.decompress(got.body) if name.endswith(".gz") else got.body


def records(content: bytes, root: str, record: str) -> Iterator[dict[str, str]]:
    ET.fromstring(content)
    lines = content.decode().split("\n")
    if lines[0] != '<?xml version="1.0" encoding="utf-8"?>' or lines[1] != f"<{root}>":
        raise Unreadable(f"the file begins {lines[:2]}")
    if lines[-2:] != [f"</{root}>", ""]:
        raise Unreadable(f"the file ends {lines[-2:]}")
    present: dict[str, str] | None = None
    for line in lines[2:-2]:
        if line == f"<{record}>" and present is None:
            present = {}
        elif line == f"</{record}>" and present is not None:
            yield present
            present = None
        elif present is not None and (match := _ELEMENT.match(line)) and match[1] not in present:
            present[match[1]] = match[2]
        else:
            raise Unreadable(f"a line that readers do not understand: {line!r}")
    if present is not None:
        raise Unreadable("a record has no end")


def misc(record: Mapping[str, str]) -> dict[str, object]:
    """The JSON of a computer's <misc>."""
    match = re.fullmatch(r"<!\[CDATA\[(.*)\]\]>", record["misc"])
    if match is None:
        raise Unreadable(f"no CDATA section: {record['misc']}")
    content: dict[str, object] = json.loads(match[1])
    return content
