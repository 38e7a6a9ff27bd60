"""Ask projects what they say of themselves, once by hand or daily by a task. Nothing is asked in a transaction.

What changed since an operator looked is only marked. The platforms alone are taken over, where the project's setting
says so.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog
from django.db import transaction

from accounting.models import Project, ProjectProfile
from accounting.project_setup.contents import set_versions
from accounting.rpc import catalogue
from accounting.wire.project_config import ProjectConfig, parse_project_config
from portal.fetch.errors import FetchError
from portal.fetch.fetcher import Version, fetch
from portal.wire.scanner import ProtocolError

log = structlog.get_logger("projects")

EVERY: Final = dt.timedelta(days=1)
# Of that time: so that not all projects are asked at once, nor one at the same second each day.
JITTER: Final = 0.1
# Of one run of the task: other tasks wait for the same workers.
MAX_PROJECTS_PER_RUN: Final = 20
MAX_RUN_SECS: Final = 300.0


class AskFailed(Exception):
    """The project did not say what it is. ``str`` is a sentence for operators."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``config`` is None if nothing changed since ``version`` was asked for."""

    config: ProjectConfig | None
    version: Version


def ask(url: str, known: Version | None = None) -> Answer:
    """What the project at this master URL says. Blocks. Raises AskFailed."""
    try:
        found = fetch(f"{url}get_project_config.php", known=known)
        config = None if found.is_unchanged else parse_project_config(found.body)
    except FetchError as error:
        raise AskFailed(str(error)) from error
    except ProtocolError as error:
        raise AskFailed(f"{url} answers, but not as a BOINC project does ({error}).") from error
    if config is not None and (config.error_num or config.error_msg) and not config.name:
        # What it does not say for now has not changed.
        what = ", ".join(filter(None, [str(config.error_num or ""), config.error_msg]))
        raise AskFailed(f"{urlsplit(url).hostname}: it answers with an error ({what}).")
    return Answer(config, found.version)


def ask_again(project: Project, now: dt.datetime) -> bool:
    """Ask a project that is in the list, and note what it says; False if it could not be asked."""
    profile = ProjectProfile.objects.filter(project=project).first() or ProjectProfile(project=project)
    # After a change of the URL here, the version would be that of another document.
    is_same = profile.said.get("master_url") == project.master_url
    known = Version(profile.etag, profile.last_modified) if is_same else None
    try:
        answer = ask(project.master_url, known)
    except AskFailed as error:
        _note(project.pk, now, partial(_note_problem, text=str(error)))
        log.info("project not asked", project=project.name, reason=str(error))
        return False
    _note(project.pk, now, partial(_note_answer, answer=answer))
    return True


class _Change(Protocol):
    def __call__(self, project: Project, profile: ProjectProfile, now: dt.datetime) -> None: ...


def _note(project_id: int, now: dt.datetime, change: _Change) -> None:
    """One transaction: locks the project, but not against rows that refer to it, then its profile."""
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
        profile = ProjectProfile.objects.select_for_update().filter(project=project).first()
        profile = profile or ProjectProfile(project=project)
        profile.asked_at = now
        profile.ask_after = _next_time(now)
        change(project, profile, now)
        profile.save()


def _note_problem(project: Project, profile: ProjectProfile, now: dt.datetime, *, text: str) -> None:
    profile.problem = text[:300]
    profile.problem_since = profile.problem_since or now


def _note_answer(project: Project, profile: ProjectProfile, now: dt.datetime, *, answer: Answer) -> None:
    profile.problem, profile.problem_since, profile.said_at = "", None, now
    profile.etag, profile.last_modified = answer.version.etag, answer.version.last_modified
    if answer.config is None:
        return
    profile.said = answer.config.to_json()
    profile.seen = profile.seen or profile.said
    if project.takes_platforms and answer.config.versions:
        if set_versions(project, answer.config.versions):
            transaction.on_commit(catalogue.forget)
        profile.seen = profile.seen | {"versions": profile.said["versions"]}


def _next_time(now: dt.datetime) -> dt.datetime:
    return now + EVERY * random.uniform(1 - JITTER, 1 + JITTER)


def ask_due(now: dt.datetime) -> int:
    """Ask the projects whose time has come, one after the other; how many. Runs may overlap: each takes others."""
    ends = time.monotonic() + MAX_RUN_SECS
    asked = 0
    while asked < MAX_PROJECTS_PER_RUN and time.monotonic() < ends:
        project = _take_next(now)
        if project is None:
            break
        ask_again(project, now)
        asked += 1
    return asked


def _take_next(now: dt.datetime) -> Project | None:
    """The project that waits longest. Its next time is set first, so one that stops the worker stops it once a day."""
    with transaction.atomic():
        profile = (
            ProjectProfile.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(ask_after__lte=now, project__is_active=True)
            .order_by("ask_after")
            .select_related("project")
            .first()
        )
        if profile is None:
            return None
        profile.ask_after = _next_time(now)
        profile.save(update_fields=["ask_after"])
        return profile.project
