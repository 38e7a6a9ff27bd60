"""Judge speeds by the model of a processor: a value far from the others of its model is a fault of a driver or a
benchmark (accounting rules, "Speeds by model"). Pure: no clock, no Django.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import Final, NamedTuple

from accounting.engine.amounts import Processor
from accounting.engine.machine import Machine

# What a client reports as its speed when the benchmark failed or was skipped, and what we assume without one.
DEFAULT_FPOPS: Final = 1_000_000_000
# The same for a GPU whose driver names no speed, or an impossible one: 0 before version 8.
_DEFAULT_PEAK: Final = 100_000_000_000
MAX_NAME: Final = 120
_NOISE: Final = re.compile(
    r"\((?:r|tm|c)\)|\[(?:family .*?|0x[0-9a-f]+)\]|\b(?:nvidia|amd|ati technologies inc\.?)\b|\bseries$", re.IGNORECASE
)
# Plausible speeds of a processor of each kind, in FLOPS: nothing outside is learned. Up to twice the fastest of 2026.
_PLAUSIBLE: Final = {Processor.CPU: (100e6, 50e9), Processor.GPU: (10e9, 250e12)}

Model = tuple[Processor, str]
Speeds = Mapping[Model, int]


class Usual(NamedTuple):
    """The usual speed of one processor of each model, in FLOPS, and the factor up to which deviations are believed."""

    speeds: Speeds
    factor: float = 4.0


NOTHING_USUAL: Final = Usual({})


class Replaced(NamedTuple):
    """A speed that is not believed, 0 if none was reported, and the one used instead; in FLOPS."""

    processor: Processor
    model: str
    reported: int
    assumed: int


class ReportedSpeed(NamedTuple):
    """The speed of one processor of a model as one of the owner's computers reports it."""

    model: Model
    owner_id: int
    flops: float


def model_name(text: str) -> str:
    """Strip marks, vendors and steppings, which vary with drivers and versions, from a model's name."""
    return " ".join(_NOISE.sub(" ", text).lower().split())[:MAX_NAME]


def judge(machine: Machine | None, usual: Usual) -> tuple[Machine | None, tuple[Replaced, ...]]:
    """Return the machine with believable speeds, and those that were replaced, each once."""
    if machine is None:
        return None, ()
    replaced: list[Replaced] = []
    p_fpops = _believed(Processor.CPU, machine.cpu_model, machine.p_fpops, DEFAULT_FPOPS, usual, replaced)
    names = machine.gpu_models or ("",) * len(machine.gpus)
    gpus = tuple(
        (count, _believed(Processor.GPU, name, peak, 0, usual, replaced))
        for name, (count, peak) in zip(names, machine.gpus, strict=True)
    )
    if not replaced:
        return machine, ()
    return replace(machine, p_fpops=p_fpops, gpus=gpus), tuple(dict.fromkeys(replaced))


def _believed(
    processor: Processor, name: str, reported: int, fallback: int, usual: Usual, replaced: list[Replaced]
) -> int:
    model = usual.speeds.get((processor, model_name(name))) if name else None
    if processor is Processor.CPU and reported == DEFAULT_FPOPS:
        # Not measured yet
        reported = 0 if model else reported
    if reported <= 0:
        assumed = model or fallback
    elif model is None or _is_near(reported, model, usual.factor):
        return reported
    else:
        assumed = model
    if assumed:
        replaced.append(Replaced(processor, name[:MAX_NAME], max(reported, 0), assumed))
    return assumed


def usual_speeds(seen: Iterable[ReportedSpeed], shipped: Speeds, *, min_owners: int, factor: float) -> dict[Model, int]:
    """Return the usual speed of each model: the median over owners of the median of each owner's computers.

    So one account counts once, however many computers it has. A model needs ``min_owners``, of whom three quarters
    agree within the factor; otherwise it is not used for judging. One with a shipped speed keeps it, unless the owners'
    is close to it.
    """
    by_owner: dict[Model, dict[int, list[float]]] = {}
    for model, owner_id, flops in seen:
        if flops > 0 and flops != (DEFAULT_FPOPS if model[0] is Processor.CPU else _DEFAULT_PEAK):
            by_owner.setdefault(model, {}).setdefault(owner_id, []).append(flops)
    speeds = dict(shipped)
    for model, owners in by_owner.items():
        if len(owners) < min_owners:
            continue
        of_each = [median(flops) for flops in owners.values()]
        middle = int(median(of_each))
        slowest, fastest = _PLAUSIBLE[model[0]]
        is_agreed = 4 * sum(_is_near(flops, middle, factor) for flops in of_each) >= 3 * len(of_each)
        if is_agreed and slowest <= middle <= fastest and _is_near(middle, shipped.get(model, middle), factor):
            speeds[model] = middle
    return speeds


def _is_near(flops: float, usual: int, factor: float) -> bool:
    return usual <= flops * factor <= usual * factor**2
