"""Somebody reads all the time while a month is archived and brought back: each time, every day is there once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from accounting.exchange.day_rows import DayRange, read_page
from portal.models import User
from tests.support.archived_books import END, TODAY, archive, archive_in, make_history, restore, roll_up

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with archive_in(tmp_path / "archive"):
        yield tmp_path / "archive"


def test_no_day_is_seen_twice_or_missed(alice: User) -> None:
    make_history(alice)
    roll_up()
    wanted = DayRange(END.replace(year=2020), TODAY)
    expected = read_page(alice, wanted)
    is_over = threading.Event()
    found: list[object] = []

    def read() -> None:
        try:
            while not is_over.is_set():
                found.append(read_page(alice, wanted) == expected)
        except Exception as error:  # whatever it is: the test fails with it
            found.append(error)
        finally:
            connection.close()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(3):
        archive()
        restore()
    is_over.set()
    for reader in readers:
        reader.join()
    assert len(found) > 2
    assert set(found) == {True}
