"""Decide whether an announcement is for a computer. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

Version = tuple[int, int, int]

VERSION_PATTERN: Final = r"^\d{1,4}\.\d{1,4}(\.\d{1,4})?$"
UNKNOWN: Final[Version] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Reader:
    """A computer: its projects, BOINC's name of its platform, its client's version (`UNKNOWN`: not reported), and the
    apps of this site's project that it has run, with their versions. ``programs`` None: not looked up.
    """

    project_ids: frozenset[int]
    platform: str
    version: Version
    programs: frozenset[tuple[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Audience:
    """The conditions on the readers. All that are set must hold; if none is set, everybody is meant."""

    project_id: int | None = None
    platform: str = ""
    older_than: Version = UNKNOWN
    app_name: str = ""
    app_version_num: int | None = None

    @property
    def is_everybody(self) -> bool:
        return self == _EVERYBODY

    def may_fit(self, reader: Reader) -> bool:
        """Whether it is for this computer; also True if that depends on apps that were not looked up."""
        if self.project_id is not None and self.project_id not in reader.project_ids:
            return False
        if not reader.platform.startswith(self.platform):
            return False
        if self.older_than != UNKNOWN and not UNKNOWN < reader.version < self.older_than:
            return False
        return not self.app_name or reader.programs is None or self._has_run(reader.programs)

    def _has_run(self, programs: frozenset[tuple[str, int]]) -> bool:
        return any(
            name == self.app_name and self.app_version_num in (None, version_num) for name, version_num in programs
        )


_EVERYBODY: Final = Audience()


def version_of(text: str) -> Version:
    """Parse a client's version, such as 8.2.4; `UNKNOWN` for anything else."""
    if not re.match(VERSION_PATTERN, text):
        return UNKNOWN
    major, minor, *rest = (int(part) for part in text.split("."))
    return major, minor, rest[0] if rest else 0
