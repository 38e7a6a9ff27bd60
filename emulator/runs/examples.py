"""The examples' finished runs, stored with the code, so that they open without waiting and for anybody.

`manage.py store_examples` makes them, as a worker would. Figures, projects and diagnoses of an example are in one JSON
file, and each run's packed timeline is beside it. No Django.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from emulator.engine.policies.names import PolicyName
from emulator.files.presets import Preset
from emulator.runs.execution import order_of
from emulator.runs.packed_timeline import Packed, unpack
from emulator.runs.variants import Variant

FOLDER: Final = Path(__file__).parents[1] / "data" / "examples"
SEED: Final = 1
# The English names of variants: emulator.pages.texts.variant_texts has their translations.
_LABELS: Final = {
    PolicyName.REC.value: "Recent estimated credit",
    PolicyName.LTD.value: "Long-term debt per processor type",
    PolicyName.LTD_SINGLE.value: "Single long-term debt, CPU time only",
    PolicyName.DEBT.value: "Debt with preemption",
}
_QUIRKS_LABEL: Final = "As implemented in BOINC"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The result of a run of an example."""

    figures: dict[str, Any]
    projects: list[dict[str, Any]]
    answer: dict[str, Any]


def variants_of(preset: Preset) -> tuple[Variant, ...]:
    """Return the variants to run: the example's policy; for a reported case the policy of its time before it."""
    today = Variant(_LABELS[preset.policy], preset.policy)
    if preset.case is None:
        return (today,)
    label = _QUIRKS_LABEL if preset.case.has_quirks else _LABELS[preset.case.policy]
    return (Variant(label, preset.case.policy, preset.case.has_quirks), today)


def orders_of(preset: Preset) -> list[dict[str, Any]]:
    """Return the orders (emulator.runs.process) of the example's runs."""
    scenario = preset.scenario
    return [
        {"do": "run", **order_of(scenario, variant, preset.days, SEED, timeline=True), "tries": True}
        for variant in variants_of(preset)
    ]


def store(preset: Preset, answers: Sequence[tuple[dict[str, Any], bytes]]) -> None:
    """Store the process's answer to each of the orders: its JSON and the packed timeline."""
    runs = [
        {"figures": answer["figures_of_merit"], "projects": answer["projects"], "answer": answer["answer"]}
        for answer, _timeline in answers
    ]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{preset.key}.json").write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
    for number, (_answer, timeline) in enumerate(answers, 1):
        _timeline_file(preset.key, number).write_bytes(timeline)


@lru_cache(maxsize=64)
def stored_runs(key: str) -> tuple[StoredRun, ...]:
    """Return the finished runs of an example, in the order of its variants."""
    return tuple(StoredRun(**run) for run in json.loads((FOLDER / f"{key}.json").read_text()))


@lru_cache(maxsize=8)
def stored_timeline(key: str, number: int) -> Packed:
    """Return the timeline of an example's run; they are counted from 1."""
    return unpack(_timeline_file(key, number).read_bytes())


def _timeline_file(key: str, number: int) -> Path:
    return FOLDER / f"{key}-{number}.npz"
