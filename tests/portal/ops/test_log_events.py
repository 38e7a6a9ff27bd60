"""The log's events are named alike, and the docs list them all with their fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
APPS = ("portal", "accounting", "credit", "scheduler", "emulator", "extras")
LEVELS = ("debug", "info", "warning", "error", "exception")
ROW = re.compile(r"^\| `(\w+)` \| ([a-z, ]+) \| (.+?) \| .+ \|$", re.M)
PAGE = ROOT / "docs" / "reference" / "monitoring.md"


def calls() -> Iterator[ast.Call]:
    """All calls of a logger that is called log."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                    logger = node.func.value
                    if (getattr(logger, "id", None) or getattr(logger, "attr", None)) == "log":
                        yield node


def events() -> dict[str, tuple[set[str], set[str]]]:
    """Levels and fields by event."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for call in calls():
        assert isinstance(call.func, ast.Attribute)
        names = [part.value for part in ast.walk(call.args[0]) if isinstance(part, ast.Constant)]
        level = "error" if call.func.attr == "exception" else call.func.attr
        for name in names:
            levels, fields = found.setdefault(str(name), (set(), set()))
            levels.add(level)
            fields |= {keyword.arg for keyword in call.keywords if keyword.arg not in (None, "exc_info")}
    return found


def test_events_are_words_in_lower_case() -> None:
    assert [name for name in events() if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []


def test_the_docs_list_all_events_with_their_levels_and_fields() -> None:
    told = {
        name: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields)))
        for name, levels, fields in ROW.findall(PAGE.read_text().partition("The other events")[2])
    }
    assert told == events()
