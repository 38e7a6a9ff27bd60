"""Speeds by model: which are believed, and what an adversary's computers can do to a model's."""

from __future__ import annotations

import pytest

from accounting.engine.amounts import Processor
from accounting.engine.hardware_models import Replaced, Seen, Usual, judge, model_name, usual_speeds
from accounting.engine.machine import Machine

CARD = (Processor.GPU, "card")
TERA = 10**12


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz [Family 6 Model 158 Stepping 10]",
            "intel core i7-8700 cpu @ 3.20ghz",
        ),
        ("NVIDIA GeForce RTX 3080", "geforce rtx 3080"),
        ("GeForce  RTX 3080", "geforce rtx 3080"),
        ("AMD Radeon(TM) Vega 8 Graphics", "radeon vega 8 graphics"),
    ],
)
def test_a_model_has_one_name_however_drivers_write_it(text: str, name: str) -> None:
    assert model_name(text) == name


@pytest.mark.parametrize(
    ("reported", "counts"),
    [(2, 2), (8, 8), (9, 2), (0.5, 0.5), (0.4, 2), (0, 2), (-1, 2), (43_980, 2)],  # usual: 2 TFLOPS, four times at most
)
def test_a_speed_is_believed_within_the_factor_of_its_model(reported: float, counts: float) -> None:
    peak = int(reported * TERA)
    machine, replaced = judge(Machine(1, 10**9, ((1, peak),), "", ("Card",)), Usual({CARD: 2 * TERA}))
    assert machine is not None and machine.gpus == ((1, int(counts * TERA)),)
    assert replaced == (() if reported == counts else (Replaced(Processor.GPU, "Card", max(peak, 0), 2 * TERA),))


def usual(seen: list[Seen], shipped: dict[tuple[Processor, str], int] | None = None) -> int | None:
    return usual_speeds(seen, shipped or {}, min_owners=5, factor=4).get(CARD)


def owners(number: int, flops: float, first: int = 0, computers: int = 1) -> list[Seen]:
    return [Seen(CARD, first + owner, flops) for owner in range(number) for _ in range(computers)]


def test_a_model_is_not_judged_by_few_owners() -> None:
    assert usual(owners(4, 2 * TERA, computers=100)) is None
    assert usual(owners(5, 2 * TERA)) == 2 * TERA


def test_thousands_of_computers_of_one_account_move_nothing() -> None:
    honest = [Seen(CARD, owner, flops * TERA) for owner, flops in enumerate([1.9, 2.0, 2.0, 2.1, 2.2])]
    assert usual(honest) == 2 * TERA
    # Six owners: the middle lies between 2.0 and 2.1.
    assert usual(honest + owners(1, 500 * TERA, first=100, computers=5_000)) == 2_050_000_000_000


def test_owners_cannot_move_a_shipped_model_beyond_the_factor() -> None:
    shipped = {CARD: 2 * TERA}
    assert usual(owners(50, 9 * TERA), shipped) == 2 * TERA
    assert usual(owners(50, 3 * TERA), shipped) == 3 * TERA
    assert usual([], shipped) == 2 * TERA
