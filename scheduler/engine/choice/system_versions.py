"""Versions of operating systems and of the C library as numbers, as BOINC's plan_class_spec.xml writes them. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WINDOWS: Final = re.compile(r".*\((\d{1,3})\.(\d{1,3})\.(\d{1,6})\.(\d{1,2})")
_THREE: Final = re.compile(r"(\d{1,4})\.(\d{1,2})\.(\d{1,4})")
_LIBC: Final = re.compile(r"\|libc (\d{1,3})\.(\d{1,2})(?!\d)")


@lru_cache(maxsize=4096)
def os_number(os_name: str, os_version: str) -> int:
    """Return the version of an operating system as a number; 0 if unknown.

    Darwin 22.6.0 is 220600, Windows 10.00.19045.00 is 1001904500. For Linux and Android the kernel counts: 5.15.0 is
    51500.
    """
    if "Windows" in os_name:
        match = _WINDOWS.match(os_version)
        if match is None:
            return 0
        major, minor, build, revision = map(int, match.groups())
        return major * 100_000_000 + minor * 1_000_000 + build * 100 + revision
    if not any(name in os_name for name in ("Darwin", "Android", "Linux")):
        return 0
    match = _THREE.match(os_version.rpartition("[")[2] if "Linux" in os_name else os_version)
    if match is None:
        return 0
    major, minor, release = map(int, match.groups())
    return major * 10_000 + minor * 100 + release


@lru_cache(maxsize=4096)
def libc_number(os_version: str) -> int:
    """Return the version of the C library, which Linux clients report, as a number: 2.31 is 231; 0 if unknown."""
    match = _LIBC.search(os_version)
    return int(match[1]) * 100 + int(match[2]) if match else 0
