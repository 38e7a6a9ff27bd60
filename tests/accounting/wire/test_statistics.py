"""Exports as projects write them, and such as none should."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.wire import statistics
from accounting.wire.statistics import (
    HOSTS,
    USERS,
    Kind,
    OddRecords,
    Record,
    StatisticsError,
    read_tables,
    records,
    unpack,
)
from tests.support.statistics_site import NOON, HostRecord, UserRecord, md5, packed

EXPORTS = Path(__file__).parents[2] / "data" / "statistics"
HEAD = b'<?xml version="1.0" encoding="utf-8"?>\n'
HOST = HostRecord(17, "1234.567891")
TOTAL = ("total_credit", 0, 9_000_000_000_000)
BODY = HEAD + b"<hosts>\n" + HOST.text().encode() + b"</hosts>\n"


def pieces(content: bytes, size: int = 1000) -> Iterator[bytes]:
    return (content[place : place + size] for place in range(0, len(content), size))


def read(content: bytes, kind: Kind = HOSTS, size: int = 1000) -> list[Record]:
    return [each for _, batch in records(kind, unpack(kind, pieces(content, size))) for each in batch]


def read_body(body: bytes, kind: Kind = HOSTS) -> list[Record]:
    return read(gzip.compress(body), kind)


def read_odd(body: bytes, ids: set[int] | None = None) -> tuple[list[Record], OddRecords]:
    odd = OddRecords()
    rows = [each for _, batch in records(HOSTS, unpack(HOSTS, pieces(gzip.compress(body))), ids, odd) for each in batch]
    return rows, odd


def fault(body: bytes) -> str:
    with pytest.raises(StatisticsError) as caught:
        read_body(body)
    return str(caught.value)


def test_a_computer_is_read_as_boinc_writes_it() -> None:
    # The one in the JSON, which the computer itself may have made up, does not count.
    cpid = md5("a" * 32 + "alice@example.org").encode()
    made_at = NOON - 100 * 86_400
    assert read_body(BODY) == [(17, 1_234_567_891, 1.5, NOON + 0.123456, made_at, cpid)]


def test_an_account_is_read_as_boinc_writes_it() -> None:
    rows = read(packed("users", [UserRecord(5, 0.25, "c" * 32).text()]), USERS)
    assert rows == [(5, 250_000, 0.5, float(NOON), NOON, md5("c" * 32 + "alice@example.org").encode())]


def test_elements_may_come_in_another_order_and_names_have_any_bytes() -> None:
    body = (
        b"<hosts>\n<host>\n\t<host_cpid>" + b"0" * 32 + b"</host_cpid>\n<p_model>\xff\x80 <id>3</id> &#255;</p_model>\n"
        b"<total_credit>1e3</total_credit>\n<id>9</id>\n</host>\n</hosts>\n"
    )
    assert read_body(body) == [(9, 10**9, 0.0, 0.0, 0, b"0" * 32)]


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_the_size_of_pieces_does_not_matter(size: int) -> None:
    hosts = [HostRecord(number, number * 1.5).text() for number in range(1, 30)]
    assert [each[0] for each in read(packed("hosts", hosts), size=size)] == list(range(1, 30))


def test_records_that_nobody_looks_for_are_counted_and_checked() -> None:
    good, bad = HostRecord(18, 2).text().encode(), HostRecord(18, "nan").text().encode()
    whole = BODY.replace(b"</hosts>", good + b"</hosts>")
    assert [(n, [each[0] for each in rows]) for n, rows in records(HOSTS, [whole], {17})] == [(2, [17])]
    rows, odd = read_odd(whole.replace(good, bad), {17})
    assert [record[0] for record in rows] == [17]
    assert (odd.count, odd.ids, odd.first) == (1, [18], TOTAL)


def test_a_file_may_be_packed_in_several_parts() -> None:
    assert read(gzip.compress(BODY[:100]) + gzip.compress(BODY[100:])) == read_body(BODY)


def test_an_empty_export_has_no_records() -> None:
    assert read_body(b"<hosts>\n</hosts>\n") == []


def test_a_record_without_an_id_across_projects_fits_nobody() -> None:
    assert read_body(BODY.replace(b"host_cpid", b"other"))[0][5] == b""
    assert read_body(BODY.replace(b"<host_cpid>", b"<host_cpid>x"))[0][5] == b""


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e304", "9000000000001", "1" * 400, "", "0x10", "1,5", "&a;"])
def test_a_record_whose_total_is_no_number_within_the_limit_is_left_out(text: str) -> None:
    other = HostRecord(18, 2).text().encode()
    body = BODY.replace(b"1234.567891", text.encode()).replace(b"</hosts>", other + b"</hosts>")
    rows, odd = read_odd(body)
    assert [record[0] for record in rows] == [18]
    assert (odd.count, odd.ids, odd.first) == (1, [17], TOTAL)


@pytest.mark.parametrize(
    ("tag", "text", "limits", "is_left_out"),
    [
        ("id", "0", (1, 2**62), True),
        ("id", "-3", (1, 2**62), True),
        ("id", "1" * 30, (1, 2**62), True),
        ("id", "1.5", (1, 2**62), True),
        ("create_time", "1e300", (0, 4_000_000_000), True),
        ("expavg_credit", "nan", (0, 9_000_000_000_000), False),
        ("expavg_credit", "-0.000123", (0, 9_000_000_000_000), False),
        # It is not needed.
        ("expavg_time", "inf", None, False),
        ("expavg_time", "-1", None, False),
    ],
)
def test_other_numbers_have_limits_too(tag: str, text: str, limits: tuple[int, int] | None, is_left_out: bool) -> None:
    before, _, rest = HOST.text().partition(f"<{tag}>")
    rows, odd = read_odd(f"<hosts>\n{before}<{tag}>{text}<{rest.partition('<')[2]}</hosts>\n".encode())
    assert (rows == [], odd.count) == (is_left_out, limits is not None)
    assert odd.first == (limits and (tag, *limits))
    if tag == "expavg_credit":
        # The recent average is unknown, the total counts.
        assert (rows[0][1], rows[0][2]) == (1_234_567_891, 0.0)


@pytest.mark.parametrize(
    ("name", "nread", "nodd"),
    [
        ("rac-negative", 5, 1),
        ("rac-minus-nan", 5, 1),
        ("total-negative", 4, 1),
        ("total-1e14", 4, 1),
        ("total-1e15", 4, 1),
        ("expavg-time-minus-one", 5, 0),
        ("several-odd-records", 201, 2),
        ("crlf", 4, 0),
        ("blank-line-before-first-record", 4, 0),
    ],
)
def test_one_strangers_odd_record_stops_nobody_elses(name: str, nread: int, nodd: int) -> None:
    rows, odd = read_odd((EXPORTS / f"{name}.xml").read_bytes())
    assert (len(rows), odd.count) == (nread, nodd)
    odd.check(HOSTS, nread, percent=1)


def test_more_odd_records_than_the_limit_are_a_fault_of_the_file() -> None:
    rows, odd = read_odd((EXPORTS / "one-in-four-odd.xml").read_bytes())
    assert (len(rows), odd.count) == (12, 4)
    with pytest.raises(StatisticsError, match=r"host.gz: 4 of 16 records are invalid; in the first one, \w+ is not a"):
        odd.check(HOSTS, 16, percent=1)
    odd.check(HOSTS, 16, percent=25)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_zeros_behind_a_packed_file_are_no_part_and_other_bytes_are_damage(size: int) -> None:
    content = gzip.compress(BODY)
    assert read(content + bytes(512), size=size) == read_body(BODY)
    with pytest.raises(StatisticsError, match="has other data after it"):
        read(content + bytes(8) + b"xyz", size=size)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (BODY[:-9], "host.gz: does not end with </hosts>"),
        (BODY[:-40], "does not end with </hosts>"),
        (BODY + b"<more/>", "has other data after </hosts>"),
        (BODY.replace(b"<hosts>", b"<users>"), "does not begin with <hosts>"),
        (b"<!DOCTYPE hosts [<!ENTITY a 'b'>]>\n" + BODY, "does not begin with <hosts>"),
        (BODY.replace(b"<hosts>", b"<!DOCTYPE a [<!ENTITY b SYSTEM '/etc/passwd'>]>\n<hosts>"), "does not begin"),
        (BODY.replace(b"utf-8", b"utf-16"), "unsupported encoding"),
        (BODY.decode().encode("utf-16"), "does not begin with <hosts>"),
        (BODY.replace(b"</host>\n", b""), "does not end with </hosts>"),
        (BODY.replace(b"</hosts>", b"<host>\n <id>5</id>\n" + HOST.text().encode() + b"</hosts>"), "has no end"),
        (BODY.replace(b"</hosts>", b"x" + HOST.text().encode() + b"</hosts>"), "something else where"),
        (b"<html>Not found</html>", "does not begin with <hosts>"),
        (b"", "does not begin with <hosts>"),
    ],
)  # fmt: skip
def test_what_is_no_whole_export_is_refused(body: bytes, reason: str) -> None:
    assert reason in fault(body)


def test_a_packed_file_that_is_cut_off_or_damaged_is_refused() -> None:
    whole = gzip.compress(BODY)
    for content, reason in (
        (whole[:-8], "was cut off: its compressed data have no end"),
        (whole[:50], "was cut off"),
        (b"", "was cut off"),
        (whole + b"garbage", "or has other data after it"),
        (whole[:-8] + b"12345678", "damaged"),
        (b"<hosts>", "is not a gzip file"),
    ):
        with pytest.raises(StatisticsError, match=reason):
            read(content)


def test_a_line_without_end_is_refused_before_it_fills_memory() -> None:
    content = gzip.compress(b"<hosts>\n<host>\n<p_model>" + b"x" * 8_000_000)
    tracemalloc.start()
    with pytest.raises(StatisticsError, match="record longer than the limit of 262,144 bytes"):
        read(content, size=1 << 18)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_memory_does_not_grow_with_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 computers, 1.4 MB of records: anyone who kept them would take more than that."""
    monkeypatch.setattr(statistics, "_BLOCK_BYTES", 32 * 1024)
    content = packed("hosts", [HostRecord(number, number).text() for number in range(1, 3001)])
    tracemalloc.start()
    rows = [each for _, batch in records(HOSTS, unpack(HOSTS, pieces(content)), {3}) for each in batch]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == 1 and len(gzip.decompress(content)) > 1.3e6 and most < 0.5e6


def test_what_comes_out_of_compression_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_UNPACKED_BYTES", 3_000_000)
    monkeypatch.setattr(statistics, "MAX_PARTS", 50)
    with pytest.raises(StatisticsError, match="unpacks to more than the limit of 3,000,000 bytes"):
        list(unpack(HOSTS, [gzip.compress(bytes(4_000_000))]))
    with pytest.raises(StatisticsError, match="more compressed parts than the limit of 50"):
        list(unpack(HOSTS, [gzip.compress(b"") * 60]))


def test_tables_say_the_time_and_how_many_there_are() -> None:
    body = b"<update_time>1700000000.5</update_time>\n <nusers_total>3</nusers_total><nhosts>7</nhosts>"
    tables = read_tables(HEAD + b"<tables>\n" + body + b"</tables>\n")
    assert (tables.update_time, tables.nusers, tables.nhosts) == (1_700_000_000, 3, 7)
    tables.check(USERS, 103)
    with pytest.raises(StatisticsError, match=r"user.gz: has 104 records, but tables.xml says 3"):
        tables.check(USERS, 104)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<tables></tables>", "has no update_time"),
        (b"<tables><update_time>0</update_time></tables>", "has no update_time"),
        (b"<tables><update_time>nan</update_time></tables>", "update_time is not a number from 0 to 4,000,000,000"),
        (b"<tables><update_time>9999999999999</update_time></tables>", "update_time is not a number"),
        (
            b"<tables><update_time>5</update_time><nhosts_total>-1</nhosts_total></tables>",
            "nhosts_total is not a number",
        ),
        (b"<tables><update_time>5</update_time>", "was cut off"),
        (b"<html></html>", "does not begin with <tables>"),
        (b"<?xml version='1.0' encoding='UTF-7'?><tables></tables>", "encoding"),
        (b"<tables>" + b" " * (1 << 20) + b"</tables>", "larger than the limit of 1,048,576 bytes"),
    ],
)
def test_tables_of_another_form_are_refused(body: bytes, reason: str) -> None:
    with pytest.raises(StatisticsError, match=reason):
        read_tables(body)


@given(st.binary(max_size=300), st.integers(0, len(BODY)))
def test_nothing_but_its_own_error_comes_of_any_bytes(junk: bytes, place: int) -> None:
    for content in (junk, gzip.compress(BODY[:place] + junk + BODY[place:])):
        try:
            for each in read(content):
                assert each[0] > 0 and 0 <= each[1] <= 9 * 10**18
        except StatisticsError:
            pass


@given(st.floats(0, 9e12), st.integers(1, 2**40))
def test_numbers_come_back_as_they_were(total: float, id_: int) -> None:
    rows = read_body(BODY.replace(b"1234.567891", repr(total).encode()).replace(b"<id>17", b"<id>%d" % id_))
    assert rows[0][:2] == (id_, round(total * 1e6))
