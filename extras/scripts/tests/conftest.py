"""The computers of four volunteers, a temporary folder for files, and scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from extras.scripts.models import Script
from tests.credit.conftest import hosts
from tests.scheduler.conftest import code_key_folder, project_folders
from tests.support.needs import need

__all__ = ["code_key_folder", "hosts", "project_folders"]

PYTHON = "#!/usr/bin/env python3\nimport json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n"
ANSWER = "    print(json.dumps(answer), flush=True)\n"
BY_VALUE = (
    f"{PYTHON}"
    "    def value(result):\n        return float(open(result['files'][0]['path']).read())\n"
    "    if asked['ask'] == 'check':\n"
    "        answer = {'answer': value(asked['result']) == value(asked['result']), 'credit': 12.5}\n"
    "    else:\n"
    "        answer = {'answer': abs(value(asked['first']) - value(asked['second'])) < 0.01}\n"
    f"{ANSWER}"
)
"""Numbers agree to a hundredth; NaN is not fit; each check assigns 12.5 credits."""

Make = Callable[..., Script]


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Provide the sandbox that scripts run in."""
    need("bwrap")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that a script can read, whoever runs it: pytest's own are closed to all but the user of the tests."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def make_script(db: None) -> Make:
    def make(source: str = BY_VALUE, name: str = "by-value", **fields: Any) -> Script:
        return Script.objects.create(name=name, source=source, **{"kind": Script.Kind.COMPARE, **fields})

    return make
