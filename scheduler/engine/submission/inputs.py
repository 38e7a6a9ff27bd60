"""Rules for the input files of jobs: their servers, and the names under which programs find them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from portal.languages.messages import Message

MAX_URLS: Final = 8
"""The number of addresses of one file; a client tries them in turn."""
MAX_URL_CHARS: Final = 500
# No user and no backslash before the host: programs disagree on their meaning.
_URL: Final = re.compile(
    r"https?://([A-Za-z0-9][A-Za-z0-9.-]*)(?::[0-9]{1,5})?(?:/[^\s<>&\"'\\\x00-\x20\x7f-\U0010ffff]*)?"
)
_TAKEN: Final = frozenset(
    {"init_data.xml", "boinc_finish_called", "boinc_temporary_exit", "boinc_task_state.xml", "boinc_lockfile"}
)


def is_file_url(text: str) -> bool:
    """Whether clients can be given this address as it is."""
    return len(text) <= MAX_URL_CHARS and _URL.fullmatch(text) is not None


def host_of(url: str) -> str:
    """Return the host of an `is_file_url`."""
    match = _URL.fullmatch(url)
    return match[1].lower().rstrip(".") if match else ""


def is_host_allowed(host: str, allowed: Iterable[str]) -> bool:
    """Whether ``allowed`` contains the host; ``*.example.org`` stands for all below example.org, ``*`` for all."""
    return any(
        entry in ("*", host) or (entry.startswith("*.") and host.endswith(entry[1:]))
        for entry in map(str.lower, allowed)
    )


def fault_of_names(inputs: Iterable[str], outputs: Iterable[str]) -> tuple[str, int, Message] | None:
    """Return why a program cannot find all its files under these names: "input_files" or "output_files", position,
    reason.

    Case is ignored, as on Windows and macOS.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for field, names in (("input_files", inputs), ("output_files", outputs)):
        for number, name in enumerate(names):
            text = name.lower()
            above = [text[: match.start()] for match in re.finditer("/", text)]
            if field == "input_files" and text in _TAKEN:
                return field, number, Message("open_name_taken", name=name)
            other = files.get(text) or folders.get(text) or next((files[part] for part in above if part in files), None)
            if other is not None:
                return field, number, Message("open_name_twice", name=name, other=other)
            files[text] = name
            folders.update(dict.fromkeys(above, name))
    return None
