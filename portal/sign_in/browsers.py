"""A readable name for a browser, made from its User-Agent: "Firefox 128 (Windows)", the same in all languages. Pure.

A User-Agent also names the browsers that its own imitates, so the rarer names are tried first.
"""

from __future__ import annotations

import re
from typing import Final

_BROWSERS: Final = (
    (r"Edg(?:e|A|iOS)?", "Edge"),
    (r"OPR", "Opera"),
    (r"SamsungBrowser", "Samsung Internet"),
    (r"Firefox|FxiOS", "Firefox"),
    (r"(?:Headless)?Chrome|CriOS", "Chrome"),
    (r"Version(?=/\S+ (?:Mobile/\S+ )?Safari/)", "Safari"),
)
_SYSTEMS: Final = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_PATTERNS: Final = tuple((re.compile(rf"\b(?:{token})/(\d{{1,5}})"), name) for token, name in _BROWSERS)
_SHOWN_CHARS: Final = 60


def browser_name(user_agent: str) -> str:
    """The browser with its version, and the system; for an unknown program the beginning of its User-Agent."""
    matches = ((pattern.search(user_agent), name) for pattern, name in _PATTERNS)
    browser = next((f"{name} {match[1]}" for match, name in matches if match), "")
    if not browser:
        text = user_agent.strip()
        return f"{text[:_SHOWN_CHARS]}…" if len(text) > _SHOWN_CHARS else text or "an unknown program"
    system = next((name for token, name in _SYSTEMS if token in user_agent), "")
    return f"{browser} ({system})" if system else browser
