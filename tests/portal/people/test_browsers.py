"""The names that the list of sessions gives to browsers."""

from __future__ import annotations

import pytest

from portal.sign_in.browsers import browser_name

KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox 128 (Linux)"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KHTML} Chrome/142.0.0.0 Safari/537.36", "Chrome 142 (Windows)"),
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KHTML} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.1.2",
            "Edge 142 (Windows)",
        ),
        (f"Mozilla/5.0 (Linux; Android 14) {KHTML} Chrome/142.0.0.0 Mobile Safari/537.36", "Chrome 142 (Android)"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1"
            " Safari/605.1.15",
            "Safari 18 (macOS)",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/18.1 Mobile/15E148 Safari/604.1",
            "Safari 18 (iPhone)",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "an unknown program"),
        ("x" * 500, "x" * 60 + "…"),
    ],
)
def test_browsers_are_called_by_their_names(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name
