"""A ZIP of a client's data folder: what is read of it, and what is refused."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.scenario import ScenarioError
from emulator.files import archive
from emulator.files.scenario import read_folder, read_zip
from emulator.files.sections import ScenarioFileError

AT_WORK = Path(__file__).parents[2] / "data" / "emulator" / "client_at_work"
FILES = {path.name: path.read_bytes() for path in AT_WORK.iterdir()}
APP_CONFIG = b"<app_config><project_max_concurrent>1</project_max_concurrent></app_config>"


def packed(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP of the files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return buffer.getvalue()


def refusal(data: bytes) -> str:
    """What the ZIP is refused with."""
    with pytest.raises(ScenarioFileError) as refused:
        read_zip(data)
    return str(refused.value)


@pytest.mark.parametrize("folder", ["", "BOINC/", "a/b/BOINC Data/", "./", "C\\BOINC\\"])
def test_a_folder_is_read_wherever_it_is_in_the_zip(folder: str) -> None:
    found = read_zip(packed({folder + name: content for name, content in FILES.items()}))
    assert replace(found, name="client_at_work") == read_folder(AT_WORK)
    assert tuple(map(str, found.notes)) == (
        "Files that were read: cc_config.xml, client_state.xml, global_prefs_override.xml, "
        "job_log_127.0.0.1_36765.txt, job_log_127.0.0.1_37359.txt, time_stats_log",
        *map(str, read_folder(AT_WORK).notes),
    )


def test_all_that_a_data_folder_has_is_used() -> None:
    others = {
        "account_127.0.0.1_36765.xml": b"<account><authenticator>secret</authenticator></account>",
        "client_state_prev.xml": b"not read",
        "slots/0/client_state.xml": b"not read either",
        "projects/127.0.0.1_36765/app_config.xml": APP_CONFIG,
        "projects/127.0.0.1_36765/deep/app_config.xml": b"not read",
        "projects/other/primes_100": b"\0" * 1000,
    }
    found = read_zip(packed({f"BOINC/{name}": content for name, content in (FILES | others).items()}))
    assert found.project("Prime count").max_concurrent == 1
    assert "Other files of the ZIP, which were not opened: 5" in map(str, found.notes)
    assert "secret" not in str(found)


def test_the_same_without_compression() -> None:
    assert read_zip(packed(FILES, zipfile.ZIP_STORED)).jobs == read_folder(AT_WORK).jobs


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "client_state.xml: the ZIP does not have it"),
        ({"a/client_state.xml": b"", "b/client_state.xml": b""}, "the data folders of several clients"),
        (FILES | {"../client_state.xml": b""}, "../client_state.xml: its path leads out of the ZIP"),
        (FILES | {"/etc/passwd": b""}, "/etc/passwd: its path leads out of the ZIP"),
        (FILES | {"C:\\x": b""}, "its path leads out of the ZIP"),
        (FILES | {"a\\..\\..\\x": b""}, "its path leads out of the ZIP"),
        ({"client_state.xml": b" " * (16 << 20) + b" "}, "client_state.xml: the file is larger than 16 MiB"),
        ({"client_state.xml": b" " * (2 << 20)}, "client_state.xml: it is packed to less than 1/200 of its size"),
        (FILES | {f"job_log_{n}.txt": b"" for n in range(500)}, "more than 500 of its files would have to be read"),
        (FILES | {f"x{n}": b"" for n in range(20_000)}, "it has more than 20,000 files"),
    ],
)
def test_what_is_no_data_folder_is_refused(files: dict[str, bytes], words: str) -> None:
    assert words in refusal(packed(files))


def test_all_files_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "BYTES_MAX", 10_000)
    assert "the files to read are larger than 0 MiB together" in refusal(packed(FILES))


def test_an_error_in_a_file_names_the_file_and_the_line() -> None:
    broken = FILES["client_state.xml"].replace(b"<p_ncpus>2</p_ncpus>", b"<p_ncpus>two</p_ncpus>")
    assert refusal(packed(FILES | {"client_state.xml": broken})).startswith(
        "client_state.xml, line 7, <p_ncpus>: not an"
    )


def test_a_link_is_not_followed() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        link = zipfile.ZipInfo("client_state.xml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(link, "/etc/passwd")
    assert "client_state.xml: it is a link, not a file" in refusal(buffer.getvalue())


def test_an_encrypted_file_is_refused() -> None:
    data = bytearray(packed({"client_state.xml": FILES["client_state.xml"]}))
    data[6] |= 1  # the flag, in the file's own header and in the directory
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    assert "it is encrypted: pack the folder without a password" in refusal(bytes(data))


def test_a_size_that_is_a_lie_does_not_help() -> None:
    # The directory says 10 bytes; what is unpacked then has not the checksum of the whole.
    data = bytearray(packed({"client_state.xml": FILES["client_state.xml"]}))
    at = data.rindex(b"PK\x01\x02") + 24
    data[at : at + 4] = (10).to_bytes(4, "little")
    assert "it cannot be unpacked: the ZIP is damaged" in refusal(bytes(data))


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_zip_is_refused(data: bytes) -> None:
    assert "ZIP" in refusal(data)


WHOLE = packed(FILES)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(0, 30), st.binary(max_size=30))
def test_no_damage_to_a_zip_crashes_the_reader(start: int, length: int, noise: bytes) -> None:
    try:
        read_zip(WHOLE[:start] + noise + WHOLE[start + length :])
    except ScenarioError as error:
        assert isinstance(error, ScenarioFileError)
