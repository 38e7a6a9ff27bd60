"""Why a task failed, in words: from its exit status, and from the message of the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from credit.pages.state_texts import exit_text, reason_text
from scheduler.wire.reported import MAX_STDERR
from scheduler.wire.requests import parse_request

# The client's process exit codes, 192 to 209 without a gap: a word of what BOINC's error_numbers.h calls each.
CLIENT_EXITS = [
    "state file", "signal", "client stopped", "started by the task failed", "disk", "time limit", "memory limit",
    "shut down", "not started", "GPU", "project", "by the user", "unknown", "out of memory", "initialised",
    "no sub-task", "sub-task failed", "after its deadline",
]  # fmt: skip
PROTOCOL = Path(__file__).parents[2] / "data" / "protocol"
REFUSED = "could not be downloaded or was damaged"


@dataclass
class Failed:
    exit_status: int | None
    stderr_text: str = ""
    client_state: int | None = 3


@pytest.mark.parametrize(("status", "word"), list(enumerate(CLIENT_EXITS, 192)))
def test_each_exit_code_of_the_client_has_its_words(status: int, word: str) -> None:
    assert word in exit_text(status)
    assert sum(word in exit_text(other) for other in range(192, 210)) == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, ""),
        (0, ""),
        (3, "the program ended with exit code 3"),
        (128, "the program ended with exit code 128"),
        (139, "the program was terminated by signal 11"),  # 128 + 11
        (191, "the program was terminated by signal 63"),
        (210, "the program ended with exit code 210"),
        (255, "the program ended with exit code 255"),
        (-120, "the signature of a program file was wrong"),
        (-999, "client error -999"),
        # 2^32 - 1073741819 = 3221225477 = 0xC0000005
        (-1073741819, "the program crashed (Windows code 0xC0000005: it accessed memory that it does not own)"),
        (3221225477, "the program crashed (Windows code 0xC0000005: it accessed memory that it does not own)"),
        (-1073741824, "the program crashed (Windows code 0xC0000000)"),
        (-(2**31), "the program ended (Windows code 0x80000000)"),
        (-2147467259, "the program ended (Windows code 0x80004005)"),
        # 2^32 - 1073741510 = 3221225786 = 0xC000013A
        (-1073741510, "the program ended (Windows code 0xC000013A: it was terminated from outside)"),
        (0x40010004, "the program ended (Windows code 0x40010004: it was terminated from outside)"),
    ],
)
def test_an_exit_status_is_told_in_words(status: int | None, said: str) -> None:
    assert exit_text(status) == said


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("report_bad_app_signature", [f"a required file {REFUSED}: the signature of a program file was wrong"]),
        (
            "report_bad_md5",
            [
                f"a required file {REFUSED}: a program file had no signature",
                f"a required file {REFUSED}: a file did not match its checksum",
            ],
        ),
        ("report_exit3", ["the program ended with exit code 3"]),
    ],
)
def test_what_a_client_reported_of_its_files_is_said(recorded: str, said: list[str]) -> None:
    request = parse_request((PROTOCOL / f"sched_request_{recorded}.xml").read_bytes())
    reasons = [reason_text(Failed(row.exit_status, row.stderr_text, row.state)) for row in request.results]
    assert [reason for reason in reasons if reason] == said


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        # Only while files are downloaded: a program may write such a line itself.
        (Failed(1, "<error_code>-120 (bad)"), "the program ended with exit code 1"),
        (Failed(0, "<error_code>-224 (no)", 1), "a file could not be found on the server"),
        (Failed(-186, "<error_code>-777 (new)", 1), f"a required file {REFUSED}: client error -777"),
        (Failed(-186), f"a required file {REFUSED}"),
        (Failed(-186, "<error_code>-" + "1" * MAX_STDERR), f"a required file {REFUSED}"),
        (Failed(-186, " " * (MAX_STDERR - 20) + "<error_code>-120 "), f"a required file {REFUSED}"),
        (Failed(11, "process got signal 11\n\nSIGSEGV"), "the program was terminated by signal 11"),
        (Failed(134, "process got signal 6"), "the program was terminated by signal 6"),  # 6 + 128: memory was dumped
        (Failed(11, "process got signal 6"), "the program ended with exit code 11"),
        (Failed(11, "I fear process got signal 11"), "the program ended with exit code 11"),
    ],
)
def test_the_message_of_the_client_adds_to_the_exit_status(failed: Failed, said: str) -> None:
    assert reason_text(failed) == said
