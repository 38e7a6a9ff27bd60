"""What projects say of their daemons and queues, also in ways that no project should."""

from __future__ import annotations

import pytest

from accounting.wire.server_status import MAX_DAEMONS, ServerStatus, parse_server_status, status_from_json
from portal.wire.scanner import ProtocolError


def status(inside: str) -> ServerStatus:
    return parse_server_status(f"<server_status>{inside}</server_status>".encode())


def daemon(name: str, state: str) -> str:
    return f"<daemon><host>h</host><command>{name}</command><status>{state}</status></daemon>"


def test_daemons_that_are_switched_off_by_their_operators_count_as_running() -> None:
    parsed = status(daemon("feeder", "running") + daemon("old", "disabled") + daemon("validator", "not running"))
    assert parsed.stopped == ("validator",)


def test_it_is_stored_and_read_back() -> None:
    parsed = status(daemon("a", "not running") + "<results_in_progress>5</results_in_progress>")
    assert status_from_json(parsed.to_json()) == parsed != ServerStatus()


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "1e304", "", "many", "0x10"])
def test_numbers_that_are_none_are_left_out(number: str) -> None:
    assert status(f"<results_ready_to_send>{number}</results_ready_to_send>").counts == {}


def test_there_is_a_limit_of_daemons_and_of_their_names() -> None:
    parsed = status("".join(daemon(f"{n:09}{'x' * 100}", "not running") for n in range(500)))
    assert len(parsed.stopped) == MAX_DAEMONS and {len(name) for name in parsed.stopped} == {60}


@pytest.mark.parametrize("answer", [b"", b"<html>status</html>", b"\xff\xfe<daemon>", b"<project_config/>"])
def test_another_page_is_no_status(answer: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_server_status(answer)
