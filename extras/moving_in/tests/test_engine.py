"""Texts, preferences and passwords of old databases."""

from __future__ import annotations

from typing import Any

import pytest

from extras.moving_in.engine import people, preferences, project_preferences
from extras.moving_in.engine.texts import Repair, Text, read

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("raw", "text", "repair"),
    [
        (b"plain", "plain", Repair.NONE),
        ("José".encode(), "José", Repair.NONE),
        ("José".encode("cp1252"), "José", Repair.FROM_CP1252),
        # What CONVERT TO makes of UTF-8 in a column of latin1: each byte is a character, also those that cp1252 lacks.
        ("José".encode().decode("cp1252").encode(), "José", Repair.UNDOUBLED),
        ("Ärger à Liège".encode().decode("latin1").replace("\x84", "„").encode(), "Ärger à Liège", Repair.UNDOUBLED),
        ("Привет".encode().decode("cp1251").encode(), "Привет".encode().decode("cp1251"), Repair.NONE),
        ("日本".encode().decode("latin1").encode(), "日本".encode().decode("latin1"), Repair.NONE),
        # É and a dash are the bytes of ɖ: nobody knows.
        ("CAFÉ–BAR".encode(), "CAFÉ–BAR", Repair.MAYBE_DOUBLED),
        (b"nul\0\xff", "nulÿ", Repair.FROM_CP1252),
    ],
)
def test_a_text_is_repaired_where_that_is_certain(raw: bytes, text: str, repair: Repair) -> None:
    assert read(raw) == Text(text, repair)


def test_several_characters_of_another_script_are_certain() -> None:
    # MySQL's latin1 has the five codes that cp1252 lacks as they are.
    twice = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in "Привет".encode())
    assert read(twice.encode()) == Text("Привет", Repair.UNDOUBLED)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<global_preferences><mod_time>5</mod_time><run_on_batteries/></global_preferences>", 5.0),
        ('<global_preferences><mod_time>5.5</mod_time><venue name="home"></venue>\n</global_preferences>', 5.5),
        ("<global_preferences><run_on_batteries/></global_preferences>", None),  # no time
        ("<global_preferences><mod_time>5</mod_time><a></global_preferences>", None),  # open
        ("<global_preferences><mod_time>5</mod_time><a></b></a></global_preferences>", None),
        ("<global_preferences><mod_time>5</mod_time>a < b</global_preferences>", None),
        ("<global_preferences><mod_time>99999999999</mod_time></global_preferences>", None),  # in the future
        ("<preset>max</preset>", None),
    ],
)
def test_preferences_are_taken_if_a_client_can_read_them(text: str, found: float | None) -> None:
    read_ = preferences.read(text, NOW)
    assert (read_.mod_time if read_ else None) == found


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        (" Ann@Example.ORG ", "ann@example.org"),
        ("no address", ""),
        ("@example.org", ""),
        ("deleted_1@example.org", ""),
        ("a b@example.org", ""),
    ],
)
def test_addresses_are_in_lower_case(address: str, kept: str) -> None:
    assert people.address(address) == kept


@pytest.mark.parametrize(
    ("cost", "is_taken"), [("03", False), ("04", True), ("16", True), ("17", False), ("99", False)]
)
def test_a_bcrypt_hash_that_raises_errors_or_takes_minutes_at_each_login_is_not_taken(
    cost: str, is_taken: bool
) -> None:
    found = people.password(f"$2y${cost}${'a' * 53}", "a@example.org", "", 7)
    assert bool(found.encoded) is is_taken
    assert bool(found.fault) is not is_taken


def test_of_equal_addresses_that_whose_computers_reported_last_stays() -> None:
    holders = [people.Holder(1, "a", 5), people.Holder(2, "a", 9), people.Holder(3, "b", 0), people.Holder(4, "a", 9)]
    assert people.without_address(holders) == {1, 4}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", None),
        ("<global_preferences></global_preferences>", None),
        ("<project_preferences></project_preferences>", {"": {}}),
        (
            "<project_preferences>\n<resource_share>50</resource_share>\n<no_cuda>1</no_cuda><no_ati>0</no_ati>\n"
            "<allow_beta_work>1</allow_beta_work><max_jobs>4</max_jobs><max_cpus>0</max_cpus>\n<project_specific>\n"
            "<app_id>7</app_id><app_id>3</app_id>\n</project_specific>\n"
            '<venue name="work"><no_gpus/><max_cpus>99999999999</max_cpus></venue><venue name="moon"><no_cpu/></venue>'
            "</project_preferences>",
            {
                # The others are sent only where that is ticked.
                "": {
                    "apps": [3, 7],
                    "other_apps": False,
                    "max_jobs": 4,
                    "refused_types": ["NVIDIA"],
                    "resource_share": 50,
                },
                "work": {"max_cpus": 1024, "refused_types": ["NVIDIA", "ATI", "intel_gpu", "apple_gpu"]},
            },
        ),
        # Malformed, and nevertheless understood as far as BOINC's scheduler would.
        ("<project_preferences><max_jobs>2</max_jobs><venue name=</project_preferences>", {"": {"max_jobs": 2}}),
        ("<project_preferences><max_jobs>nan</max_jobs></project_preferences>", {"": {}}),
    ],
)
def test_preferences_for_a_project_are_taken_by_place(text: str, places: dict[str, Any] | None) -> None:
    assert project_preferences.read(text) == places
