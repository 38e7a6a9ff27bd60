"""The API's description (OpenAPI), split into what its page shows: groups of operations, parameters and fields.

Pure: turns the description, a mapping, into rows for tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Schema = Mapping[str, Any]
METHODS: Final = ("get", "post", "put", "patch", "delete")
# Fields of objects in lists, and no deeper.
_MAX_DEPTH: Final = 4
_FORMATS: Final = {
    "date": "date, such as 2026-03-02",
    "date-time": "time (ISO 8601)",
    "decimal": "decimal number as text",
    "uri": "address",
    "binary": "file",
}
_TYPES: Final = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "string": "text",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A parameter, or a field of a body or an answer; ``kind`` says in words which values it may have.

    ``options``: all values, if there are few; ``place`` of a parameter: query or path.
    """

    name: str
    kind: str
    about: str
    is_required: bool = False
    place: str = ""
    options: tuple[str, ...] = ()
    input_type: str = "text"


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of an address: its purpose, its input and its answers."""

    key: str
    method: str
    path: str
    about: str
    parameters: list[Value]
    body: list[Value]
    fields: list[Value]

    @property
    def is_read(self) -> bool:
        """Whether it can be tried without changing anything."""
        return self.method == "GET"


def groups_of(description: Schema) -> dict[str, list[Operation]]:
    """The operations by subject, in the order of the description."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in description["paths"].items():
        for method in METHODS:
            if method in methods:
                details = methods[method]
                groups.setdefault(details["tags"][0], []).append(_operation(description, path, method, details))
    return groups


def _operation(description: Schema, path: str, method: str, details: Schema) -> Operation:
    answers = details.get("responses", {})
    answer: Schema = next((answers[code] for code in sorted(answers) if code.startswith("2")), {})
    return Operation(
        key=details["operationId"],
        method=method.upper(),
        path=path,
        about=details.get("description", ""),
        parameters=[_parameter(description, parameter) for parameter in details.get("parameters", [])],
        body=list(_fields(description, _content(details.get("requestBody", {})))),
        fields=list(_fields(description, _content(answer))),
    )


def _content(part: Schema) -> Schema:
    """The schema of a body or an answer, whatever its media type; empty if it has none."""
    media: Schema = next(iter(part.get("content", {}).values()), {})
    schema: Schema = media.get("schema", {})
    return schema


def _parameter(description: Schema, parameter: Schema) -> Value:
    schema = _resolved(description, parameter["schema"])
    kind = schema.get("type", "string")
    return Value(
        name=parameter["name"],
        kind=_kind(description, schema),
        about=_about(parameter),
        is_required=parameter.get("required", False),
        place=parameter["in"],
        options=tuple(map(str, schema.get("enum", ()))),
        input_type="date" if schema.get("format") == "date" else "number" if kind == "integer" else "text",
    )


def _fields(description: Schema, schema: Schema, before: str = "", depth: int = 0) -> Iterator[Value]:
    """The fields of an object, each followed by those of objects in it, under both names, such as ``results[].day``."""
    whole = _resolved(description, schema)
    if whole.get("type") == "array":
        yield from _fields(description, whole.get("items", {}), f"{before}[]", depth)
        return
    required = whole.get("required", ())
    for name, field in whole.get("properties", {}).items():
        path = f"{before}.{name}" if before else name
        yield Value(path, _kind(description, field), _about(_resolved(description, field)), name in required)
        if depth < _MAX_DEPTH:
            yield from _fields(description, field, path, depth + 1)


def _resolved(description: Schema, schema: Schema) -> Schema:
    """Resolve a schema that only names another one, or that has one known part of several."""
    parts = schema.get("allOf") or schema.get("oneOf")
    if parts:
        return {**_resolved(description, parts[0]), **schema}
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rsplit("/", 1)[-1]
    named: Schema = description["components"]["schemas"][name]
    return named


def _kind(description: Schema, schema: Schema) -> str:
    """A value's type in words: "whole number, 1 to 1000; 100 if left out"."""
    whole = _resolved(description, schema)
    if whole.get("type") == "array":
        text = f"list: {_kind(description, whole.get('items', {}))}"
    elif whole.get("enum"):
        text = "one of " + ", ".join(str(value) for value in whole["enum"])
    else:
        name = str(whole.get("type", "object"))
        text = _FORMATS.get(whole.get("format", ""), _TYPES.get(name, name)) + _limits(whole)
    if whole.get("default") is not None:
        text += f"; {whole['default']} if left out"
    return text + (", or null" if schema.get("nullable") else "")


def _limits(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "maxLength" in schema:
        return f", at most {schema['maxLength']} characters"
    if low is None and high is None:
        return ""
    # The largest id is meaningless to readers.
    if high is None or high >= 2**53:
        return f", at least {low}" if low is not None else ""
    return f", {low} to {high}" if low is not None else f", at most {high}"


def _about(part: Schema) -> str:
    """The description without the list of values, which is shown beside it; for a model's field at least a title."""
    text = part.get("description") or part.get("title", "")
    return "\n".join(line for line in text.splitlines() if not line.startswith("* `")).replace("`", "").strip()
