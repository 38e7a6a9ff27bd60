"""Jobs as a table: the meaning of its cells, and its faults by line and field."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from portal.languages.sentences import sentence
from scheduler.wire.job_fields import FIELDS, read_jobs
from scheduler.wire.job_table import read_table

BASE: dict[str, Any] = {
    "min_quorum": 2,
    "max_total_results": 10,
    "max_success_results": 6,
    "output_files": [],
    "fpops_est": 1e9,
}


def test_a_line_is_a_job_and_an_empty_cell_says_nothing() -> None:
    table = read_table(
        "name,command_line,fpops_est,input_files,output_files,min_quorum\n"
        'first,"--from 1, --to 2",5e10,in=table.csv more.txt,out:1000 log:10:optional,\n'
        "\n"
        "second,,1000,,,3\n",
        {},
    )
    assert table.faults == []
    assert [*map(str, table.places)] == ["line 2", "line 4"]
    assert table.jobs == [
        {
            "name": "first",
            "command_line": "--from 1, --to 2",
            "fpops_est": 5e10,
            "input_files": [{"open_name": "in", "name": "table.csv"}, {"open_name": "more.txt", "name": "more.txt"}],
            "output_files": [
                {"open_name": "out", "max_nbytes": 1000},
                {"open_name": "log", "max_nbytes": 10, "optional": True},
            ],
        },
        {"name": "second", "fpops_est": 1000, "min_quorum": 3},
    ]


MD5 = "900150983cd24fb0d6963f7d28e17f72"


def test_what_else_a_job_says_of_a_file_follows_it_by_its_name() -> None:
    remote = f"https://data.example.org/m?v=1|nbytes=9|md5={MD5}"
    table = read_table(
        "input_files,program_files,output_files\n"
        f"in={remote}|url=https://b.example.org/m|gzipped_url=https://b.example.org/m.gz|gzipped_nbytes=5|sticky,"
        f"run=tool.bin|gzip|executable|cpu=arm https://data.example.org/t.dat|nbytes=1|md5={MD5},"
        "out:10:gzip_when_done:sticky log:9:optional:no_validate\n",
        {},
    )
    assert table.faults == []
    [job] = table.jobs
    assert job == {
        "input_files": [
            {
                "open_name": "in",
                "url": ["https://data.example.org/m?v=1", "https://b.example.org/m"],
                "nbytes": 9,
                "md5": MD5,
                "gzipped_url": "https://b.example.org/m.gz",
                "gzipped_nbytes": 5,
                "sticky": True,
            }
        ],
        "program_files": [
            {"open_name": "run", "name": "tool.bin", "gzip": True, "executable": True, "cpu": "arm"},
            {"open_name": "t.dat", "url": "https://data.example.org/t.dat", "nbytes": 1, "md5": MD5},
        ],
        "output_files": [
            {"open_name": "out", "max_nbytes": 10, "gzip_when_done": True, "sticky": True},
            {"open_name": "log", "max_nbytes": 9, "optional": True, "no_validate": True},
        ],
    }
    jobs, faults = read_jobs({}, [job], BASE, remote_hosts=["*.example.org"])
    assert faults == [] and jobs[0].inputs[0].remote is not None and jobs[0].inputs[1].is_gzipped


@pytest.mark.parametrize(
    ("cell", "field"),
    [
        ("in=a|gzip=1", ".gzip"),
        ("in=a|wings", ""),
        (f"in=https://data.example.org/m|nbytes=9|nbytes=8|md5={MD5}", ".nbytes"),
        (f"in=https://data.example.org/m|nbytes=x|md5={MD5}", ".nbytes"),
        (f"in=a|md5={MD5}", ".md5"),
        (f"in=https://elsewhere.example.com/m|nbytes=9|md5={MD5}", ".url"),
    ],
)
def test_what_cannot_be_said_of_a_file_is_refused_by_its_field(cell: str, field: str) -> None:
    table = read_table(f"input_files\n{cell}\n", {})
    [fault] = read_jobs({}, table.jobs, BASE, remote_hosts=["*.example.org"])[1]
    assert fault.field == f"jobs[0].input_files[0]{field}"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_spreadsheets_of_all_countries_are_read(delimiter: str) -> None:
    table = read_table(f"Name{delimiter}Command_Line\r\na{delimiter}--x 1\r\n", {})
    assert table.jobs == [{"name": "a", "command_line": "--x 1"}]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the table is empty; its first line names the columns"),
        ("name,speed\na,1\n", "line 1: speed: unknown. Known: fpops_est"),
        ("name,name\na,b\n", "line 1: name: named twice"),
        ("name\na,b\n", "line 2: 2 cells, but the first line names 1 columns"),
        ('name\n"a\n', "line 2: not comma-separated values: unexpected end of data"),
        ("name\n" + "a" * 200_000, "line 2: not comma-separated values: field larger than field limit"),
        ("name\n" + "x\n" * 100_001, "line 100002: more than 100,000 jobs"),
    ],
)
def test_a_table_that_is_none_is_refused_by_its_line(text: str, fault: str) -> None:
    assert str(read_table(text, {}).faults[0]).startswith(fault)


def test_what_is_no_number_is_refused_by_its_field_and_limit() -> None:
    table = read_table("fpops_est,min_quorum\nmany,2\n1e9,1_0\n1e9,0\nnan,1\n1e999,1\n9999999999999999999e9,1\n", {})
    _, faults = read_jobs({}, table.jobs, BASE, most_faults=10)
    assert [fault.field for fault in faults] == [
        "jobs[0].fpops_est",
        "jobs[1].min_quorum",
        "jobs[2].min_quorum",
        "jobs[3].fpops_est",
        "jobs[4].fpops_est",
        "jobs[5].fpops_est",
    ]
    assert str(faults[2].message) == "not a whole number from 1 to 100"


def test_two_jobs_have_two_names() -> None:
    jobs: list[dict[str, Any]] = [{"name": "a"}, {"name": "a"}, {"name": "3"}, {}, {"name": "../x"}, {"name": "n" * 41}]
    made, faults = read_jobs({}, jobs, BASE, most_faults=10)
    assert [job.name for job in made] == ["a", "3"]
    assert [fault.field for fault in faults] == ["jobs[1].name", "jobs[3].name", "jobs[4].name", "jobs[5].name"]


LINE = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.lists(st.sampled_from(FIELDS), max_size=4), st.lists(LINE, max_size=4))
def test_no_text_makes_the_reading_fail(columns: list[str], lines: list[str]) -> None:
    table = read_table("\n".join([",".join(columns), *lines]), {})
    assert len(table.jobs) == len(table.places)
    read_jobs({}, table.jobs, BASE, most_faults=10)


def test_a_line_of_a_million_columns_is_refused_at_once() -> None:
    """Comparing each with each would take hours."""
    table = read_table(",".join(["name"] * 1_000_000), {})
    assert [str(fault) for fault in table.faults] == ["line 1: name: named twice"]
    with override("de"):
        assert sentence(table.faults[0].whole()) == "Zeile 1: name: zweimal genannt"


def test_no_more_is_read_after_a_hundred_wrong_lines() -> None:
    table = read_table("name\n" + "a,b\n" * 100_000, {})
    assert len(table.faults) == 100
