"""What the tests of the site itself share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from portal.models import User
from portal.ops import logs
from tests.support.site_world import World, make_world


@pytest.fixture
def log_lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[dict[str, object]]]]:
    """The lines that a production process has written since the test began, parsed; logging is the real one."""
    logs.configure({"json": True, "level": "INFO"})
    lines: list[dict[str, object]] = []

    def read() -> list[dict[str, object]]:
        lines.extend(json.loads(line) for line in capsys.readouterr().err.splitlines())
        return lines

    yield read
    logs.configure(settings.LOGGING)


@pytest.fixture
def world(alice: User, bob: User, operator: User) -> World:
    """Alice has one of everything."""
    return make_world(alice, bob, operator)
