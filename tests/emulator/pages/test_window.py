"""What of a run is drawn: packing, exact blocks, cells of columns."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.timeline.results import Result
from emulator.files.presets import preset
from emulator.pages.window import BLOCKS_MAX, cover, window
from emulator.runs.packed_timeline import Packed, pack, unpack

DAY_SECS = 86_400.0


@pytest.fixture(scope="module")
def result() -> Result:
    scenario = preset("s2_gpu_example1").scenario
    return run(scenario, make_policy("rec", scenario, {}), 20, 1)


@pytest.fixture(scope="module")
def packed(result: Result) -> Packed:
    return unpack(pack(result))


def busy(parts: list[list[float]]) -> float:
    return sum(part for _project, part in parts)


def test_what_is_packed_comes_back(result: Result, packed: Packed) -> None:
    assert result.timeline is not None
    blocks = result.timeline.blocks
    assert packed["blocks.start_secs"].tolist() == list(blocks.start_secs)
    assert packed["blocks.job"].tolist() == list(blocks.job)
    assert packed.texts["projects"] == list(result.timeline.projects)
    assert len(packed["decisions.at_secs"]) == len(result.decisions)


def test_other_bytes_are_refused() -> None:
    with pytest.raises((ValueError, OSError)):
        unpack(b"no archive")


def test_a_short_window_has_the_blocks_that_touch_it(packed: Packed) -> None:
    out = window(packed, DAY_SECS, 2 * DAY_SECS, 800)
    assert out["blocks"]
    for _, start, end, *_ in out["blocks"]:
        assert start < 2 * DAY_SECS and end > DAY_SECS


def test_a_full_window_has_few_rows_and_accounts_for_all_time(packed: Packed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.pages.window.BLOCKS_MAX", 10)
    out = window(packed, 0, 20 * DAY_SECS, 2100)
    width = out["width"]
    assert width == 700  # a column is three pixels wide
    lanes = len(packed.texts["lanes"])
    # Always busy (the CPU of a GPU job takes a hundredth): each lane's cells cover all columns, each at most once.
    for lane in range(lanes):
        columns = sum(last - first for of, first, last, parts in out["cells"] if of == lane and busy(parts) > 0.98)
        assert columns >= width - 3
    assert len(out["cells"]) <= lanes * width


def test_without_all_blocks_the_bins_are_drawn(packed: Packed) -> None:
    partial = Packed(packed.columns, {**packed.texts, "blocks_complete": False})
    # The last block kept starts before the window's end.
    out = window(partial, 0, 20 * DAY_SECS, 1500)
    total = sum((last - first) * busy(parts) for _, first, last, parts in out["cells"])
    # One CPU and one GPU, busy all the time: 2 lanes × 500 columns
    assert total == pytest.approx(1000, rel=0.02)


def test_projects_that_share_a_column_are_stacked(packed: Packed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.pages.window.BLOCKS_MAX", 10)
    out = window(packed, 0, 20 * DAY_SECS, 30)
    shared = [parts for _, _, _, parts in out["cells"] if len(parts) > 1]
    assert shared
    for parts in shared:
        assert [project for project, _part in parts] == [0, 1]
        assert 0 < busy(parts) <= 1.02


def test_cover_is_exact() -> None:
    # [0.5, 2.25) at 1 and [2, 3) at half: 0.5, 1, 0.25 + 0.5, 0
    first, last = np.array([0.5, 2.0]), np.array([2.25, 3.0])
    assert cover(first, last, np.array([1.0, 0.5]), 4).tolist() == pytest.approx([0.5, 1.0, 0.75, 0.0])


def test_cover_reaches_the_last_column() -> None:
    # A block that ends beyond the window is cut to its width, 3.
    assert cover(np.array([0.0]), np.array([3.0]), np.array([1.0]), 3).tolist() == [1.0, 1.0, 1.0]


def test_marks_are_counted_even_where_not_all_are_sent(packed: Packed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.pages.window.MARKS_MAX", 5)
    out = window(packed, 0, 20 * DAY_SECS, 500)
    assert out["rpcs"]["count"] == len(packed["rpcs.at_secs"])
    assert len(out["rpcs"]["rows"]) == 5
    assert BLOCKS_MAX > 5
