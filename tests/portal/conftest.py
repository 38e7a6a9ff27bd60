"""What the tests of the site itself share."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from portal import logs


@pytest.fixture
def log_lines() -> Iterator[Callable[[], list[dict[str, object]]]]:
    """The lines that a production process has written since the test began, parsed; logging is the real one."""
    written = io.StringIO()
    with contextlib.redirect_stderr(written):
        logs.configure({"json": True, "level": "INFO"})
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logs.configure(settings.LOGGING)
