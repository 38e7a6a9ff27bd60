"""Jobs that can be started on the page "Maintenance", as apps name them (`portal.extras`)."""

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
    """A job that operators can start; a command does the same.

    ``run`` yields its findings, a sentence each. ``is_check``: each finding is a difference; none means that all is
    well. ``after_restore``: it has to be done after the database was restored. ``size``: for checks of the data, which
    are also done after a restore: how much they read, in words.
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
    """The jobs of the apps in use, by the name of their command."""
    return {job.command: job for app in apps_in_use() for job in app.maintenance_jobs()}


def site_faults() -> Iterable[str]:
    """Findings of Django's checks on the settings of this process, including those for public sites.

    Like the command, it leaves out SILENCED_SYSTEM_CHECKS.
    """
    messages = checks.run_checks(include_deployment_checks=True, databases=["default"])
    return (f"{message.id}: {message.msg}" for message in messages if not message.is_silenced())


SITE: Final = Job(
    "check",
    _("Settings of this site"),
    _("Settings that contradict each other or are unsafe for a public site (check --deploy), as the worker sees them."),
    site_faults,
)
