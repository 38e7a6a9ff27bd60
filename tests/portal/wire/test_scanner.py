"""The tag scanner on scheduler requests of a real client, and on text that no XML parser accepts."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import accounting.wire.requests
import portal.wire.hardware
import portal.wire.scanner
import scheduler.wire.described
import scheduler.wire.reported
import scheduler.wire.request_fields
import scheduler.wire.requests
from portal.wire.scanner import (
    Fields,
    Limits,
    ProtocolError,
    TagScanner,
    as_bool,
    as_float,
    as_int,
    as_text,
    clip,
    decode,
)

CAPTURES = Path(__file__).parents[2] / "data" / "protocol"
SCHED_REQUESTS = sorted(path.name for path in CAPTURES.glob("sched_request_*.xml"))
NO_SIBLINGS: frozenset[bytes] = frozenset()


def scanned(body: bytes) -> TagScanner:
    """A scanner behind the first tag of the body."""
    scan = TagScanner(body)
    scan.next()
    return scan


def children(body: bytes, siblings: frozenset[bytes] = NO_SIBLINGS) -> Fields:
    """The fields of the body's first element."""
    scan = TagScanner(body)
    name = scan.next()
    assert name is not None
    return scan.fields(name, siblings)


def sections(name: str) -> list[tuple[bytes, bytes | None]]:
    """The top-level elements of a captured scheduler request, with all that is in them."""
    scan = TagScanner((CAPTURES / name).read_bytes())
    assert scan.next() == b"scheduler_request"
    found = []
    while (tag := scan.next()) != b"/scheduler_request":
        assert tag is not None
        found.append((tag, scan.section(tag)))
    assert scan.next() is None
    return found


@pytest.mark.parametrize("name", SCHED_REQUESTS)
def test_a_captured_scheduler_request_gives_its_top_level_elements_unaltered(name: str) -> None:
    body = (CAPTURES / name).read_bytes()
    found = sections(name)
    names = [tag for tag, _ in found]
    assert len(SCHED_REQUESTS) == 12
    assert names[:3] == [b"authenticator", b"hostid", b"rpc_seqno"]
    assert {b"host_info", b"time_stats", b"net_stats", b"disk_usage"} <= set(names)
    for tag, content in found:
        assert content is not None
        assert b"<%s>%s</%s>" % (tag, content, tag) in body


def test_a_captured_result_gives_its_output_and_its_file() -> None:
    results = [content for tag, content in sections("sched_request_report_success.xml") if tag == b"result"]
    assert len(results) == 1
    fields = dict(children(b"<result>%s</result>" % results[0]))
    assert fields[b"state"] == b"5"
    assert fields[b"exit_status"] == b"0"
    assert fields[b"stderr_out"].startswith(b"\n<core_client_version>7.20.5</core_client_version>\n<![CDATA[\n")
    assert dict(children(b"<f>%s</f>" % fields[b"file_info"]))[b"nbytes"] == b"17.000000"


def test_a_captured_failed_result_keeps_the_programs_own_words() -> None:
    results = [content for tag, content in sections("sched_request_report_exit3.xml") if tag == b"result"]
    fields = dict(children(b"<result>%s</result>" % results[0]))
    assert fields[b"exit_status"] == b"3"
    assert b"process exited with code 3 (0x3, -253)</message>" in fields[b"stderr_out"]


def test_a_captured_list_of_app_versions_keeps_its_order() -> None:
    (listed,) = [
        content for tag, content in sections("sched_request_gpu_two_jobs_full_workload.xml") if tag == b"app_versions"
    ]
    versions = [dict(children(b"<v>%s</v>" % content)) for _, content in children(b"<l>%s</l>" % listed)]
    assert [version[b"app_name"] for version in versions] == [b"lab_calc", b"lab_shm", b"lab_shm"]
    assert b"dont_throttle" in versions[2]
    assert as_bool("dont_throttle", versions[2][b"dont_throttle"])
    assert dict(children(b"<c>%s</c>" % versions[2][b"coproc"]))[b"count"] == b"1.000000"


def test_children_come_in_order_with_repetitions() -> None:
    assert children(b"<p>\n <a>1</a> <b>x</b>\n<a>2</a></p>") == [(b"a", b"1"), (b"b", b"x"), (b"a", b"2")]


def test_empty_elements_of_both_forms_are_children() -> None:
    assert children(b"<p><a/><b></b><c /></p>") == [(b"a", b""), (b"b", b""), (b"c", b"")]


def test_attributes_are_ignored() -> None:
    assert children(b'<p x="1"><a y="2" z>1</a></p>') == [(b"a", b"1")]


def test_comments_and_stray_text_are_passed_over() -> None:
    body = b"<p>stray <!-- <a>0</a> --> text <a>1</a> </nothing> <![CDATA[ <b>0</b> ]]></p>"
    assert children(body) == [(b"a", b"1")]


def test_an_open_comment_hides_nothing() -> None:
    assert children(b"<p><!-- <a>1</a></p>") == [(b"a", b"1")]


@pytest.mark.parametrize(
    "name",
    [
        b"R&D <x> Home",
        b"a < b > c",
        b"x <y/> <z>1</z>",
        b"the </project> and </p> and </acct_mgr_request>",
        b"<![CDATA[ <b> ]]>",
        b"\x00\x01\x7f\x80\xff\xfe",
        "Zürich 日本".encode(),
        b"5 &amp; 6 &#38; &",
    ],
)
def test_text_with_markup_in_it_is_handed_out_as_it_came(name: bytes) -> None:
    body = b"<p><name>%s</name><id>7</id></p>" % name
    assert children(body) == [(b"name", name), (b"id", b"7")]


def test_an_unclosed_field_ends_at_its_line_and_loses_no_other() -> None:
    body = b"<p>\n<name>no end\n<id>7</id>\n<share>1</share>\n</p>"
    assert children(body) == [(b"name", b"no end"), (b"id", b"7"), (b"share", b"1")]


def test_an_unclosed_field_does_not_reach_into_the_next_element() -> None:
    scan = TagScanner(b"<l><p><name>one\n<id>1</id></p><p><name>two</name><id>2</id></p></l>")
    assert scan.next() == b"l"
    assert scan.next() == b"p"
    assert scan.fields(b"p", NO_SIBLINGS) == [(b"name", b"one"), (b"id", b"1")]
    assert scan.next() == b"p"
    assert scan.fields(b"p", NO_SIBLINGS) == [(b"name", b"two"), (b"id", b"2")]
    assert scan.next() == b"/l"


def test_an_unclosed_element_ends_where_its_sibling_begins() -> None:
    scan = TagScanner(b"<p><id>1</id> <p><id>2</id></p> <info>x</info>")
    assert scan.next() == b"p"
    assert scan.fields(b"p", frozenset({b"info"})) == [(b"id", b"1")]
    assert scan.next() == b"p"
    assert scan.fields(b"p", frozenset({b"info"})) == [(b"id", b"2")]
    assert scan.next() == b"info"


def test_a_section_that_is_never_closed_hides_nothing() -> None:
    scan = scanned(b"<prefs><a>1</a>")
    assert scan.section(b"prefs") is None
    assert scan.next() == b"a"
    assert scan.text == b"1"


def test_an_unknown_element_is_skipped_with_all_that_is_in_it() -> None:
    scan = scanned(b"<new><name>not mine</name><deep><name>nor this</name></deep></new><name>mine</name>")
    scan.skip(b"new")
    assert scan.next() == b"name"
    assert scan.text == b"mine"


def test_an_unknown_element_that_is_never_closed_hides_nothing() -> None:
    scan = scanned(b"<new><name>mine</name>")
    scan.skip(b"new")
    assert scan.next() == b"name"


def test_a_body_at_the_limit_is_read_and_one_byte_more_is_refused() -> None:
    limits = Limits(body_bytes=8)
    assert TagScanner(b"<a>1</a>", limits).next() == b"a"
    with pytest.raises(ProtocolError, match="body: larger than 8 bytes"):
        TagScanner(b"<a>12</a>", limits)


def test_too_many_elements_are_refused() -> None:
    limits = Limits(elements=10)
    scan = TagScanner(b"<p>%s</p>" % (b"<a>1</a>" * 10), limits)
    assert scan.next() == b"p"
    with pytest.raises(ProtocolError, match="elements: more than 10"):
        scan.fields(b"p", NO_SIBLINGS)


def test_too_deep_nesting_is_refused() -> None:
    fits = scanned(b"<a>" + b"<b>" * 31 + b"</b>" * 31 + b"</a>")
    fits.skip(b"a")
    assert fits.next() is None
    flat = scanned(b"<a>" + b"<b/>" * 40 + b"<c>1</c>" * 40 + b"</a>")
    flat.skip(b"a")
    assert flat.next() is None
    deep = scanned(b"<a>" + b"<b>" * 32 + b"</b>" * 32 + b"</a>")
    with pytest.raises(ProtocolError, match="a: nested deeper than 32 levels"):
        deep.skip(b"a")


@pytest.mark.parametrize("body", [b"<p><a>12345</a></p>", b"<p><a>1<2>5</a></p>"])
def test_a_text_over_the_limit_is_refused(body: bytes) -> None:
    scan = TagScanner(body, Limits(text_bytes=4))
    scan.next()
    with pytest.raises(ProtocolError, match="a: longer than 4 bytes"):
        scan.fields(b"p", NO_SIBLINGS)


def test_many_unclosed_elements_are_refused() -> None:
    scan = TagScanner(b"".join(b"<n%d>" % n for n in range(200)))
    with pytest.raises(ProtocolError, match="more than 100 elements are never closed"):
        while (tag := scan.next()) is not None:
            scan.skip(tag)
    assert scan.elements == 101


class CountingBytes(bytes):
    """Bytes that count how many of them were searched by `find`."""

    searched = 0

    def find(self, *args: Any) -> int:
        sub, start, stop = [*args, len(self)][:3]
        at = super().find(sub, start, stop)
        self.searched += (stop if at < 0 else at + len(sub)) - min(start, stop)
        return at


@pytest.mark.parametrize(
    "part",
    [
        b"<project><name>",
        b"<project>",
        b"<name>x",
        b"<!--",
        b"<![CDATA[",
        b"<opaque>",
        b"<p/>< <a <b",
        b"<project><opaque></opaque>",
        b"<project></p><x>1</x>",
    ],
)
def test_the_work_stays_in_proportion_to_the_body(part: bytes) -> None:
    body = CountingBytes(part * (200_000 // len(part)) + b"</name></project>")
    scan = TagScanner(body)
    siblings = frozenset({b"opaque"})
    refused = False
    try:
        while (tag := scan.next()) is not None:
            if tag == b"project":
                scan.fields(tag, siblings)
            elif tag == b"opaque":
                scan.section(tag)
            else:
                scan.skip(tag)
    except ProtocolError:
        refused = True
    assert refused or scan.pos == len(body)
    assert scan.elements <= 20_001
    # Each name's closing tag is searched for once, and each unclosed element at most 64 KiB more.
    assert body.searched <= 100 * len(body)


def test_text_is_utf_8_or_else_latin_1() -> None:
    assert decode("Zürich".encode()) == "Zürich"
    assert decode("Zürich".encode("latin-1")) == "Zürich"
    assert decode(bytes(range(1, 256))).isprintable() is False


def test_nul_becomes_a_character_that_can_be_stored() -> None:
    assert decode(b"a\0b") == "a\ufffdb"


def test_entities_are_decoded_once_and_only_on_request() -> None:
    raw = b"a &lt;b&gt; &amp;amp; &quot;&apos; &#65; &#0; &#55296; &#1114112; &unknown; &"
    assert decode(raw) == raw.decode()
    assert decode(raw, entities=True) == "a <b> &amp; \"' A \ufffd &#55296; &#1114112; &unknown; &"


def test_texts_have_a_longest_length() -> None:
    assert clip(b" abcdef ", 4) == "abcd"
    assert as_text("name", b" abcd ", 4) == "abcd"
    with pytest.raises(ProtocolError, match="name: longer than 4 characters") as caught:
        as_text("name", b"abcde", 4)
    assert (caught.value.field, caught.value.error_num) == ("name", -112)


@pytest.mark.parametrize(
    ("raw", "number"), [(b"3", 3), (b"3.000000", 3), (b" -5 ", -5), (b"+7.", 7), (b"-0", 0), (b"007", 7)]
)
def test_integers_may_be_printed_as_doubles(raw: bytes, number: int) -> None:
    assert as_int("n", raw, -10, 10) == number


@pytest.mark.parametrize(
    "raw",
    [b"", b"3.5", b"11", b"-11", b"1e1", b"0x10", b"nan", b"1_0", b"3 4", b"9" * 30, "\uff13".encode(), b"1\0"],
)
def test_other_integers_are_refused_with_their_range(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="n: not an integer from -10 to 10"):
        as_int("n", raw, -10, 10)


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"0.5", 0.5), (b"1e3", 1000.0), (b" 7 ", 7.0), (b".5", 0.5), (b"5.", 5.0), (b"-1", -1.0),
        # Below 1e-9 nothing is measured, and products of such numbers may be none.
        (b"1e-9", 1e-9), (b"9e-10", 0.0), (b"-9e-10", 0.0), (b"5e-324", 0.0),
    ],
)  # fmt: skip
def test_decimal_numbers_are_read(raw: bytes, number: float) -> None:
    assert as_float("x", raw, -1, 1e6) == number


@pytest.mark.parametrize(
    "raw", [b"", b"nan", b"inf", b"-inf", b"0x10", b"1e400", b"1e7", b"-2", b"1_0", b"1,5", b".", b"text"]
)
def test_other_numbers_are_refused_with_their_range(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"x: not a decimal number from -1 to 1e\+06"):
        as_float("x", raw, -1, 1e6)


def test_booleans_are_empty_or_whole_numbers() -> None:
    assert [as_bool("b", raw) for raw in (b"", b"1", b" 2 ", b"1.0")] == [True] * 4
    assert [as_bool("b", raw) for raw in (b"0", b"0.000000")] == [False] * 2
    with pytest.raises(ProtocolError, match="b: not an integer"):
        as_bool("b", b"yes")


SCANNING = [
    portal.wire.scanner,
    portal.wire.hardware,
    accounting.wire.requests,
    scheduler.wire.described,
    scheduler.wire.reported,
    scheduler.wire.request_fields,
    scheduler.wire.requests,
]


@pytest.mark.parametrize("module", SCANNING)
def test_no_pattern_repeats_a_group_possessively(module: ModuleType) -> None:
    """Python 3.11.2 lets such a pattern match less than there is: a project of a request, say, was not seen."""
    patterns = [value.pattern for value in vars(module).values() if isinstance(value, re.Pattern)]
    texts = [pattern.decode() if isinstance(pattern, bytes) else pattern for pattern in patterns]
    assert texts
    assert [text for text in texts if re.search(r"\)(?:[*+?]|\{[0-9,]*\})\+", text)] == []
