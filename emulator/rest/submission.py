"""A program's request for an experiment: a document, and further settings to try with its scenario. Knows no HTTP.

``variants`` are tables of ``policy``, ``quirks`` and ``parameters``, each with an optional ``label``; missing ones
default to the document's. ``seeds`` are the seeds of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from emulator.engine.scenario import Scenario, ScenarioError
from emulator.files.scenario_json import MAX_SEED, Document, from_document
from emulator.models import DAYS_MAX
from emulator.pages.texts.variant_texts import NAMES, QUIRKS
from emulator.runs.experiments import RUNS_MAX, SEEDS_MAX, VARIANTS_MAX
from emulator.runs.variants import Variant

LABEL_CHARS: Final = 100
REQUEST_ID_CHARS: Final = 64
_OWN: Final = ("title", "variants", "seeds", "request_id")
_OF_VARIANT: Final = ("label", "policy", "quirks", "parameters")


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked request for an experiment. ``request_id`` makes a repetition harmless; it may be empty."""

    title: str
    request_id: str
    scenario: Scenario
    days: float
    variants: list[Variant]
    seeds: list[int]


def read_submission(data: Any) -> Submission:
    """Parse the JSON of a submission. Raises ScenarioError with the field."""
    if not isinstance(data, dict):
        raise ScenarioError("document", "not_an_object")
    document = from_document({name: value for name, value in data.items() if name not in _OWN})
    if not 0.01 <= document.days <= DAYS_MAX:
        raise ScenarioError("days", "not_in_range", value=document.days, low=0.01, high=DAYS_MAX)
    rows = data.get("variants", [{}])
    if not isinstance(rows, list) or not 1 <= len(rows) <= VARIANTS_MAX:
        raise ScenarioError("variants", "not_a_list_of_tables", limit=VARIANTS_MAX)
    variants = [_variant(document, row, place) for place, row in enumerate(rows)]
    if len({variant.label for variant in variants}) < len(variants):
        raise ScenarioError("variants", "label_twice")
    seeds = _seeds(data.get("seeds", [document.seed]))
    if len(variants) * len(seeds) > RUNS_MAX:
        raise ScenarioError("seeds", "too_many_runs", number=len(variants) * len(seeds), limit=RUNS_MAX)
    title = _text(data, "title", 100) or document.scenario.name or "Experiment"
    return Submission(
        title, _text(data, "request_id", REQUEST_ID_CHARS), document.scenario, document.days, variants, seeds
    )


def _variant(document: Document, row: Any, place: int) -> Variant:
    at = f"variants[{place}]"
    if not isinstance(row, dict) or set(row) - set(_OF_VARIANT):
        raise ScenarioError(at, "not_a_table", names=list(_OF_VARIANT))
    given = {name: value for name, value in row.items() if name != "label"}
    same = {
        "policy": document.policy.value,
        "quirks": document.quirks,
        "parameters": document.parameters.as_dict(),
    }
    try:
        # The scenario was read already: the smallest one stands in for it.
        made = from_document({"version": 1, "scenario": _SMALLEST, **same, **given})
    except ScenarioError as error:
        raise ScenarioError(f"{at}.{error.field}", error.why) from None
    parameters = made.parameters.as_dict()
    label = _text(row, "label", LABEL_CHARS) or _label(made, parameters)
    return Variant(label[:LABEL_CHARS], made.policy.value, made.quirks, parameters)


_SMALLEST: Final[Mapping[str, Any]] = {
    "host": {"processors": [{"kind": "CPU", "instances": 1, "peak_flops": 1.0}]},
    "projects": [{"name": "A", "share": 1}],
}


def _label(made: Document, parameters: Mapping[str, Any]) -> str:
    words = [NAMES[made.policy], *([QUIRKS] if made.quirks else [])]
    return ", ".join([*words, *(f"{name} {value}" for name, value in parameters.items())])


def _seeds(value: Any) -> list[int]:
    if not isinstance(value, list) or not 1 <= len(value) <= SEEDS_MAX:
        raise ScenarioError("seeds", "not_a_list_of_seeds", limit=SEEDS_MAX)
    if any(isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED for seed in value):
        raise ScenarioError("seeds", "seed_out_of_range", most=MAX_SEED)
    return list(dict.fromkeys(value))


def _text(data: Mapping[str, Any], name: str, most: int) -> str:
    value = data.get(name) or ""
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise ScenarioError(name, "not_a_text", limit=most)
    return value
