"""A restore gets to the last commit or is refused: the drill with files of the WAL that are missing or damaged."""

from __future__ import annotations

import os
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.backups import SCRIPT, Backups
from tests.support.own_server import PROGRAMS, OwnServer

COMMITS, ROWS = 12, 3_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Backups:
    """A base backup, and the WAL of twelve commits that a server made before it was killed."""
    folder = tmp_path_factory.mktemp("archive") / "backups"
    with OwnServer() as server:
        backups = Backups(folder, server)
        with backups.receiving() as receiver:
            backups.run("base")
            server.ask("CREATE TABLE ledger (number integer, text text)")
            for _ in range(COMMITS):
                server.ask(f"INSERT INTO ledger SELECT n, repeat('x', 100) FROM generate_series(1, {ROWS}) n")
            backups.wait_for_wal(server)
            server.kill()
            receiver.stop()
    return backups


@pytest.fixture
def backups(archive: Backups, tmp_path: Path) -> Backups:
    """A copy whose WAL may be damaged."""
    copy = Backups(tmp_path / "backups")
    shutil.copytree(archive.folder / "base", copy.folder / "base", copy_function=os.link)
    shutil.copytree(archive.folder / "wal", copy.folder / "wal")
    return copy


@pytest.fixture
def restored() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.__exit__()


def rows(server: OwnServer) -> int:
    with server:
        count = server.ask("SELECT count(*) FROM ledger")
    assert isinstance(count, int)
    return count


@pytest.mark.system
def test_all_commits_are_restored_and_the_last_one_is_named(backups: Backups, restored: OwnServer) -> None:
    (moment,) = re.findall(r"last commit, at (.*)\n", backups.run("check"))
    assert f"it recovers to the last commit, at {moment}\n" in backups.run("restore", str(restored.data))
    assert rows(restored) == COMMITS * ROWS


def overwrite(file: Path, at: int, content: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(at)
        stream.write(content)


def truncate(file: Path) -> None:
    os.truncate(file, 500_000)


def damage(file: Path) -> None:
    overwrite(file, 163_840, os.urandom(16_384))


def damage_one_byte(file: Path) -> None:
    """In the text of a row: all but the record's sum stays right."""
    overwrite(file, file.read_bytes().index(b"x" * 80, 300_000) + 40, b"y")


def clear(file: Path) -> None:
    overwrite(file, 163_840, bytes(16_384))


def clear_at_the_start(file: Path) -> None:
    overwrite(file, 0, bytes(8_192))


def replace_by_the_one_before(file: Path) -> None:
    files = sorted(file.parent.iterdir())
    shutil.copy(files[files.index(file) - 1], file)


FAULTS: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "missing": (Path.unlink, 4, "is missing"),
    "truncated": (truncate, 4, "has 500000 bytes instead of 1048576"),
    "overwritten": (damage, 4, "invalid magic number"),
    "one byte": (damage_one_byte, 4, "incorrect resource manager data checksum"),
    "zeros": (clear, 4, "invalid magic number 0000"),
    "zeros at the start": (clear_at_the_start, 4, "invalid magic number 0000"),
    "another file": (replace_by_the_one_before, 4, "unexpected pageaddr"),
    "first missing": (Path.unlink, 0, "is missing; there is no commit before"),
    "before the last missing": (Path.unlink, -2, "is missing"),
    "before the last truncated": (truncate, -2, "has 500000 bytes"),
    "last truncated": (truncate, -1, "has 500000 bytes"),
    "last cleared at the start": (clear_at_the_start, -1, "invalid magic number 0000"),
}


@pytest.mark.system
@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_missing_or_damaged_is_noticed_before_a_server_opens(
    backups: Backups, restored: OwnServer, fault: str
) -> None:
    harm, position, complaint = FAULTS[fault]
    harm(backups.folder / "wal" / backups.wal()[position])
    assert complaint in backups.refuse("restore", str(restored.data))[1]
    assert not restored.data.exists()


@pytest.mark.system
def test_what_was_written_before_a_gap_is_restored_when_its_last_moment_is_named(
    backups: Backups, restored: OwnServer
) -> None:
    (backups.folder / "wal" / backups.wal()[4]).unlink()
    refusal = backups.refuse("restore", str(restored.data))[1]
    assert refusal == backups.refuse("check")[1]
    (moment,) = re.findall(r"the last commit before is of (.*)\n", refusal)
    backups.run("restore", str(restored.data), moment)
    # A commit has about 500 kB, a file 1 MiB.
    assert rows(restored) in range(ROWS, COMMITS * ROWS, ROWS)


@pytest.mark.system
def test_a_later_file_than_the_missing_one_does_not_make_a_moment_reachable(
    backups: Backups, restored: OwnServer
) -> None:
    (backups.folder / "wal" / backups.wal()[4]).unlink()
    assert "is missing" in backups.refuse("restore", str(restored.data), "2100-01-01 00:00:00+00")[1]


@pytest.mark.system
def test_missing_last_files_are_noticed_by_what_was_read_before(backups: Backups, restored: OwnServer) -> None:
    backups.run("check")
    for name in backups.wal()[-2:]:
        (backups.folder / "wal" / name).unlink()
    for words in (("check",), ("restore", str(restored.data), "2100-01-01 00:00Z")):
        assert "and ends earlier now" in backups.refuse(*words)[1]


@pytest.mark.system
def test_the_file_that_was_being_received_must_be_there(backups: Backups, restored: OwnServer) -> None:
    (backups.folder / "wal" / backups.wal()[-1]).unlink()
    assert "the last file of the WAL, in part, is missing" in backups.refuse("restore", str(restored.data))[1]


@pytest.mark.system
def test_a_record_that_the_server_was_writing_when_it_died_is_no_damage(backups: Backups, restored: OwnServer) -> None:
    last = backups.folder / "wal" / backups.wal()[-1]
    content = last.read_bytes().rstrip(b"\0")
    # Of the last commit's rows only the first half has come.
    half = len(content) // 2
    last.write_bytes(content[:half] + bytes(last.stat().st_size - half))
    backups.run("restore", str(restored.data))
    assert rows(restored) == (COMMITS - 1) * ROWS


@pytest.mark.system
def test_a_file_that_is_renamed_while_the_wal_is_read_is_read_under_its_new_name(
    backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal_end = runpy.run_path(str(SCRIPT.with_name("wal_end.py")))
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    folder, fault_of = backups.folder / "wal", wal_end["Wal"]._fault
    (received,) = folder.glob("*.partial")

    def rename_first(*words: Any) -> str:
        if received.exists():
            received.rename(received.with_suffix(""))
        found: str = fault_of(*words)
        return found

    monkeypatch.setattr(wal_end["Wal"], "_fault", rename_first)
    (base,) = (backups.folder / "base").iterdir()
    assert wal_end["last_commit"](base, folder, "", "") is not None


@pytest.mark.system
@pytest.mark.parametrize("sign", ["$", "`", "%", "'"])
def test_a_path_that_the_shell_would_read_otherwise_is_refused(tmp_path: Path, sign: str) -> None:
    refused = Backups(tmp_path / f"back{sign}ups").refuse("restore", str(tmp_path / "data"))
    assert "no path and no time may contain" in refused[1]
