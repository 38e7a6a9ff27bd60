"""What modules say in English, read from their source: so that a test can ask whether each has a translation."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path


def said_by(path: Path, raisers: Mapping[str, int]) -> Iterator[str]:
    """The sentences that a module raises or notes, with X for each of its facts.

    ``raisers``: where the sentence is among the arguments of each call, by the name of what is called.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        place = raisers.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
        if place is None or len(node.args) <= place:
            continue
        text = node.args[place]
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value
        elif isinstance(text, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in text.values)
