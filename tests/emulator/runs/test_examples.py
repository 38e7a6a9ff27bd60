"""What is stored of the examples' runs is what the engine gives. `manage.py store_examples` makes them again."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.files.presets import PRESETS, Preset
from emulator.runs.examples import orders_of, stored_runs, stored_timeline, variants_of
from emulator.runs.execution import answer_of, execute
from emulator.runs.packed_timeline import pack, unpack

# Of each policy, of a reported case and of an example of the documents; all take a moment.
SAMPLE = ("document-shortfall", "document-two-processors", "s6_long_job_no_slack", "boinc-912", "boinc-839")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_every_example_has_its_finished_runs(preset: Preset) -> None:
    runs = stored_runs(preset.key)
    assert len(runs) == len(variants_of(preset)) == (2 if preset.case else 1)
    for number, run in enumerate(runs, 1):
        timeline = stored_timeline(preset.key, number)
        assert timeline.texts["duration_secs"] == preset.days * 86_400
        assert timeline.texts["projects"] == [row["name"] for row in run.projects]


@pytest.mark.parametrize("key", SAMPLE)
def test_stored_runs_are_what_the_engine_gives(key: str) -> None:
    preset = next(preset for preset in PRESETS if preset.key == key)
    for number, (order, stored) in enumerate(zip(orders_of(preset), stored_runs(key), strict=True), 1):
        result = execute(order)
        today = answer_of(result)
        assert today["projects"] == [row | {"instance_secs": tuple(row["instance_secs"])} for row in stored.projects], (
            "run manage.py store_examples"
        )
        assert today["figures_of_merit"] == pytest.approx(stored.figures, abs=1e-9)
        timeline, columns = stored_timeline(key, number), unpack(pack(result)).columns
        assert all(np.array_equal(timeline[name], column) for name, column in columns.items())
