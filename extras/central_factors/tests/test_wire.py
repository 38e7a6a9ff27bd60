"""Replies of projects, and the published averages, as bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.cross_project import MAX_FACTORS, ExportedVersion, Factor, average_factors
from extras.central_factors.wire import (
    MAX_BODY_BYTES,
    MAX_VERSIONS,
    factors_document,
    parse_export,
    parse_factors,
)
from portal.wire.scanner import ProtocolError
from tests.support.credit_engine_facts import NOW

# As BOINC's own page writes it
BOINC = """<?xml version="1.0" encoding="ISO-8859-1" ?>
<app_versions>

    <app_version>
        <create_time>1400000000</create_time>
        <platform>windows_x86_64</platform>
        <app_name>wings</app_name>
        <version_num>102</version_num>
        <plan_class>{plan_class}</plan_class>
        <pfc_n>{pfc_n}</pfc_n>
        <pfc_avg>22.5</pfc_avg>
        <pfc_scale>{pfc_scale}</pfc_scale>
        <expavg_credit>{expavg_credit}</expavg_credit>
        <expavg_time>{expavg_time}</expavg_time>
    </app_version>
</app_versions>
"""
USUAL = {
    "plan_class": "cuda_fermi",
    "pfc_n": "31000",
    "pfc_scale": "0.08",
    "expavg_credit": "5e5",
    "expavg_time": "1.7e9",
}


def boinc(**fields: str) -> bytes:
    return BOINC.format(**{**USUAL, **fields}).encode()


def test_an_export_of_boincs_own_server_is_read() -> None:
    export = parse_export(boinc(), NOW)
    assert export.versions == [
        ExportedVersion("wings", "windows_x86_64", 102, "cuda_fermi", "NVIDIA", 31000, 0.08, 5e5, 1.7e9, 100, False)
    ]
    assert export.refused == ""


@pytest.mark.parametrize(
    ("plan_class", "type_"),
    [
        ("", "CPU"), ("mt", "CPU"), ("vbox64_mt", "CPU"), ("sse2", "CPU"), ("cuda102", "NVIDIA"),
        ("opencl_nvidia_101", "NVIDIA"), ("ati14", "ATI"), ("opencl_amd", "ATI"), ("opencl_intel_gpu_102", "intel_gpu"),
        ("apple_gpu", "apple_gpu"),
    ],
)  # fmt: skip
def test_the_type_follows_from_the_plan_class_as_in_boinc(plan_class: str, type_: str) -> None:
    assert [version.processor_type for version in parse_export(boinc(plan_class=plan_class), NOW).versions] == [type_]


def test_what_our_own_reply_says_more_is_read() -> None:
    more = "<processor_type>ATI</processor_type><sample_threshold>20</sample_threshold><pfc_scale_received/>"
    data = boinc().replace(b"</app_version>\n", more.encode() + b"</app_version>\n")
    (version,) = parse_export(data, NOW).versions
    assert (version.processor_type, version.sample_threshold, version.is_received) == ("ATI", 20, True)


@pytest.mark.parametrize("said", ["2", "-1", " 1 "])
def test_any_number_but_0_says_that_a_factor_was_received(said: str) -> None:
    more = f"<pfc_scale_received>{said}</pfc_scale_received></app_version>\n"
    (version,) = parse_export(boinc().replace(b"</app_version>\n", more.encode()), NOW).versions
    assert version.is_received


def test_a_version_that_does_not_say_whether_its_factor_was_received_is_left_out() -> None:
    more = b"<pfc_scale_received>true</pfc_scale_received></app_version>\n"
    export = parse_export(boinc().replace(b"</app_version>\n", more), NOW)
    assert export.versions == [] and "pfc_scale_received" in export.refused


@pytest.mark.parametrize(
    "fields",
    [
        *(
            {"pfc_scale": text}
            for text in ("nan", "inf", "-inf", "-0.1", "1e304", "1e400", "101", "1e-5", "x", "", "1_0")
        ),
        *({"expavg_credit": text} for text in ("nan", "inf", "-1", "1e304", "1e13", "")),
        *({"expavg_time": text} for text in ("nan", "-1", "1e304", "3e9", "")),
        *({"pfc_n": text} for text in ("nan", "inf", "-1", "1e304", "")),
        *({"plan_class": text} for text in ("x" * 65, "a\x07b", "a&#10;b")),
    ],
)
def test_a_version_with_a_number_that_cannot_be_is_left_out(fields: dict[str, str]) -> None:
    bad = boinc(**fields).partition(b"<app_versions>")[2]
    data = boinc().replace(b"</app_versions>\n", b"") + bad
    export = parse_export(data, NOW)
    assert len(export.versions) == 1 and export.versions[0].pfc_scale == 0.08
    assert export.refused.startswith("no. 2: ")


def test_only_some_of_what_was_left_out_is_named() -> None:
    row = boinc(pfc_scale="nan").partition(b"<app_versions>")[2].partition(b"</app_versions>")[0]
    export = parse_export(b"<app_versions>" + row * 9 + b"</app_versions>", NOW)
    assert export.versions == [] and export.refused.endswith("; and 6 more") and len(export.refused) < 300


def test_a_factor_of_0_is_none_yet() -> None:
    (version,) = parse_export(boinc(pfc_scale="0"), NOW).versions
    assert version.pfc_scale == 0


def test_a_version_counts_once() -> None:
    row = boinc().partition(b"<app_versions>")[2].partition(b"</app_versions>")[0]
    assert len(parse_export(b"<app_versions>" + row * 3 + b"</app_versions>", NOW).versions) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html><body>Not found</body></html>",
        b"<error><error_num>-183</error_num></error>",
        b"<apps><app_versions></app_versions></apps>",
        boinc()[:-20],
        boinc()[:300],
        b"<app_versions>" + b"<app_version></app_version>" * (MAX_VERSIONS + 1) + b"</app_versions>",
        b"<app_versions>" + b" " * MAX_BODY_BYTES + b"</app_versions>",
    ],
)
def test_what_is_no_export_or_is_cut_off_is_refused_whole(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_export(data, NOW)


def test_a_project_without_versions_is_none_to_complain_of() -> None:
    for data in (b"<app_versions></app_versions>", b"<app_versions/>", b"<app_versions>\n</app_versions>"):
        assert parse_export(data, NOW).versions == []


factors = st.builds(
    Factor,
    processor_type=st.sampled_from(["CPU", "NVIDIA", "ATI"]),
    plan_class=st.none() | st.text("abc_&<>\"'é", max_size=8),
    scale=st.floats(1e-4, 100),
    # A number closer to 0 is read as 0.
    expavg_credit=st.just(0.0) | st.floats(1e-9, 1e12),
    nprojects=st.integers(1, 100),
    nversions=st.integers(1, 1000),
)


@given(st.lists(factors, max_size=6, unique_by=lambda each: (each.processor_type, each.plan_class)))
def test_what_is_published_is_read_back_to_the_last_digit(published: list[Factor]) -> None:
    assert parse_factors(factors_document(published, NOW)) == published


FACTOR = factors_document([Factor("NVIDIA", "cuda", 0.25, 100.0, 2, 3)], NOW)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"0.25", b"nan"), (b"0.25", b"1e304"), (b"0.25", b"0"), (b"0.25", b"-1"), (b"100.0", b"inf"),
        (b">2<", b">-2<"), (b"NVIDIA", b"TPU"), (b"</version_factors>", b""),
        (b"<version_factors>", b"<version_factors>" + b"<factor></factor>"),
    ],
)  # fmt: skip
def test_averages_with_a_fault_are_refused_whole(before: bytes, after: bytes) -> None:
    assert before in FACTOR
    with pytest.raises(ProtocolError):
        parse_factors(FACTOR.replace(before, after, 1))


def test_no_project_keeps_the_averages_from_being_read_by_many_plan_classes() -> None:
    def app(name: str, gpu_class: str, credit: float) -> list[ExportedVersion]:
        common: dict[str, Any] = {"pfc_n": 500, "expavg_time": NOW}
        return [
            ExportedVersion(name, "linux", 1, "", "CPU", pfc_scale=1, expavg_credit=1, **common),
            ExportedVersion(name, "linux", 1, gpu_class, "NVIDIA", pfc_scale=0.1, expavg_credit=credit, **common),
        ]

    hostile = [each for number in range(MAX_VERSIONS // 2) for each in app(f"a{number}", f"cuda{number}", 1e12)]
    published = average_factors([hostile, app("b", "cuda", 5), app("c", "cuda", 5)], NOW)
    read = parse_factors(factors_document(published, NOW))
    assert len(read) == MAX_FACTORS
    assert {(each.processor_type, each.plan_class) for each in read} > {
        ("CPU", None), ("CPU", ""), ("NVIDIA", None), ("NVIDIA", "cuda"),
    }  # fmt: skip


def test_too_many_averages_are_refused() -> None:
    row = FACTOR[FACTOR.index(b"<factor>") : FACTOR.index(b"</version_factors>")]
    assert len(parse_factors(b"<version_factors>" + row * MAX_FACTORS + b"</version_factors>")) == 1
    with pytest.raises(ProtocolError):
        parse_factors(b"<version_factors>" + row * (MAX_FACTORS + 1) + b"</version_factors>")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for whole in (data, b"<app_versions><app_version>" + data + b"</app_version></app_versions>"):
        with suppress(ProtocolError):
            parse_export(whole, NOW)
