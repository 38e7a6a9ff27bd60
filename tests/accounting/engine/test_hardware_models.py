"""Speeds by model: which are believed, and what an adversary's computers can do to a model's."""

from __future__ import annotations

import pytest

from accounting.engine.amounts import Processor
from accounting.engine.hardware_models import Replaced, ReportedSpeed, Usual, judge, model_name, usual_speeds
from accounting.engine.machine import Machine
from accounting.ledger.models_seen import SHIPPED
from accounting.ledger.models_seen import shipped as shipped_speeds

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
        ("AMD Radeon RX 580 Series", "radeon rx 580"),
        ("Intel(R) UHD Graphics 630 [0x3e92]", "intel uhd graphics 630"),
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


@pytest.mark.parametrize(("usual_flops", "counts"), [(4 * 10**9, 4 * 10**9), (2 * 10**9, 2 * 10**9), (None, 10**9)])
def test_a_processor_gets_its_models_speed_before_its_first_benchmark(usual_flops: int | None, counts: int) -> None:
    speeds = Usual({(Processor.CPU, "chip"): usual_flops} if usual_flops else {})
    machine, replaced = judge(Machine(4, 10**9, cpu_model="Chip"), speeds)
    assert machine is not None and machine.p_fpops == counts
    assert replaced == ((Replaced(Processor.CPU, "Chip", 0, counts),) if usual_flops else ())


def usual(seen: list[ReportedSpeed], shipped: dict[tuple[Processor, str], int] | None = None) -> int | None:
    return usual_speeds(seen, shipped or {}, min_owners=5, factor=4).get(CARD)


def owners(number: int, flops: float, first: int = 0, computers: int = 1) -> list[ReportedSpeed]:
    return [ReportedSpeed(CARD, first + owner, flops) for owner in range(number) for _ in range(computers)]


def test_a_model_is_not_judged_by_few_owners() -> None:
    assert usual(owners(4, 2 * TERA, computers=100)) is None
    assert usual(owners(5, 2 * TERA)) == 2 * TERA


def test_thousands_of_computers_of_one_account_move_nothing() -> None:
    honest = [ReportedSpeed(CARD, owner, flops * TERA) for owner, flops in enumerate([1.9, 2.0, 2.0, 2.1, 2.2])]
    assert usual(honest) == 2 * TERA
    # Six owners: the middle lies between 2.0 and 2.1.
    assert usual(honest + owners(1, 500 * TERA, first=100, computers=5_000)) == 2_050_000_000_000


def test_owners_cannot_move_a_shipped_model_beyond_the_factor() -> None:
    shipped = {CARD: 2 * TERA}
    assert usual(owners(50, 9 * TERA), shipped) == 2 * TERA
    assert usual(owners(50, 3 * TERA), shipped) == 3 * TERA
    assert usual([], shipped) == 2 * TERA


def test_a_model_whose_owners_disagree_is_judged_by_none() -> None:
    # One of five with a wrong driver is an outlier. Two honest ones beside five who agreed on nonsense are more.
    assert usual(owners(4, 2 * TERA) + owners(1, 500 * TERA, first=100)) == 2 * TERA
    patient = owners(5, TERA // 5, first=100)
    assert usual(owners(1, 2 * TERA) + patient) == TERA // 5
    assert usual(owners(2, 2 * TERA) + patient) is None


@pytest.mark.parametrize(("flops", "counts"), [(251 * TERA, False), (249 * TERA, True), (9e9, False), (11e9, True)])
def test_owners_cannot_set_what_no_processor_of_the_kind_can_be(flops: float, counts: bool) -> None:
    assert (usual(owners(5, flops)) is not None) == counts


def test_what_a_client_assumes_of_an_unknown_gpu_is_no_speed_of_it() -> None:
    assert usual(owners(5, 100e9)) is None


@pytest.mark.parametrize(
    ("name", "gflops"),
    [
        # As clients of BOINC have logged it
        ("AMD Radeon(TM) Vega 8 Graphics", 1127),
        ("Apple M1", 64),
        # As the maker says: 82.6 TFLOPS, and 61.4 with the operations that clients do not count
        ("NVIDIA GeForce RTX 4090", 82_575),
        ("AMD Radeon RX 7900 XTX", 30_720),
        # 24 execution units of 8 at 1.2 GHz
        ("Intel(R) UHD Graphics 630", 230),
    ],
)
def test_a_shipped_peak_is_what_clients_compute(name: str, gflops: int) -> None:
    assert round(shipped_speeds()[Processor.GPU, model_name(name)] / 1e9) == gflops


def test_shipped_peaks_are_of_gpus() -> None:
    lines = [line.split(",") for line in SHIPPED.read_text().splitlines() if line and not line.startswith("#")][1:]
    assert len(shipped_speeds()) == len(lines) > 80, "a model is listed twice"
    for model, cores, per_clock, mhz in lines:
        # Multiprocessors of NVIDIA and AMD have 64 cores, or 128; Intel's units and Apple's cores count 8 operations.
        is_unit = model.startswith(("Intel", "Apple"))
        assert per_clock == ("8" if is_unit else "2") and (is_unit or int(cores) % 64 == 0), model
        assert 1_000 <= int(mhz) <= 3_000, model
