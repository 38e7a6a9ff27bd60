"""Rows that a statement returns as JSON objects, each in a column of text."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from portal.clients.effects import Row, Value


class JsonRow(msgspec.Struct, forbid_unknown_fields=True):
    """An object of such a row, or one within it: it has these fields, no more and no fewer."""


def decode(decoder: msgspec.json.Decoder[Value], rows: Iterable[Row]) -> list[Value]:
    """The objects, in the order of the rows."""
    return [decoder.decode(text) for (text,) in rows]
