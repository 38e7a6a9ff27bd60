"""The tests of rules look into objects, which is where the compiled loop has none."""

from __future__ import annotations

import pytest

from emulator.engine.kernel import dispatch


@pytest.fixture(autouse=True)
def _on_objects(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.name != "test_kernel.py":
        monkeypatch.setattr(dispatch, "IS_COMPILED", False)
