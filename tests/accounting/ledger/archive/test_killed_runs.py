"""A run that is killed at any of its steps: nobody sees a month twice or not at all, and the next run completes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from accounting.ledger.archive import moves, store
from accounting.models import ArchivePart
from portal.models import User
from tests.support.archived_books import archive, archive_in, everything, files, make_history, restore, roll_up, sound
from tests.support.database import backend
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with archive_in(tmp_path / "archive"):
        yield tmp_path / "archive"


def killed(run: Callable[[], object], module: Any, name: str, *, call: int, before: bool) -> None:
    """Run it in another process, which is killed before or after a call of a function."""
    connection.close()
    backend().close_pool()
    child = os.fork()
    if child == 0:
        try:
            _kill_at(module, name, call, before)
            run()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    wait_until(_is_alone, "PostgreSQL to notice that the run is gone", 30)


def _kill_at(module: Any, name: str, call: int, before: bool) -> None:
    function, calls = getattr(module, name), iter(range(1, 1000))

    def then_die(*args: Any) -> Any:
        is_last = next(calls) == call
        if is_last and before:
            os.kill(os.getpid(), signal.SIGKILL)
        found = function(*args)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(module, name, then_die)


def _is_alone() -> bool:
    with moves.alone() as is_alone:
        return is_alone


# Of archiving: a file is written and not noted; all of a month's are; its row and the drop are not committed; they are.
# Of bringing back: the table is filled; it is attached and not committed; it is committed and the files are there; some
# are removed.
STEPS = [
    (archive, store, "save", 1, False),
    (archive, moves, "in_short_waits", 1, True),
    (archive, moves, "_take", 2, False),
    (archive, moves, "in_short_waits", 2, False),
    (restore, moves, "_fill", 1, False),
    (restore, moves, "_put_back", 2, False),
    (restore, moves, "in_short_waits", 1, False),
    (restore, store, "remove", 1, False),
]


@pytest.mark.parametrize(("run", "module", "name", "call", "before"), STEPS)
def test_a_killed_run_leaves_everything_readable_and_is_repeated(
    alice: User, folder: Path, run: Callable[[], object], module: Any, name: str, call: int, before: bool
) -> None:
    make_history(alice)
    roll_up()
    expected = everything(alice)
    if run is restore:
        archive()
    killed(run, module, name, call=call, before=before)
    assert everything(alice) == expected
    assert sound()
    run()
    assert everything(alice) == expected
    assert sound()
    # Nothing of the killed run is left.
    assert files(folder) == sorted(ArchivePart.objects.values_list("name", flat=True))
    assert ArchivePart.objects.exists() == (run is archive)
