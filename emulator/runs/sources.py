"""Find the scenario that a person names: one of the examples, a client's folder, a ZIP of it, or a scenario as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emulator.engine.scenario import Scenario
from emulator.files.presets import PRESETS, preset
from emulator.files.scenario import read_path
from emulator.files.scenario_json import Document, from_document, from_json
from emulator.files.sections import ScenarioFileError

JSON_BYTES_MAX: Final = 64 * 1024 * 1024
DEFAULT_DAYS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Source:
    """A scenario, its default length, and its document, if it comes from one."""

    scenario: Scenario
    days: float
    document: Document | None = None


def read_source(text: str) -> Source:
    """Read the scenario of an example's key or of a path. A file or folder comes before an example of the same name.

    Raises ScenarioError (a ScenarioFileError names file and place), and OSError.
    """
    path = Path(text)
    if not path.exists():
        if text in [offered.key for offered in PRESETS]:
            example = preset(text)
            return Source(example.scenario, example.days)
        raise ScenarioFileError(
            path.name[:100],
            "",
            0,
            "no_source",
        )
    if path.suffix == ".json":
        return _read_json(path)
    return Source(read_path(path), DEFAULT_DAYS)


def _read_json(path: Path) -> Source:
    """Read a scenario alone, or a document with a version, such as a run's download from the site."""
    if path.stat().st_size > JSON_BYTES_MAX:
        raise ScenarioFileError(path.name, "", 0, "file_size_limit", limit_mib=JSON_BYTES_MAX // 2**20)
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ScenarioFileError(path.name, "", 0, "not_json", error=error) from None
    if isinstance(data, dict) and "version" in data:
        document = from_document(data)
        return Source(document.applied(), DEFAULT_DAYS, document)
    return Source(from_json(data["scenario"] if isinstance(data, dict) and "scenario" in data else data), DEFAULT_DAYS)
