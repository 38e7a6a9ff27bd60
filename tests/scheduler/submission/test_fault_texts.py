"""What is wrong with jobs is said in the reader's language on pages; the checks themselves say it in English."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.translation import override

from scheduler.submission import texts
from scheduler.wire.job_fields import read_jobs
from scheduler.wire.job_table import Fault, read_table

JOB: dict[str, Any] = {"fpops_est": 1e9, "output_files": [{"open_name": "out", "max_nbytes": 10}]}
BASE: dict[str, Any] = {
    "min_quorum": 1,
    "max_error_results": 3,
    "max_total_results": 10,
    "max_success_results": 6,
    "command_line": "",
}


@pytest.mark.parametrize(
    "change",
    [
        {"fpops_est": 0},
        {"fpops_bound": 1},
        {"priority": 1e9},
        {"credit": -1},
        {"command_line": "a\nb"},
        {"name": "a/b"},
        {"input_files": "in"},
        {"input_files": [{"open_name": "in"}]},
        {"input_files": [{"open_name": "in", "content": "\ud800"}]},
        {"output_files": [{"open_name": "out", "max_nbytes": 1, "optional": 2}]},
        {"colour": "red"},
    ],
)
def test_each_fault_of_a_job_has_german_words(change: dict[str, Any]) -> None:
    _, faults = read_jobs({}, [{**JOB, **change}], BASE)
    message = faults[0].message
    with override("de"):
        assert texts.fault(message) != message
        assert texts.fault(f"jobs[0].x: {message}") == f"jobs[0].x: {texts.fault(message)}"
    assert texts.fault(message) == message


@pytest.mark.parametrize("table", ["", "colour\n1\n", "name,name\na,b\n", "name\na,b,c\n"])
def test_each_fault_of_a_table_has_german_words(table: str) -> None:
    found = read_table(table, {}).faults[0]
    with override("de"):
        assert texts.shown(found).message != found.message


def test_the_place_of_a_fault_is_a_line_in_german() -> None:
    with override("de"):
        assert texts.shown(Fault("line 12", "name", "named twice")) == Fault("Zeile 12", "name", "zweimal genannt")
