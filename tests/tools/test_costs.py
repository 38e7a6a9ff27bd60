"""The rings of tests and the shares of folders: what is marked, and what fails a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.costs import Cost, grown, noted_shares, shares
from tests.support.rings import ring_of

INNER = """
import subprocess
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

class Connection(BaseDatabaseWrapper):
    connection = None
    def __init__(self): pass
    def validate_thread_sharing(self): pass
    def validate_no_atomic_block(self): pass

def start():
    subprocess.run(["true"])

@pytest.fixture
def started():
    start()

def test_that_starts(): start()
def test_whose_fixture_starts(started): pass
def test_that_commits(): Connection().commit()
def test_that_does_neither(): pass

@pytest.mark.system
def test_of_a_system(started):
    start()
    Connection().commit()
"""


@pytest.mark.system
def test_a_unit_test_fails_that_starts_a_process_or_commits(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(INNER)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n unit\n system\n")
    options = ["-p", "no:django", "-p", "no:cacheprovider", "-p", "tests.support.rings", "-rA", "-q", "--tb=no"]
    command = [sys.executable, "-m", "pytest", *options, "-c", str(tmp_path / "pytest.ini"), str(tmp_path)]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    outcomes = {name: outcome for outcome, name in re.findall(r"^(PASSED|FAILED) .*::(test_\w+)", done.stdout, re.M)}
    assert outcomes == {
        "test_that_starts": "FAILED",
        "test_whose_fixture_starts": "FAILED",
        "test_that_commits": "FAILED",
        "test_that_does_neither": "PASSED",
        "test_of_a_system": "PASSED",
    }, done.stdout


def test_a_test_is_in_the_ring_of_what_it_uses(request: pytest.FixtureRequest) -> None:
    assert ring_of(request.node) == "unit"


def test_a_share_is_of_all_processor_time() -> None:
    costs = {
        "tests/credit/engine/test_a.py::test_b": Cost(2.0),
        "tests/credit/test_c.py::test_d[1]": Cost(1.0),
        "extras/alerts/tests/test_e.py::test_f": Cost(1.0),
    }
    # 3 of 4 s, and 1 of 4 s
    assert shares(costs) == {"tests/credit": 75.0, "extras/alerts": 25.0}


@pytest.mark.parametrize(
    ("percent", "fails"),
    [
        (13.4, False),  # 1.25 * 10 % + 1 %
        (13.6, True),
    ],
)
def test_a_folder_that_grew_by_a_quarter_is_named(percent: float, fails: bool) -> None:
    noted = noted_shares("| Folder | Share |\n| --- | --- |\n| `tests/credit` | 10 % |\n")
    assert noted == {"tests/credit": 10.0}
    assert bool(grown({"tests/credit": percent}, noted)) is fails


def test_a_folder_that_is_not_noted_may_take_one_percent() -> None:
    assert grown({"extras/alerts": 0.9}, {}) == []
    assert grown({"extras/alerts": 1.1}, {}) != []
