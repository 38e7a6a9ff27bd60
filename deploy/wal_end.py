"""Read the WAL that follows a base backup, and print its last commit; fail if a file is missing or damaged.

A recovering server takes a missing or damaged file for the end of the WAL. So all of it is read before. `pg_waldump`
checks each record's checksum, and stops at the first that it cannot read. After the true end there are only zeros, or
the beginning of one record, which the server was writing when it died. The output is position, transaction and time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAGE = 8192
# A page's header, and that of a file's first page.
SHORT_HEADER, LONG_HEADER = 24, 40
# The size of a copy's reads; the kernel writes pages of this size.
COPIED = 4096
TRIES = 5
FIRST_TIMELINE = "00000001"
SEGMENT = re.compile(r"([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})(\.partial)?")
COMMIT = re.compile(r" tx: +(\d+), lsn: ([0-9A-F]+/[0-9A-F]+), .* desc: COMMIT ([0-9-]+ [0-9:.]+) UTC")
UNREADABLE = re.compile(r"error in WAL record at ([0-9A-F]+/[0-9A-F]+): ")
NOT_THERE = re.compile(r'could not find file "([0-9A-F]{24})"')


class FaultError(Exception):
    """The WAL cannot be read to its end."""


@dataclass(frozen=True)
class Commit:
    xid: str
    lsn: str
    # UTC, in one format: the greater one is later.
    time: str


def number(lsn: str) -> int:
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


class Wal:
    """The files from the one with a position on, as one stretch of bytes."""

    def __init__(self, folder: Path, start: int) -> None:
        self._folder = folder
        self._sizes = {path.name: path.stat().st_size for path in folder.iterdir() if SEGMENT.fullmatch(path.name)}
        names = list(self._sizes)
        # Truncated files are shorter.
        self.segment_size = max(self._sizes.values(), default=0)
        if self.segment_size < PAGE or self.segment_size & (self.segment_size - 1):
            raise FaultError(f"there is no WAL in {folder}")
        first = start // self.segment_size
        self._files: dict[int, Path] = {}
        # Why no file after these can be used.
        self.gap = ""
        history = self._history(names)
        for at in range(first, max(history) + 1):
            self.gap = self._fault(at, history)
            if self.gap:
                break
            self._files[at] = folder / history[at]
        if not self._files:
            raise FaultError(self.gap or f"{self.name(first)} is missing")

    def _history(self, names: list[str]) -> dict[int, str]:
        """Return the file with each number. After a timeline branched off, its files count, and not its parent's."""
        by_timeline: dict[str, dict[int, str]] = {}
        # In this order a complete file replaces its partially received version.
        for name in sorted(names, reverse=True):
            at = int(name[8:16], 16) * self._per_high + int(name[16:24], 16)
            by_timeline.setdefault(name[:8], {})[at] = name
        files: dict[int, str] = {}
        for _, of_timeline in sorted(by_timeline.items(), reverse=True):
            oldest = min(files, default=None)
            files |= {at: name for at, name in of_timeline.items() if oldest is None or at < oldest}
        return files

    def _fault(self, at: int, history: dict[int, str]) -> str:
        if at not in history:
            return f"{self.name(at, history.get(at - 1, FIRST_TIMELINE)[:8])} is missing"
        nbytes = self._sizes[history[at]]
        if nbytes != self.segment_size:
            return f"{history[at]} has {nbytes} bytes instead of {self.segment_size}"
        return ""

    @property
    def _per_high(self) -> int:
        """How many files there are for one value of the first half of their names."""
        return (1 << 32) // self.segment_size

    def name(self, at: int, timeline: str = FIRST_TIMELINE) -> str:
        return f"{timeline}{at // self._per_high:08X}{at % self._per_high:08X}"

    def link(self, folder: Path) -> None:
        """Show the files to `pg_waldump`, as if they had always been one timeline."""
        for at, path in self._files.items():
            if path.suffix:
                # It may be growing. Copied starting at its end, it gets no hole from what is written meanwhile.
                with path.open("rb") as source, (folder / self.name(at)).open("wb") as copy:
                    for offset in range(self.segment_size - COPIED, -1, -COPIED):
                        copy.seek(offset)
                        copy.write(os.pread(source.fileno(), COPIED, offset))
                self._files[at] = folder / self.name(at)
            else:
                (folder / self.name(at)).symlink_to(path.absolute())

    def follows(self, name: str) -> bool:
        """Whether that would be the name of the file after the last one."""
        return name == self.name(max(self._files) + 1)

    def read(self, start: int, nbytes: int) -> bytes:
        path = self._files.get(start // self.segment_size)
        if path is None:
            return b""
        with path.open("rb") as file:
            file.seek(start % self.segment_size)
            return file.read(nbytes)

    def after(self, start: int, nbytes: int) -> int:
        """Return where this many bytes that begin there end, with the headers of pages between them."""
        at = start
        while nbytes:
            at = self._past_header(at)
            step = min(nbytes, PAGE - at % PAGE)
            at, nbytes = at + step, nbytes - step
        return at

    def _past_header(self, at: int) -> int:
        if at % PAGE:
            return at
        return at + (SHORT_HEADER if at % self.segment_size else LONG_HEADER)

    def _next_record(self, last: int) -> int:
        end = self.after(last, int.from_bytes(self.read(last, 4), "little"))
        return self._past_header(end + -end % 8)

    def _unfinished(self, last: int) -> int:
        """Return where a record could end that was being written after the last one."""
        start = self._next_record(last)
        if PAGE - start % PAGE < 16:
            # Its header ends on the next page, which was not written, or is meaningless.
            return start - start % PAGE + PAGE
        length, previous = (
            int.from_bytes(self.read(start, 4), "little"),
            int.from_bytes(self.read(start + 8, 8), "little"),
        )
        return self.after(start, length) if previous == last else start

    def ends_after(self, last: int) -> bool:
        """Whether the record that begins there is the last one that was completely written."""
        at, end = self._unfinished(last), (max(self._files) + 1) * self.segment_size
        while at < end:
            rest = self.read(at, self.segment_size - at % self.segment_size)
            if not rest or any(rest):
                return False
            at += len(rest)
        return True


def commits(wal: Wal, folder: Path, start: str) -> Iterator[Commit]:
    """Return the commits from there to the end of the WAL."""
    command = ["pg_waldump", "--rmgr=Transaction", f"--path={folder}", "--timeline=1", f"--start={start}"]
    with tempfile.TemporaryFile("w+") as complaints:
        variables = os.environ | {"TZ": "UTC", "LC_ALL": "C"}
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=complaints, text=True) as program:
            assert program.stdout is not None
            try:
                for line in program.stdout:
                    if match := COMMIT.search(line):
                        yield Commit(match[1], match[2], match[3])
            finally:
                program.stdout.close()
                program.kill()
        complaints.seek(0)
        complaint = complaints.read().strip()
    if wal.gap:
        raise FaultError(wal.gap)
    if match := NOT_THERE.search(complaint):
        if wal.follows(match[1]):
            return
    elif (match := UNREADABLE.search(complaint)) and wal.ends_after(number(match[1])):
        return
    raise FaultError(complaint.removeprefix("pg_waldump: error: "))


def last_commit(backup: Path, folder: Path, reached: str, until: str) -> Commit | None:
    """Return the last commit until that time, if one is given; None if there is none since the backup was complete.

    The WAL must still have the commit that it had `reached`. Meanwhile files are received, renamed when they are
    complete, and removed when no backup needs them any more: then everything is read again.
    """
    ranges = json.loads((backup / "backup_manifest").read_text())["WAL-Ranges"]
    for _ in range(TRIES):
        with suppress(FileNotFoundError):
            return _last_commit(ranges, folder, reached, until)
    raise FaultError(f"{folder} changes too fast to be read")


def _last_commit(ranges: list[dict[str, str]], folder: Path, reached: str, until: str) -> Commit | None:
    first, complete = ranges[0]["Start-LSN"], ranges[-1]["End-LSN"]
    last = None
    try:
        wal = Wal(folder, number(first))
        with tempfile.TemporaryDirectory() as links:
            wal.link(Path(links))
            for commit in commits(wal, Path(links), first):
                if until and commit.time > until:
                    break
                last = commit
            else:
                if reached and (last is None or number(last.lsn) < number(reached)):
                    raise FaultError(f"it had reached {reached} before, and ends earlier now")
    except FaultError as error:
        # Whoever gives exactly this time knows that later commits are lost.
        if last is None or last.time != until:
            before = f"the last commit before is of {last.time}+00" if last else "there is no commit before"
            raise FaultError(f"the WAL cannot be read to its end: {error}; {before}") from error
    return last if last and number(last.lsn) >= number(complete) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backup", type=Path, help="the folder of a base backup")
    parser.add_argument("wal", type=Path, help="the folder with the WAL")
    parser.add_argument("--reached", default="", help="the position of a commit that the WAL has had")
    parser.add_argument("--until", default="", help="a time in UTC, as pg_waldump writes it")
    words = parser.parse_args()
    try:
        last = last_commit(words.backup, words.wal, words.reached, words.until)
    except FaultError as error:
        sys.exit(f"cobblestone-backup: {error}")
    if last:
        print(f"{last.lsn} {last.xid} {last.time}+00")


if __name__ == "__main__":
    main()
