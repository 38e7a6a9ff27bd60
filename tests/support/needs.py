"""What tests need of the machine that packages of Python cannot bring.

Where it is missing, a test is skipped: the README's commands want Python and make alone. With REQUIRE_E2E=1, as
`.ci/run` sets after its installations, it fails instead.
"""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def go_without(reason: str) -> NoReturn:
    """Skip the test, or let it fail, for this reason."""
    if os.environ.get("REQUIRE_E2E") == "1":
        pytest.fail(f"{reason}, but REQUIRE_E2E=1")
    pytest.skip(reason)  # the one place that skips a test: without the machine's packages the others run on


def need(*programs: str) -> None:
    """Go without, unless all these programs are there: by path, or by name on the PATH."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        go_without(f"{' and '.join(missing)} not installed")
