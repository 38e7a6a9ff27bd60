"""Templates as projects write them: their translation, and refusals by element and line."""

from __future__ import annotations

from typing import Any

import pytest

from extras.remote_jobs.tests.conftest import INPUT_TEMPLATE, OUTPUT_TEMPLATE
from extras.remote_jobs.wire.bodies import request_of
from extras.remote_jobs.wire.job_templates import complete, read_input, read_output
from extras.remote_jobs.wire.jobs import RequestError, read_jobs
from extras.remote_jobs.wire.xml_tree import MAX_DEPTH, MAX_NBYTES, XmlError, parse

SEVERAL = """<?xml version="1.0"?>
<input_template>
<file_info><number>0</number><sticky/><no_delete/></file_info>
<file_info>
  <url>https://data.example.org/maps/</url><md5_cksum>AB</md5_cksum><nbytes>12</nbytes>
</file_info>
<workunit>
  <file_ref><file_number>0</file_number><open_name>shared/in.txt</open_name><copy_file/></file_ref>
  <file_ref><open_name>map</open_name></file_ref>
  <command_line> --fast </command_line>
  <rsc_disk_bound>1e8</rsc_disk_bound><target_nresults>3</target_nresults><credit>5</credit>
  <project_own>x</project_own>
</workunit>
</input_template>"""


def test_an_input_template_says_files_and_bounds() -> None:
    template = read_input(SEVERAL)
    first, second = template.files
    assert (first.open_name, first.physical_name, first.is_sticky) == ("shared/in.txt", "", True)
    assert (second.urls, second.md5, second.nbytes) == (("https://data.example.org/maps/",), "ab", 12)
    packed = SEVERAL.replace(
        "<md5_cksum>", "<url>https://mirror.example.org/</url><gzip/><gzipped_nbytes>7</gzipped_nbytes><md5_cksum>"
    )
    mirrored = read_input(packed).files[1]
    assert (mirrored.urls[1], mirrored.gzipped_nbytes) == ("https://mirror.example.org/", 7)
    assert template.fields == {"disk_bound_bytes": 100_000_000, "target_nresults": 3}
    assert (template.command_line, template.njob_files) == ("--fast", 2)
    # A constant file does not belong to the job.
    assert read_input(INPUT_TEMPLATE).njob_files == 1


def test_what_nobody_says_is_as_boincs_tools_have_it() -> None:
    assert complete({}) == {
        "fpops_est": 3.6e12,
        "fpops_bound": 8.64e13,
        "memory_bound_bytes": 500_000_000,
        "disk_bound_bytes": 1_000_000_000,
        "delay_bound_secs": 604_800,
        "min_quorum": 1,
        "target_nresults": 1,
        "max_error_results": 1,
        "max_total_results": 1,
        "max_success_results": 1,
    }
    whole = complete({"min_quorum": 2, "fpops_est": 1e15})
    assert [whole[name] for name in ("target_nresults", "max_total_results", "max_success_results")] == [2, 2, 2]
    # A hundred times the estimate, as for other jobs without a limit.
    assert whole["fpops_bound"] == 1e17


def test_an_output_template_says_how_each_file_travels() -> None:
    assert read_output(OUTPUT_TEMPLATE) == [
        {"open_name": "out", "max_nbytes": 1000},
        {"open_name": "log", "max_nbytes": 9, "optional": True},
    ]
    packed = OUTPUT_TEMPLATE.replace("<max_nbytes>9", "<gzip_when_done/><sticky/><max_nbytes>9")
    packed = packed.replace("<optional/>", "<optional>1</optional><no_validate/><copy_file/>")
    log = {"open_name": "log", "max_nbytes": 9}
    flags = dict.fromkeys(("optional", "no_validate", "gzip_when_done", "sticky"), True)
    assert read_output(packed)[1] == log | flags


REFUSED: list[tuple[Any, str, str, str]] = [
    (read_input, "<md5_cksum>", "<gzip/><md5_cksum>", "with <gzip> has <gzipped_nbytes>"),
    (read_input, "<workunit>", "<work>", "mismatched tag"),
    (read_input, "<file_info><number>0", "<file_info><executable/><number>0", "<executable> in line 3: input files"),
    (read_input, "<target_nresults>3", "<target_nresults>3.5", "<target_nresults> in line 11: not a whole number"),
    (read_input, "<target_nresults>3", "<target_nresults>nan", "<target_nresults> in line 11: not a number"),
    (read_input, "<rsc_disk_bound>1e8", "<rsc_disk_bound>-1", "<rsc_disk_bound> in line 11: below 0"),
    (read_input, "<open_name>map</open_name>", "", "<file_ref> in line 9: needs an <open_name>"),
    (read_input, "<nbytes>12</nbytes>", "", "<file_info> in line 4: a file at another server has <url>"),
    (read_input, "<file_ref><open_name>map</open_name></file_ref>", "", "<workunit> in line 7: 1 <file_ref> for 2"),
    (read_input, "<credit>", "<size_class>big</size_class><credit>", "<size_class> in line 11: not a whole number"),
    (read_output, "<max_nbytes>9</max_nbytes>", "", "<file_info> in line 5: needs <max_nbytes>, of 1 at least"),
    (read_output, "<name><OUTFILE_1/></name>", "<name>x</name>", "<name> in line 6: <name> has a macro such as"),
    (read_output, "<name><OUTFILE_1/>", "<name><OUTFILE_7/>", "<file_info> in line 5: no <file_ref> has <OUTFILE_7/>"),
    (read_output, "<open_name>log</open_name>", "", "<file_ref> in line 10: needs an <open_name>"),
    (read_output, "<optional/>", "<optional>maybe</optional>", "<optional> in line 10: neither 1 nor 0"),
]


@pytest.mark.parametrize(("read", "old", "new", "message"), REFUSED)
def test_a_refusal_names_element_and_line(read: Any, old: str, new: str, message: str) -> None:
    text = SEVERAL if read is read_input else OUTPUT_TEMPLATE
    assert old in text
    with pytest.raises(XmlError) as refused:
        read(text.replace(old, new, 1))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no element found"),
        ("<a>", "line 1: no element found"),
        ("<a><b></a>", "line 1: mismatched tag"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "line 1: a document type is not taken"),
        ("<a>" * (MAX_DEPTH + 1), f"line 1: nested deeper than {MAX_DEPTH} levels"),
        (" " * (MAX_NBYTES + 1), f"the limit is {MAX_NBYTES}"),
        (b"<a>\xff</a>", "not well-formed"),
    ],
)
def test_xml_is_read_with_limits(text: str | bytes, message: str) -> None:
    with pytest.raises(XmlError, match=message):
        parse(text)


def test_the_files_of_all_jobs_are_limited() -> None:
    info, ref = (
        "<file_info><physical_name>a</physical_name></file_info>",
        "<file_ref><open_name>a</open_name></file_ref>",
    )
    texts = {"in": f"{info * 98}<workunit>{ref * 98}</workunit>", "out": OUTPUT_TEMPLATE}
    batch = parse(f"<batch>{'<job/>' * 5_001}</batch>")
    # 98 inputs and 2 outputs of each job: that with number 5,000 has the 500,001st file.
    with pytest.raises(RequestError, match="job 5000: the jobs up to here have 500100 files; the limit is 500000"):
        read_jobs(batch, lambda kind, name: texts[kind])


MULTIPART = (
    b'--b1\r\nContent-Disposition: form-data; name="other"\r\n\r\nno\r\n'
    b'--b1\r\nContent-Disposition: form-data; name="request"\r\nContent-Type: text/xml\r\n\r\n'
    b"<ping> \r\n</ping>\r\n--b1--\r\n"
)


@pytest.mark.parametrize(
    ("content_type", "body", "request_text"),
    [
        ("application/x-www-form-urlencoded", b"x=1&request=%3Cping%3E+%3C%2Fping%3E", b"<ping> </ping>"),
        ("multipart/form-data; boundary=b1", MULTIPART, b"<ping> \r\n</ping>"),
        ('multipart/form-data; boundary="b1"', MULTIPART, b"<ping> \r\n</ping>"),
        ("application/xml", b"<ping/>", b"<ping/>"),
        ("text/xml; charset=utf-8", b"<ping/>", b"<ping/>"),
        ("application/x-www-form-urlencoded", b"\n<ping/>", b"\n<ping/>"),
        ("application/x-www-form-urlencoded", b"x=1", b""),
        ("multipart/form-data; boundary=b2", MULTIPART, b""),
    ],
)
def test_the_request_is_a_form_field_in_either_encoding_or_the_body(
    content_type: str, body: bytes, request_text: bytes
) -> None:
    assert request_of(content_type, body) == request_text
