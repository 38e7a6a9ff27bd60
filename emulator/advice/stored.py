"""A run's answer as its process sends it, and whether it is one: a policy from outside may write anything. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

import cattrs

from emulator.advice.findings import Cause, Findings
from emulator.advice.trials import FIGURES, Change, Outcome, Setting

NCHARS_MAX: Final = 65_536
_NAME_CHARS: Final = 255
# A project that is suspended is entitled to nothing, and the network is all projects' alike.
_OF_PROCESSORS: Final = frozenset({Cause.SUSPENDED, Cause.OFFLINE})


@dataclass(frozen=True, slots=True)
class Stored:
    """What a run stores. ``outcome``: None if nothing was tried, which may be as it would have taken too long."""

    findings: Findings
    outcome: Outcome | None
    are_trials_skipped: bool = False


def check_stored(found: Any) -> None:
    """Raises ValueError unless these are findings, and an outcome of trials, that can be told in words."""
    if len(json.dumps(found)) > NCHARS_MAX:
        raise ValueError("its answer is too long")
    try:
        stored = _converter.structure(found, Stored)
    except (cattrs.BaseValidationError, cattrs.ForbiddenExtraKeysError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its answer has other parts: {type(error).__name__}") from error
    if any(short.cause in _OF_PROCESSORS for short in stored.findings.short):
        raise ValueError("a project got too little for a reason that only processors have")
    if any(not 0 < idle.idle_secs <= idle.able_secs for idle in stored.findings.idle):
        raise ValueError("a processor idled longer than it was there")
    if stored.outcome is not None:
        _check_outcome(stored.outcome)


def _check_outcome(outcome: Outcome) -> None:
    if any(advice.figure not in FIGURES for advice in outcome.advice):
        raise ValueError("it advises for another figure")
    for change in (trial.change for trial in (*outcome.trials, *(advice.trial for advice in outcome.advice))):
        _check_change(change)


def _check_change(change: Change) -> None:
    number = 2 if change.setting is Setting.BUFFER else 1
    if len(change.before) != number or len(change.after) != number:
        raise ValueError("a change has more numbers than its setting")


def _number(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a value of its answer is no number")
    return value


def _whole(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a value of its answer is no whole number")
    return value


def _text(value: Any, _: Any) -> str:
    if not isinstance(value, str) or len(value) > _NAME_CHARS:
        raise ValueError("a name in its answer is none")
    return value


def _truth(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("a value of its answer is neither true nor false")
    return value


_converter: Final = cattrs.Converter(forbid_extra_keys=True, detailed_validation=False)
for _type, _hook in ((float, _number), (int, _whole), (str, _text), (bool, _truth)):
    _converter.register_structure_hook(_type, _hook)
for _names in (Cause, Setting):
    # They are texts, too, so the hook of those would take them as they are.
    _converter.register_structure_hook(_names, lambda value, names: names(value))
