"""What a new version needs of the machine, and does not have: packages, versions, settings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import connection
from packaging.requirements import Requirement

OLDEST_PYTHON: Final = (3, 11)
OLDEST_POSTGRESQL: Final = (15, 0)


def versions() -> str:
    """What runs here, for people."""
    major, minor = _postgresql()
    return f"Python {'.'.join(map(str, sys.version_info[:3]))}, PostgreSQL {major}.{minor}"


def version_problems() -> Iterator[str]:
    if sys.version_info < OLDEST_PYTHON:
        yield f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed"
    if _postgresql() < OLDEST_POSTGRESQL:
        yield f"PostgreSQL {OLDEST_POSTGRESQL[0]} or newer is needed"


def package_problems(locked: Path) -> Iterator[str]:
    """Packages that are not installed as this file of locked requirements has them."""
    for line in re.findall(r"^\w[^\\\n]*", locked.read_text(), re.M):
        requirement = Requirement(line.strip())
        if requirement.marker and not requirement.marker.evaluate():
            continue
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield f"{requirement.name} is not installed ({locked.name} has {requirement.specifier})"
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name} {found} is installed, but {locked.name} has {requirement.specifier}"


def setting_messages() -> tuple[list[str], list[str]]:
    """What must be mended before the new version starts, and what should be looked at."""
    problems, notes = [], []
    for name in settings.SECRETS_MADE_HERE:
        if settings.SEVERAL_MACHINES:
            problems.append(f"{name} is not set. All machines need the same one")
        else:
            notes.append(f"{name} is not set: this machine uses the one in {settings.VAR_DIR / 'keys'}")
    for message in checks.run_checks(include_deployment_checks=True):
        if not message.is_silenced() and message.level >= checks.WARNING:
            (problems if message.is_serious() else notes).append(_line(message))
    return problems, notes


def _line(message: CheckMessage) -> str:
    return f"{message.msg} ({message.id})"


def _postgresql() -> tuple[int, int]:
    connection.ensure_connection()
    database: Any = connection  # the stubs have no version
    number: int = database.pg_version
    return number // 10_000, number % 10_000
