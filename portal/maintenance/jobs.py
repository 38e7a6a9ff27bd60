"""What can be started on the page "Maintenance", as apps say (`portal.extras`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from django.core import checks
from django.utils.translation import gettext_lazy as _

from portal.extras import apps_in_use

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Job:
    """Something that a command does, too.

    ``run`` gives what it finds, a sentence each. ``is_check``: each is a difference, and none means that all is well.
    ``after_restore``: whether it has to be done after the database was restored.
    ``size``: how much it reads, in words, if it checks the data, as is done after a restore.
    """

    command: str
    title: StrOrPromise
    about: StrOrPromise
    run: Callable[[], Iterable[str]]
    is_check: bool = True
    after_restore: bool = False
    size: Callable[[], str] | None = None


@cache
def jobs() -> dict[str, Job]:
    """By the name of the command; of the apps that are in use."""
    return {job.command: job for app in apps_in_use() for job in app.maintenance_jobs()}


def site_faults() -> Iterable[str]:
    """What Django's checks say of the settings of this process, those for public sites included.

    Without those in SILENCED_SYSTEM_CHECKS, as the command.
    """
    messages = checks.run_checks(include_deployment_checks=True, databases=["default"])
    return (f"{message.id}: {message.msg}" for message in messages if not message.is_silenced())


SITE: Final = Job(
    "check",
    _("Settings of this site"),
    _("Settings that contradict each other or are unsafe for a public site (check --deploy), as the worker sees them."),
    site_faults,
)
