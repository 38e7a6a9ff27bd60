"""Archives of input files, as anybody may have made them."""

from __future__ import annotations

import random
import stat
import struct
import tracemalloc
import zipfile
from io import BytesIO

import pytest

from scheduler.submission import archives
from scheduler.wire.job_fields import JobError


def packed(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> BytesIO:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return file


def faults(file: BytesIO) -> list[str]:
    with archives.opened(file) as archive:
        return [str(fault) for fault in archive.faults]


def test_files_are_read_by_their_paths_and_the_table_is_no_input() -> None:
    with archives.opened(packed(("a/in.txt", b"1\n"), ("b.bin", b"\xff\0"), ("jobs.csv", b"name\nx\n"))) as archive:
        assert archive.faults == []
        assert {path: entry.read() for path, entry in archive.files.items()} == {"a/in.txt": b"1\n", "b.bin": b"\xff\0"}
        assert archive.table == "name\nx\n"


@pytest.mark.parametrize(
    "path", ["../in", "a/../../in", "/etc/passwd", "a//b", "./a", "a\\..\\in", "C:in", "a b", "in\n", "x" * 201]
)
def test_no_path_leads_out(path: str) -> None:
    [fault] = faults(packed((path, b"1"), ("good", b"1")))
    assert "leads out of the archive" in fault or "not a path of" in fault


def test_a_link_is_no_file() -> None:
    link = zipfile.ZipInfo("in")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    assert faults(packed((link, b"/etc/passwd"))) == ["in: not an ordinary file but a link or something similar"]


def test_other_methods_of_packing_have_no_limit_and_are_refused() -> None:
    assert "usual method" in faults(packed(("in", b"1" * 100), method=zipfile.ZIP_BZIP2))[0]
    assert "usual method" in faults(packed(("in", b"1" * 100), method=zipfile.ZIP_LZMA))[0]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_path_is_used_once() -> None:
    assert faults(packed(("in", b"1"), ("in", b"2"))) == ["in: twice in the archive"]


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    zeros = b"\0" * archives.MAX_ENTRY_NBYTES
    bomb = packed(*((str(number), zeros) for number in range(9)))
    assert bomb.getbuffer().nbytes < 1_000_000
    tracemalloc.start()
    # 9 × 64 MiB
    assert faults(bomb) == [f"unpacked they have {9 * 2**26:,} bytes; the limit is {2**29:,}"]
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert "the limit is 67,108,864" in faults(packed(("in", zeros + b"\0")))[0]


def test_an_entry_that_is_longer_than_it_claims_is_damaged() -> None:
    file = packed(("in", b"0123456789" * 1000))
    raw = bytearray(file.getvalue())
    at = raw.rindex(b"PK\1\2")
    raw[at + 24 : at + 28] = struct.pack("<L", 10)
    with archives.opened(BytesIO(bytes(raw))) as archive:
        entry = archive.files["in"]
        assert isinstance(entry, archives.Entry)
        assert str(entry.check()).startswith("damaged in the archive")
        with pytest.raises(JobError, match="damaged in the archive"):
            entry.read()


def test_a_million_entries_are_not_even_listed() -> None:
    """The directory alone, written by hand: 46 bytes an entry and a name, all of the same nothing."""
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"x"
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"x"
    directory = entry * 1_000_000
    wide = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 10**6, 10**6, len(directory), len(local))
    place = struct.pack("<4sLQL", b"PK\6\7", 0, len(local) + len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)
    file = BytesIO(local + directory + wide + place + end)
    tracemalloc.start()
    assert "the list of its files has more than 2097152 bytes" in faults(file)[0]
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    some = packed(*((f"{number}", b"") for number in range(archives.MAX_ENTRIES + 1)))
    assert faults(some) == ["10,001 files in the archive; the limit is 10,000"]


@pytest.mark.parametrize("raw", [b"", b"PK", b"PK\5\6" + b"\0" * 18 + b"x", b"\0" * 100_000, b"PK\3\4" * 1000])
def test_what_is_no_archive_says_so(raw: bytes) -> None:
    with archives.opened(BytesIO(raw)) as archive:
        assert not archive.files
        assert [str(fault.message)[:30] for fault in archive.faults] in ([], ["this is not a readable ZIP arc"])


def test_whatever_is_changed_in_an_archive_is_a_fault_and_no_error() -> None:
    chance = random.Random(1)
    with_table = packed(("a", b"1" * 300), ("b", b"2" * 300), ("jobs.csv", b"name\nx\n")).getvalue()
    for _ in range(4000):
        raw = bytearray(with_table)
        for _ in range(chance.choice((1, 2, 8))):
            at = chance.randrange(len(raw))
            raw[at : at + 4] = chance.choice((b"\xff" * 4, b"\0" * 4, bytes([chance.randrange(256)])))
        with archives.opened(BytesIO(raw)) as archive:
            for entry in archive.files.values():
                assert isinstance(entry, archives.Entry)
                entry.check()


def test_an_entry_beyond_the_end_of_all_files_is_damaged() -> None:
    """Its place is a number of 64 bits, more than any file system takes."""
    entry = zipfile.ZipInfo("in")
    raw = packed((entry, b"1" * 50)).getvalue()
    at = raw.index(b"PK\1\2")
    extra = struct.pack("<HHQ", 1, 8, 2**64 - 1)
    central = bytearray(raw[at : raw.index(b"PK\5\6")])
    struct.pack_into("<H", central, 30, len(extra))
    struct.pack_into("<L", central, 42, 0xFFFFFFFF)
    central += extra
    end = bytearray(raw[raw.index(b"PK\5\6") :])
    struct.pack_into("<L", end, 12, len(central))
    with archives.opened(BytesIO(raw[:at] + bytes(central) + bytes(end))) as archive:
        for found in archive.files.values():
            assert isinstance(found, archives.Entry)
            assert "damaged" in str(found.check())
