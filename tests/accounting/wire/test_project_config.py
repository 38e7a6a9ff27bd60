"""What projects say of themselves, as they write it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.wire.project_config import (
    MAX_KEYWORDS,
    MAX_PLATFORMS,
    MAX_TERMS,
    ProjectConfig,
    from_json,
    parse_project_config,
    processor_type,
)
from portal.wire.scanner import ProtocolError

CAPTURES = Path(__file__).parents[2] / "data" / "protocol"


def config(inner: str) -> ProjectConfig:
    return parse_project_config(f"<?xml version='1.0' ?>\n<project_config>\n{inner}\n</project_config>\n".encode())


def test_a_captured_reply_is_read() -> None:
    parsed = parse_project_config((CAPTURES / "get_project_config.xml").read_bytes())
    assert parsed == ProjectConfig(
        name="Test AM",
        account_manager=True,
        master_url="http://127.0.0.1:8201/",
        web_rpc_url_base="http://127.0.0.1:8201/",
        min_passwd_length=6,
        versions=(("x86_64-pc-linux-gnu", "CPU"),),
    )


def test_a_project_with_gpus_keywords_and_terms_is_read() -> None:
    parsed = config(
        """
        <name>R&amp;D@Home</name>
        <master_url>https://rd.example.org/rd/</master_url>
        <local_revision>7</local_revision>
        <web_stopped>0</web_stopped>
        <client_account_creation_disabled/>
        <invite_code_required/>
        <min_passwd_length>8</min_passwd_length>
        <min_client_version>70200</min_client_version>
        <platforms>
          <platform><platform_name>windows_x86_64</platform_name><user_friendly_name>Windows</user_friendly_name></platform>
          <platform><platform_name>windows_x86_64</platform_name><plan_class>opencl_nvidia_101</plan_class></platform>
          <platform><platform_name>windows_x86_64</platform_name><plan_class>cuda55</plan_class></platform>
        </platforms>
        <terms_of_use>
        Be <b>kind</b>.
        </terms_of_use>
        <keywords>
          <keyword><keyword_id>3</keyword_id><fraction>0.25</fraction></keyword>
          <keyword><keyword_id>12</keyword_id></keyword>
        </keywords>
        <account_ownership_public_key>QUJD</account_ownership_public_key>"""
    )
    assert (parsed.name, parsed.min_passwd_length, parsed.min_client_version) == ("R&D@Home", 8, "70200")
    assert parsed.client_account_creation_disabled and parsed.invite_code_required and not parsed.web_stopped
    assert parsed.versions == (("windows_x86_64", "CPU"), ("windows_x86_64", "NVIDIA"))
    assert parsed.terms_of_use == "Be <b>kind</b>."
    assert parsed.keywords == {3: 0.25, 12: 1.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3 12", {3: 1.0, 12: 1.0}), ("3:0.5,12:2", {3: 0.5, 12: 1.0}), ("none", {}), ("", {}), ("3:0", {3: 0.01})],
)
def test_keywords_may_be_a_list(text: str, expected: dict[int, float]) -> None:
    assert config(f"<keywords>{text}</keywords>").keywords == expected


@pytest.mark.parametrize(
    ("plan_class", "expected"),
    [
        ("", "CPU"),
        ("mt", "CPU"),
        ("vbox64_mt", "CPU"),
        ("sse2", "CPU"),
        ("calibration", "CPU"),
        ("cuda_fermi", "NVIDIA"),
        ("opencl_nvidia_gpu", "NVIDIA"),
        ("opencl_ati_101", "ATI"),
        ("ati14", "ATI"),
        ("opencl_amd_linux", "ATI"),
        ("opencl_intel_gpu_102", "intel_gpu"),
        ("metal_apple", "apple_gpu"),
        ("opencl_apple_gpu", "apple_gpu"),
    ],
)
def test_a_plan_class_says_which_processors_it_needs(plan_class: str, expected: str) -> None:
    assert processor_type(plan_class) == expected


def test_a_project_that_is_down_says_so() -> None:
    parsed = config("<name>A</name><error_num>-183</error_num><web_stopped>1</web_stopped>")
    assert (parsed.error_num, parsed.web_stopped) == (-183, True)


@pytest.mark.parametrize(
    "text",
    [
        # An old project that takes only clients' requests leaves out the first tag.
        "<error_msg>Too old</error_msg><error_num>-190</error_num>\n</project_config>",
        "<error><error_num>-190</error_num><error_msg>Too old</error_msg></error>",
    ],
)
def test_a_refusal_is_read(text: str) -> None:
    parsed = parse_project_config(text.encode())
    assert (parsed.error_num, parsed.error_msg) == (-190, "Too old")


@pytest.mark.parametrize("data", [b"", b"<html><body>404</body></html>", b"\0\xff", b"<name>x</name>", b"<project>"])
def test_another_document_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="no configuration of a BOINC project"):
        parse_project_config(data)


def test_what_a_hostile_project_writes_is_limited() -> None:
    platforms = "".join(f"<platform><platform_name>p{n}</platform_name></platform>" for n in range(MAX_PLATFORMS + 9))
    keywords = " ".join(str(n) for n in range(MAX_KEYWORDS + 9))
    parsed = config(
        f"<name>{'n' * 5000}</name><name>second</name><min_passwd_length>9e9</min_passwd_length>"
        f"<master_url>{'u' * 5000}</master_url><terms_of_use>{'t' * 200_000}</terms_of_use>"
        f"<platforms>{platforms}<platform><platform_name><script>&lt;</platform_name></platform></platforms>"
        f"<keywords>{keywords}</keywords>"
    )
    assert (len(parsed.name), len(parsed.master_url), len(parsed.terms_of_use)) == (100, 255, MAX_TERMS)
    assert (parsed.min_passwd_length, len(parsed.versions), len(parsed.keywords)) == (0, MAX_PLATFORMS, MAX_KEYWORDS)


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 30_000,
        f"<name>{'x' * 300_000}</name>",
        f"<x>{'y' * (1 << 20)}</x>",
        "".join(f"<u{n}>" for n in range(500)),
    ],
)
def test_a_reply_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        config(text)


def test_it_is_stored_and_read_back() -> None:
    parsed = config("<name>A</name><keywords>3:0.5</keywords><platforms><platform><platform_name>p</platform_name>")
    assert from_json(parsed.to_json()) == parsed


@given(st.binary(max_size=400))
def test_no_bytes_make_the_parser_fail(data: bytes) -> None:
    for text in (data, b"<project_config>" + data, b"<project_config><platforms><platform>" + data):
        with suppress(ProtocolError):
            assert from_json(parse_project_config(text).to_json())
