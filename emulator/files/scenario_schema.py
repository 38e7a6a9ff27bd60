"""The JSON Schema (draft 2020-12) of a document, made from the dataclasses and the limits in their types. Pure.

Documents that it accepts can be read, except for references: an event names a project, a task at the start an
application, and two projects must not have the same name (emulator.engine.scenario).
"""

from __future__ import annotations

import dataclasses
import types
from enum import StrEnum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from emulator.engine.scenario.checks import Between, Chars, Count
from emulator.engine.scenario.whole import MAX_NOTE_CHARS
from emulator.files.scenario_json import RESULT_KEYS, TAG, VERSION, Document
from portal.languages.messages import Message

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
NO_NUL: Final = "^[^\\u0000]*$"


def document_schema(address: str) -> dict[str, Any]:
    """Return the schema of a document; ``address``: where it is published, its ``$id``."""
    definitions: dict[str, Any] = {}
    _schema(Document, definitions)
    whole = definitions.pop("Document")
    beside = {key: True for key in RESULT_KEYS}
    return {
        "$schema": DIALECT,
        "$id": address,
        "title": "Scenario of the client emulator",
        "description": (
            "A scenario and one run of it. Times are seconds from the start of the run, work is FLOP, speeds are FLOP "
            "per second."
        ),
        **whole,
        "properties": {
            "$schema": {"type": "string"},
            "version": {"const": VERSION},
            **whole["properties"],
            **beside,
        },
        "required": ["version", *whole["required"]],
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; those of dataclasses are put among the definitions."""
    if hasattr(kind, "__metadata__"):
        base, *limits = get_args(kind)
        schema = _schema(base, definitions)
        for limit in limits:
            schema |= _limited(limit)
        return schema
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _any_of(parts, definitions)
    if origin is tuple:
        return _list(parts, definitions)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # it may contain itself
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind is Message:
        return _MESSAGE
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    return {"type": _NAMES[kind]} | ({"pattern": NO_NUL} if kind is str else {})


_MESSAGE: Final = {
    "description": "A code and its arguments, from which pages make a sentence; or a text.",
    "anyOf": [
        {"type": "string", "maxLength": MAX_NOTE_CHARS, "pattern": NO_NUL},
        {
            "type": "object",
            "properties": {
                "code": {"type": "string", "maxLength": MAX_NOTE_CHARS, "pattern": NO_NUL},
                "args": {"type": "object"},
            },
            "required": ["code", "args"],
            "additionalProperties": False,
        },
    ],
}
_NAMES: Final = {float: "number", int: "integer", bool: "boolean", str: "string", type(None): "null"}


def _limited(limit: Any) -> dict[str, Any]:
    if isinstance(limit, Between):
        return {"minimum": limit.least, "maximum": limit.most}
    if isinstance(limit, Chars):
        return {"minLength": limit.least, "maxLength": limit.most}
    if isinstance(limit, Count):
        return {"minItems": limit.least, "maxItems": limit.most}
    raise TypeError(limit)


def _any_of(parts: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of several types: an event, or a value that may be null."""
    kinds = [part for part in parts if part is not type(None)]
    if len(kinds) == 1:
        return {"anyOf": [_schema(kinds[0], definitions), {"type": "null"}]}
    for kind in kinds:
        _schema(kind, definitions)
        tagged = definitions[kind.__name__]
        tagged["properties"] = {TAG: {"const": kind.__name__}, **tagged["properties"]}
        tagged["required"] = [TAG, *(name for name in tagged["required"] if name != TAG)]
    return {"oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]}


def _list(parts: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if parts[-1] is Ellipsis:
        return {"type": "array", "items": _schema(parts[0], definitions)}
    items = [_schema(part, definitions) for part in parts]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        properties[field.name] = _schema(hints[field.name], definitions)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        elif isinstance(field.default, bool | int | float | str):
            properties[field.name]["default"] = field.default
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
