"""A project's statistics export, read as a stream: packed bytes in, records out. Pure.

Source: BOINC protocol, statistics export. It is read line by line, as by other readers: the tags that begin and end a
record have a line of their own, at column 0, and so have its elements within. Lines may end as on Windows, and blank
ones may stand between records. Only the needed elements of a record are parsed, so names may have any bytes. Nothing is
expanded: neither entities nor references. Everything has a limit. Callers must read to the end before using anything,
as a fault may come last.

A stranger's invalid record does not affect others: it is left out and counted (`OddRecords`). Too many of them, or a
file of another format, are a fault of the whole file.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from portal.languages.messages import Message, MessageError, at_place

MAX_UNPACKED_BYTES: Final = 32 << 30
"""The size of one file."""
MAX_PARTS: Final = 100_000
"""The most parts of a packed file, each packed separately."""
MAX_RECORDS: Final = 50_000_000
MAX_RECORD_BYTES: Final = 1 << 18
MAX_HEAD_BYTES: Final = 1 << 12
MAX_NUMBER_CHARS: Final = 40
MAX_CREDIT: Final = 9e12
"""Credits of one record: in micro-credits, about the most that 64 bits hold."""
MAX_ID: Final = 2**62
MAX_TIME: Final = 4e9
"""Seconds since 1970: the year 2096."""
MAX_TABLES_BYTES: Final = 1 << 20

_BLOCK_BYTES: Final = 1 << 20
_HEX: Final = b"0123456789abcdef"
_GZIP_WBITS: Final = zlib.MAX_WBITS | 16
_DECLARATION: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml(?:\s+[a-z]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'))*\s*\?>\s*)?"
)
_ENCODING: Final = re.compile(rb"encoding\s*=\s*[\"']([^\"']*)")
# Encodings whose first 128 characters are ASCII, like everything that we read
_ENCODINGS: Final = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1", b"windows-1252"})


class StatisticsError(MessageError):
    """An unusable export: the message has the file, the field, and the fault or the limit."""

    def __init__(self, where: str, code: str, /, **args: Any) -> None:
        super().__init__(at_place(where, Message(code, **args)))


Record = tuple[int, int, float, float, int, bytes]
"""Id, total credit in micro-credits, recent average (credits a day), its time, when the record was made (seconds since
1970), and the exported cross-project id: 32 hexadecimal digits, or empty if it is none."""

Row = tuple[int, float, float, float, int, bytes]
"""The same with its credit in credits, before its numbers are checked."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the files: its name, its outer element, the element of a record, and that of the cross-project id."""

    name: str
    root: bytes
    record: bytes
    cpid: bytes


USERS: Final = Kind("user.gz", b"users", b"user", b"cpid")
HOSTS: Final = Kind("host.gz", b"hosts", b"host", b"host_cpid")


MAX_ODD_NAMED: Final = 1_000


@dataclass(slots=True)
class OddRecords:
    """Records with a number out of range: how many, and the ids of the first ones.

    A record without a usable id, total or creation time is left out. One with an invalid average counts without it.
    """

    count: int = 0
    first: tuple[str, int, int] | None = None
    """The field of the first one, and the limits of its number."""
    ids: list[int] = field(default_factory=list)

    def note(self, id_: int, what: tuple[str, int, int]) -> None:
        self.count += 1
        self.first = self.first or what
        if id_ and len(self.ids) < MAX_ODD_NAMED:
            self.ids.append(id_)

    def check(self, kind: Kind, nrecords: int, percent: float) -> None:
        """Raise StatisticsError if more than this fraction of a file's records is invalid; a single one is always
        allowed.
        """
        if self.first and self.count > max(1, math.ceil(nrecords * percent / 100)):
            name, least, most = self.first
            raise StatisticsError(
                kind.name, "export_odd_records", number=self.count, all=nrecords, field=name, low=least, high=most
            )


@dataclass(frozen=True, slots=True)
class Tables:
    """The content of tables.xml. Counts are None if missing; they are those of the whole project."""

    update_time: int
    nusers: int | None
    nhosts: int | None

    def check(self, kind: Kind, nrecords: int) -> None:
        """Raise StatisticsError if the file has more records than the project.

        Fewer are usual: not everybody agreed to be published. A hundredth more is normal, too, as projects do not count
        and write at the same moment.
        """
        most = self.nusers if kind is USERS else self.nhosts
        if most is not None and nrecords > most + most // 100 + 100:
            raise StatisticsError(kind.name, "export_more_records", number=nrecords, most=most)


def read_tables(body: bytes) -> Tables:
    """Read tables.xml."""
    where = "tables.xml"
    if len(body) > MAX_TABLES_BYTES:
        raise StatisticsError(where, "export_tables_limit", limit_nbytes=MAX_TABLES_BYTES)
    head = _DECLARATION.match(body)
    _check_encoding(where, head[0] if head else b"")
    if not re.match(rb"<tables>", body[head.end() if head else 0 :]):
        raise StatisticsError(where, "export_begins_otherwise", tag="tables")
    if not body.rstrip().endswith(b"</tables>"):
        raise StatisticsError(where, "export_cut_off", tag="tables")
    update_time = _count(where, body, b"update_time", int(MAX_TIME))
    if update_time is None or update_time <= 0:
        raise StatisticsError(where, "export_without_time")
    nusers, nhosts = (
        # Some old projects leave out the "_total", as BOINC's documentation does.
        _count(where, body, b"n%b_total" % name, MAX_ID) or _count(where, body, b"n%b" % name, MAX_ID)
        for name in (b"users", b"hosts")
    )
    return Tables(update_time, nusers, nhosts)


def _count(where: str, body: bytes, tag: bytes, most: int) -> int | None:
    match = re.search(rb"<%b>([^<]*+)</%b>" % (tag, tag), body)
    if match is None:
        return None
    text = match[1].strip()
    # Some write the time with a fraction.
    if not re.fullmatch(rb"\d{1,19}(?:\.\d{0,20})?", text) or int(text.partition(b".")[0]) > most:
        raise StatisticsError(where, "export_not_a_number", field=tag.decode(), low=0, high=most)
    return int(text.partition(b".")[0])


def unpack(kind: Kind, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack a gzip file of one or several parts, in pieces of about a megabyte."""
    where = kind.name
    inflate = zlib.decompressobj(_GZIP_WBITS)
    nbytes, nparts = 0, 1
    waiting: list[bytes] = []
    for given in packed:
        block, is_more = given, bool(given)
        while is_more:
            if inflate.eof:
                # As in gzip: zeros that fill the last block of a tape are no part.
                block = block.lstrip(b"\0")
                if not block:
                    break
                inflate = zlib.decompressobj(_GZIP_WBITS)
                nparts += 1
            try:
                piece = inflate.decompress(block, _BLOCK_BYTES)
            except zlib.error:
                raise StatisticsError(where, "export_damaged") from None
            nbytes += len(piece)
            if nbytes > MAX_UNPACKED_BYTES:
                raise StatisticsError(where, "export_unpacked_limit", limit_nbytes=MAX_UNPACKED_BYTES)
            if nparts > MAX_PARTS:
                raise StatisticsError(where, "export_parts_limit", limit=MAX_PARTS)
            waiting.append(piece)
            if len(piece) == _BLOCK_BYTES or sum(map(len, waiting)) >= _BLOCK_BYTES or len(waiting) > 100:
                yield b"".join(waiting)
                waiting.clear()
            block = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            # A full piece may have left some behind although all input was consumed.
            is_more = bool(block) or (not inflate.eof and len(piece) == _BLOCK_BYTES)
    yield b"".join(waiting)
    if not inflate.eof:
        raise StatisticsError(where, "export_compression_cut_off")


def records(
    kind: Kind, blocks: Iterable[bytes], ids: Container[int] | None = None, odd: OddRecords | None = None
) -> Iterator[tuple[int, list[Record]]]:
    """Parse the records of an unpacked file: yield how many are in a block, and those with one of the ``ids``; None:
    all.

    The numbers of the others are checked, too. ``odd`` counts the omitted records; the caller sets how many are
    acceptable. Raises StatisticsError, at the latest at the end.
    """
    where = kind.name
    end = b"\n</%b>\n" % kind.record
    read = _Reader(kind, ids, odd if odd is not None else OddRecords())
    nrecords = 0
    source = _with_plain_line_ends(blocks)
    left = _behind_head(kind, source)
    for block in source:
        *whole, left = (left + block).split(end)
        if len(left) > MAX_RECORD_BYTES:
            raise StatisticsError(where, "export_record_limit", limit_nbytes=MAX_RECORD_BYTES)
        if whole:
            nrecords += len(whole)
            if nrecords > MAX_RECORDS:
                raise StatisticsError(where, "export_records_limit", limit=MAX_RECORDS)
            yield len(whole), [record for text in whole if (record := read(text)) is not None]
    *whole, left = left.split(end)
    yield len(whole), [record for text in whole if (record := read(text)) is not None]
    root = kind.root.decode()
    tail = left.strip()
    if not tail.startswith(b"</%b>" % kind.root):
        raise StatisticsError(where, "export_ends_otherwise", tag=root)
    if tail != b"</%b>" % kind.root:
        raise StatisticsError(where, "export_goes_on", tag=root)


def _with_plain_line_ends(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Convert each line ending into a single byte."""
    held = b""
    for given in blocks:
        block = held + given
        held = b""
        if b"\r" in block:
            if block.endswith(b"\r"):
                block, held = block[:-1], b"\r"
            block = block.replace(b"\r\n", b"\n")
        yield block
    yield held


def _behind_head(kind: Kind, source: Iterator[bytes]) -> bytes:
    """Return the rest after the line of the outer element, as far as it was read."""
    head = b""
    for block in source:
        head += block
        if len(head) > MAX_HEAD_BYTES:
            break
    declared = _DECLARATION.match(head)
    begin = declared.end() if declared else 0
    _check_encoding(kind.name, head[:begin])
    line, _, rest = head[begin:].partition(b"\n")
    if line.rstrip() != b"<%b>" % kind.root:
        raise StatisticsError(kind.name, "export_begins_otherwise", tag=kind.root.decode())
    return rest


def _check_encoding(where: str, declaration: bytes) -> None:
    named = _ENCODING.search(declaration)
    if named is not None and named[1].lower() not in _ENCODINGS:
        raise StatisticsError(where, "export_encoding")


class _Reader:
    """Parses the text of one record, from the end of the record before to its last element."""

    def __init__(self, kind: Kind, ids: Container[int] | None, odd: OddRecords) -> None:
        self._ids = ids
        self._odd = odd
        self._where = f"{kind.name}, {kind.record.decode()}"
        self._begin = b"<%b>\n" % kind.record
        self._again = b"\n<%b>\n" % kind.record
        self._cpid = kind.cpid
        # As BOINC writes it; much faster than element by element
        number = rb"([\d.]{1,40})"
        between = rb"\n[ \t]*(?:<userid>\d{1,19}</userid>\n[ \t]*|<name>[^\n]*\n[ \t]*)?"
        made = rb"(?:<create_time>(\d{1,10})</create_time>\n[ \t]*)?"
        self._usual = re.compile(
            rb"<%b>\n[ \t]*<id>(\d{1,19})</id>%b%b<total_credit>%b</total_credit>\n[ \t]*"
            rb"<expavg_credit>%b</expavg_credit>\n[ \t]*<expavg_time>%b</expavg_time>"
            % (kind.record, between, made, number, number, number)
        ).match
        self._cpid_tag = b"<%b>" % kind.cpid
        # Usually it comes last.
        self._usual_cpid = re.compile(rb"<%b>([0-9a-f]{32})</%b>" % (kind.cpid, kind.cpid)).match
        self._cpid_bytes = 2 * len(self._cpid_tag) + 1 + 32

    def __call__(self, text: bytes) -> Record | None:
        if text[:1].isspace():
            text = text.lstrip()
        usual = self._usual(text)
        end = usual.end() if usual is not None else 0
        if text.find(self._again, end) >= 0:
            raise StatisticsError(self._where, "export_record_without_end")
        if usual is None:
            return self._unusual(text)
        id_, made, total, average, at = usual.groups()
        if self._ids is not None and int(id_) not in self._ids:
            self._record(id_, total, average, at, b"0", b"")
            return None
        if made is None:
            made = _last(text, b"<create_time>", end)
        usual = self._usual_cpid(text, max(end, len(text) - self._cpid_bytes))
        cpid = usual[1] if usual is not None else _cpid(_last(text, self._cpid_tag, end))
        return self._record(id_, total, average, at, made, cpid)

    def _unusual(self, text: bytes) -> Record | None:
        """Parse a record of another order or form, line by line."""
        if not text.startswith(self._begin):
            raise StatisticsError(self._where, "export_other_than_record")
        unusual: dict[bytes, bytes] = {}
        for line in text.split(b"\n")[1:]:
            name, closes, rest = line.strip().removeprefix(b"<").partition(b">")
            value, closer, behind = rest.partition(b"</")
            if closes and closer and behind == name + b">":
                unusual.setdefault(name, value.strip())
        record = self._record(
            unusual.get(b"id", b""),
            unusual.get(b"total_credit", b""),
            unusual.get(b"expavg_credit", b"0"),
            unusual.get(b"expavg_time", b"0"),
            unusual.get(b"create_time", b""),
            _cpid(unusual.get(self._cpid, b"")),
        )
        return record if record is None or self._ids is None or record[0] in self._ids else None

    def _record(self, id_: bytes, total: bytes, average: bytes, at: bytes, made: bytes, cpid: bytes) -> Record | None:
        """Return the record; None if it is invalid."""
        try:
            row = int(id_), float(total), float(average), float(at), int(made or b"0"), cpid
        except ValueError:
            row = _whole(id_), _number(total), _number(average), 0.0, _whole(made or b"0"), cpid
        return checked(row, self._odd)


def checked(row: Row, odd: OddRecords) -> Record | None:
    """Check a row's record: none without an id, a total and a creation time, else one without its invalid fields.

    The time of an average is not needed: a record with only that invalid is accepted.
    """
    number, credit, recent, time, begun, cpid = row
    # Also false for values that are not numbers
    if (
        0 < number <= MAX_ID
        and 0.0 <= credit <= MAX_CREDIT
        and 0.0 <= recent <= MAX_CREDIT
        and 0.0 <= time <= MAX_TIME
        and 0 <= begun <= MAX_TIME
    ):
        return number, round(credit * 1e6), recent, time, begun, cpid
    wrong = [
        (name, least, int(most))
        for name, value, least, most in (
            ("id", number, 1, MAX_ID),
            ("total_credit", credit, 0, MAX_CREDIT),
            ("create_time", begun, 0, MAX_TIME),
            ("expavg_credit", recent, 0, MAX_CREDIT),
        )
        if not least <= value <= most
    ]
    if wrong:
        odd.note(number if 0 < number <= MAX_ID else 0, wrong[0])
        if wrong[0][0] != "expavg_credit":
            return None
    return number, round(credit * 1e6), 0.0 if wrong else recent, 0.0, begun, cpid


def _number(text: bytes) -> float:
    """Parse a number; negative if it is none."""
    try:
        return float(text) if len(text) <= MAX_NUMBER_CHARS else -1.0
    except ValueError:
        return -1.0


def _whole(text: bytes) -> int:
    """Parse a whole number from 0; negative if it is none."""
    return int(text) if re.fullmatch(rb"\d{1,19}", text) else -1


def _last(text: bytes, tag: bytes, begin: int) -> bytes:
    """Return the text of the last of these elements after ``begin``, empty if there is none.

    The computer's own texts, which may look like one, come before those that the project writes.
    """
    place = text.rfind(tag, begin)
    if place < 0:
        return b""
    place += len(tag)
    return text[place : text.find(b"<", place)]


def _cpid(text: bytes) -> bytes:
    return text if len(text) == 32 and not text.translate(None, _HEX) else b""
