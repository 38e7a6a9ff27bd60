"""The central server's averages, with the sums calculated by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.cross_project import (
    MAX_SCALE,
    MIN_SCALE,
    ExportedVersion,
    Factor,
    average_factors,
    factor_for,
    versions_that_count,
)
from tests.support.credit_engine_facts import NOW, WEEK, about


def exported(app: str, type_: str, scale: float, credit: float = 100.0, **fields: Any) -> ExportedVersion:
    known = {"CPU": "", "NVIDIA": "cuda", "ATI": "opencl_ati"}
    given: dict[str, Any] = {"plan_class": known[type_], "pfc_n": 500, "expavg_time": NOW, **fields}
    return ExportedVersion(app, "linux", 100, processor_type=type_, pfc_scale=scale, expavg_credit=credit, **given)


def found(*projects: list[ExportedVersion]) -> dict[tuple[str, str | None], float]:
    return {(factor.processor_type, factor.plan_class): factor.scale for factor in average_factors(projects, NOW)}


ASTEROIDS = [
    exported("rocks", "CPU", 1.0, 200),
    exported("rocks", "NVIDIA", 0.2, 300),
    exported("rocks", "ATI", 0.1, 50),
    exported("dust", "CPU", 0.9, 100),
    exported("dust", "NVIDIA", 0.4, 100),
]
BUTTERFLIES = [
    exported("wings", "CPU", 1.1, 100),
    exported("wings", "NVIDIA", 0.3, 600),
    exported("wings", "NVIDIA", 0.05, 200, plan_class="opencl_nvidia"),
]
COMETS = [exported("tails", "NVIDIA", 1.0, 10_000)]


def test_three_projects_factors_are_averaged_by_recent_credit() -> None:
    factors = average_factors([ASTEROIDS, BUTTERFLIES, COMETS], NOW)
    # cuda:            (0.2 × 300 + 0.4 × 100 + 0.3 × 600) / 1000      = 280 / 1000  = 0.28
    # opencl_nvidia:   0.05
    # all of NVIDIA:   (60 + 40 + 180 + 0.05 × 200) / 1200             = 290 / 1200  = 0.241666…
    # all of ATI:      0.1
    # CPU:             (1 × 200 + 0.9 × 100 + 1.1 × 100) / 400         = 400 / 400   = 1
    # Comets has no version for CPUs, so its 10,000 do not count.
    assert factors == [
        Factor("ATI", None, about(0.1), about(50), 1, 1),
        Factor("ATI", "opencl_ati", about(0.1), about(50), 1, 1),
        Factor("CPU", None, about(1.0), about(400), 2, 3),
        Factor("CPU", "", about(1.0), about(400), 2, 3),
        Factor("NVIDIA", None, about(290 / 1200), about(1200), 2, 4),
        Factor("NVIDIA", "cuda", about(0.28), about(1000), 2, 3),
        Factor("NVIDIA", "opencl_nvidia", about(0.05), about(200), 1, 1),
    ]


def test_credit_of_a_week_ago_weighs_half() -> None:
    old = [exported("a", "CPU", 1), exported("a", "NVIDIA", 0.4, 200, expavg_time=NOW - WEEK)]
    new = [exported("b", "CPU", 1), exported("b", "NVIDIA", 0.1, 100)]
    # (0.4 × 200 / 2 + 0.1 × 100) / (100 + 100) = 50 / 200
    assert found(old, new)["NVIDIA", "cuda"] == about(0.25)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"pfc_n": 100}, True),
        ({"pfc_n": 99}, False),
        ({"pfc_n": 20, "sample_threshold": 20}, True),
        ({"pfc_n": 500, "sample_threshold": 501}, False),
        ({"is_received": True}, False),
        ({"pfc_scale": 0.0}, False),
        ({"pfc_scale": MIN_SCALE / 2}, False),
        ({"pfc_scale": MAX_SCALE * 2}, False),
    ],
)
@pytest.mark.parametrize("of", ["CPU", "NVIDIA"])
def test_an_app_counts_if_both_kinds_are_above_their_thresholds(of: str, changes: dict[str, Any], counts: bool) -> None:
    def version(type_: str) -> ExportedVersion:
        fields: dict[str, Any] = {"scale": 0.5, **(changes if type_ == of else {})}
        fields["scale"] = fields.pop("pfc_scale", fields["scale"])
        return exported("a", type_, **fields)

    assert bool(versions_that_count([version("CPU"), version("NVIDIA")])) is counts


def test_versions_of_different_apps_are_no_counterparts() -> None:
    assert found([exported("a", "CPU", 1), exported("b", "NVIDIA", 0.1)]) == {}


def test_a_received_factor_is_left_out_where_others_of_its_app_count() -> None:
    received = exported("a", "NVIDIA", 9.0, 1e6, is_received=True)
    assert found([exported("a", "CPU", 1), exported("a", "NVIDIA", 0.1), received])["NVIDIA", "cuda"] == about(0.1)


def test_what_brought_no_credit_lately_has_no_average() -> None:
    assert found([exported("a", "CPU", 1), exported("a", "NVIDIA", 0.1, 0)]) == {("CPU", None): 1, ("CPU", ""): 1}


def test_a_plan_class_that_nobody_has_takes_the_average_of_its_type() -> None:
    factors = average_factors([ASTEROIDS, BUTTERFLIES], NOW)
    of = {name: factor_for(factors, "NVIDIA", name) for name in ("cuda", "opencl_nvidia", "new")}
    assert {name: each and each.plan_class for name, each in of.items()} == {
        "cuda": "cuda",
        "opencl_nvidia": "opencl_nvidia",
        "new": None,
    }
    assert factor_for(factors, "apple_gpu", "cuda") is None


@given(st.lists(st.tuples(st.floats(MIN_SCALE, MAX_SCALE), st.floats(0, 1e12)), min_size=1, max_size=20))
def test_an_average_lies_between_the_factors(rows: list[tuple[float, float]]) -> None:
    versions = [exported("a", "NVIDIA", scale, credit) for scale, credit in rows]
    scale = found([exported("a", "CPU", 1), *versions]).get(("NVIDIA", "cuda"))
    weighty = [each for each, credit in rows if credit > 0]
    assert scale is None if not weighty else min(weighty) <= (scale or 0) <= max(weighty)


@pytest.mark.parametrize("credit", [5e-324, 1e-310, 0.3, 1e12])
@pytest.mark.parametrize("scale", [MIN_SCALE, 0.1, MAX_SCALE])
def test_rounding_brings_no_average_beyond_the_factors(scale: float, credit: float) -> None:
    versions = [exported("a", "NVIDIA", scale, credit) for _ in range(7)]
    assert found([exported("a", "CPU", 1), *versions])["NVIDIA", "cuda"] == scale
