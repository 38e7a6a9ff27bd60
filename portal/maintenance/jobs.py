"""What can be started on the page "Maintenance". Apps add theirs in `ready()`, for the rooms that the site has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from django.core import checks


@dataclass(frozen=True, slots=True)
class Job:
    """Something that a command does, too.

    ``run`` gives what it finds, a sentence each. ``is_check``: each is a difference, and none means that all is well.
    """

    command: str
    title: str
    about: str
    run: Callable[[], Iterable[str]]
    is_check: bool = True


jobs: Final[dict[str, Job]] = {}
"""By the name of the command."""


def add(job: Job) -> None:
    jobs[job.command] = job


def site_faults() -> Iterable[str]:
    """What Django's checks say of the settings of this process, those for public sites included."""
    return (f"{found.id}: {found.msg}" for found in checks.run_checks(include_deployment_checks=True))


SITE: Final = Job(
    "check",
    "Settings of this site",
    "What does not go together, and what a public site should have (check --deploy), as the worker sees it.",
    site_faults,
)
