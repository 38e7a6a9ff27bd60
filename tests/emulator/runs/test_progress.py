"""How far a run and the changes tried after it are said to be."""

from __future__ import annotations

import pytest

from emulator.engine.policies.rec import Rec
from emulator.engine.run import Emulation
from emulator.files.presets import preset
from emulator.runs.process import RUN_PART, _Progress


def test_a_run_that_is_over_is_not_all_while_changes_are_tried() -> None:
    first, trial = (Emulation(preset("s1_two_equal_cpu").scenario, Rec(), 1.0) for _ in range(2))
    progress = _Progress()
    assert progress.fraction == 0.0
    progress.begin(first, RUN_PART)
    first.result()
    assert progress.fraction == pytest.approx(RUN_PART, abs=0.01)
    progress.begin(trial, 1 - RUN_PART)
    assert progress.fraction == RUN_PART
    trial.result()
    # The last event is some minutes before the end.
    assert progress.fraction == pytest.approx(1.0, abs=0.01)
