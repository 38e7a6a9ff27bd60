"""A run that loses its connection: its own error is told, others can begin, and the next run removes its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from accounting.ledger.archive import moves
from accounting.models import ArchivePart
from portal.models import User
from tests.support.archived_books import archive, archive_in, everything, files, make_history, roll_up, sound

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with archive_in(tmp_path / "archive"):
        yield tmp_path / "archive"


def cut() -> None:
    """End this process's session at the server, and notice it."""
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        assert connection.connection is not None
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
    with pytest.raises(OperationalError):
        ArchivePart.objects.exists()


def test_the_error_that_ended_a_run_is_told_and_the_next_run_can_begin() -> None:
    with pytest.raises(ZeroDivisionError), moves.alone() as is_alone:
        assert is_alone
        cut()
        raise ZeroDivisionError
    with moves.alone() as is_alone:
        assert is_alone


def test_files_of_which_nothing_is_known_are_removed_by_the_next_run(
    alice: User, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_history(alice)
    roll_up()
    expected, left = everything(alice), []

    def then_lost(take: Any) -> None:
        cut()
        left.extend(files(folder))
        raise OSError("the network is away")

    with monkeypatch.context() as patch:
        patch.setattr(moves, "in_short_waits", then_lost)
        with pytest.raises(OSError, match="the network is away"):
            archive()
    assert left and files(folder) == left
    archive()
    assert not set(left) & set(files(folder))
    assert files(folder) == sorted(ArchivePart.objects.values_list("name", flat=True))
    assert everything(alice) == expected
    assert sound()
