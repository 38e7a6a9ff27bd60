"""Ask projects about themselves, once by hand or daily by tasks. Nothing is asked in a transaction.

Changes since an operator looked are only marked, and recorded in the project's history. Only the platforms are applied,
where the project's setting says so. Each project has its own task, so none waits for another.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog
from django.db import transaction

from accounting.engine.addresses import address_key
from accounting.models import Project, ProjectAddress, ProjectProfile
from accounting.project_setup import answer_history, changes
from accounting.project_setup.changes import is_down
from accounting.project_setup.contents import set_versions
from accounting.projects.addresses import learn
from accounting.rpc import catalogue
from accounting.wire.project_config import MAX_URL, ProjectConfig, from_json, parse_project_config
from accounting.wire.requests import canonical_url
from accounting.wire.server_status import ServerStatus, parse_server_status
from portal.fetch.errors import FetchError
from portal.fetch.fetcher import Version, fetch
from portal.languages.messages import Message, MessageError
from portal.wire.boinc_errors import ERR_PROJECT_DOWN
from portal.wire.scanner import ProtocolError

log = structlog.get_logger("projects")

EVERY: Final = dt.timedelta(days=1)
FIRST_RETRY: Final = dt.timedelta(hours=1)
"""Wait after the first failure; it doubles with each further one, up to `EVERY`."""
# Fraction of that time by which requests are spread: not all at once, nor at the same second each day.
JITTER: Final = 0.1
MAX_PROJECTS_PER_RUN: Final = 100


class AskFailed(MessageError):
    """The project did not describe itself. ``says_down``: it says that it is down."""

    def __init__(self, message: Message, *, says_down: bool = False) -> None:
        super().__init__(message)
        self.says_down = says_down


@dataclass(frozen=True, slots=True)
class ConfigAnswer:
    """``config`` is None if nothing has changed since ``version``."""

    config: ProjectConfig | None
    version: Version


def ask(url: str, known: Version | None = None) -> ConfigAnswer:
    """Ask the project at this master URL about itself. Blocks. Raises AskFailed."""
    try:
        answer = fetch(f"{url}get_project_config.php", known=known)
        config = None if answer.is_unchanged else parse_project_config(answer.body)
    except FetchError as error:
        raise AskFailed(error.message) from error
    except ProtocolError as error:
        raise AskFailed(Message("ask_no_boinc_project", url=url, fault=error.message)) from error
    if config is not None and (config.error_num or config.error_msg) and not config.name:
        # Fields that it temporarily leaves out have not changed.
        what = ", ".join(filter(None, [str(config.error_num or ""), config.error_msg]))
        message = Message("ask_error", host=urlsplit(url).hostname, words=what)
        raise AskFailed(message, says_down=config.error_num == ERR_PROJECT_DOWN)
    return ConfigAnswer(config, answer.version)


def ask_status(url: str) -> ServerStatus | None:
    """Ask the project at this master URL about its daemons and queues; None: it does not say. Blocks."""
    try:
        return parse_server_status(fetch(f"{url}server_status.php?xml=1").body)
    except (FetchError, ProtocolError):
        return None


def ask_again(project: Project, now: dt.datetime) -> bool:
    """Ask a listed project again, and note its answer; False if it could not be asked."""
    profile = ProjectProfile.objects.filter(project=project).first() or ProjectProfile(project=project)
    # After a change of the URL here, the version would be that of another document.
    is_same = profile.said.get("master_url") == project.master_url
    version = Version(profile.etag, profile.last_modified) if is_same else None
    try:
        answer = ask(project.master_url, version)
    except AskFailed as error:
        _note(project.pk, now, partial(_note_problem, problem=error.message, says_down=error.says_down))
        log.info("project_not_asked", project=project.name, reason=str(error))
        return False
    config = answer.config or from_json(profile.said)
    stated = config.master_url if _is_confirmed(project, profile, config.master_url) else ""
    status = ask_status(project.master_url)
    _note(project.pk, now, partial(_note_answer, answer=answer, status=status, stated=stated))
    return True


def _is_confirmed(project: Project, profile: ProjectProfile, stated: str) -> bool:
    """Whether the address that a project states as its master URL confirms it, and so is another address of the
    project.

    Any project could name any address. So that address has to confirm it: with the project's address here as its own,
    or with the key or the name of the project as operators have seen them. Blocks, if the address is new.
    """
    key = address_key(stated)
    if not key or key == project.address_key or ProjectAddress.objects.filter(key=key, project=project).exists():
        return False
    try:
        other = ask(canonical_url(stated)).config
    except (AskFailed, ValueError) as error:
        log.info("stated_address_unconfirmed", project=project.name, url=stated[:MAX_URL], reason=str(error))
        return False
    seen = from_json(profile.seen) if profile.seen else ProjectConfig()
    if other is None:
        return False
    if address_key(other.master_url) == project.address_key:
        return True
    if seen.account_ownership_public_key:
        return other.account_ownership_public_key == seen.account_ownership_public_key
    return bool(other.name) and other.name.casefold() in (project.name.casefold(), seen.name.casefold())


_Said = list[tuple[str, str, str]]


class _Change(Protocol):
    def __call__(self, project: Project, profile: ProjectProfile, now: dt.datetime) -> _Said: ...


def _note(project_id: int, now: dt.datetime, change: _Change) -> None:
    """Note the answer in one transaction: locks the project, but not against rows that refer to it, then its
    profile.
    """
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
        profile = ProjectProfile.objects.select_for_update().filter(project=project).first()
        profile = profile or ProjectProfile(project=project)
        profile.asked_at = now
        lines = change(project, profile, now)
        profile.ask_after = _next_time(now, profile.failures)
        profile.save()
        answer_history.add(project, now, lines)


def _note_problem(
    project: Project, profile: ProjectProfile, now: dt.datetime, *, problem: Message, says_down: bool
) -> _Said:
    lines: _Said = [] if profile.problem else [(changes.ANSWERS, "yes", str(problem))]
    profile.problem = problem
    profile.problem_since = profile.problem_since or now
    profile.failures += 1
    # One that cannot be reached has not said that it is up again.
    return lines + (_note_state(profile, now, says_down=True) if says_down else [])


def _note_answer(
    project: Project,
    profile: ProjectProfile,
    now: dt.datetime,
    *,
    answer: ConfigAnswer,
    status: ServerStatus | None,
    stated: str,
) -> _Said:
    lines: _Said = [(changes.ANSWERS, str(profile.problem), "yes")] if profile.problem else []
    profile.problem, profile.problem_since, profile.said_at, profile.failures = None, None, now, 0
    profile.etag, profile.last_modified = answer.version.etag, answer.version.last_modified
    if answer.config is not None:
        config = answer.config.to_json()
        # A field that this site has only just learnt to read is no change.
        lines += answer_history.differences(config | profile.said, config)
        profile.said, profile.seen = config, config | profile.seen
        if project.takes_platforms and answer.config.versions:
            if set_versions(project, answer.config.versions):
                transaction.on_commit(catalogue.forget)
            profile.seen = profile.seen | {"versions": profile.said["versions"]}
    if stated:
        learn(project, stated, ProjectAddress.Source.CONFIG)
    lines += _note_state(profile, now, says_down=is_down(from_json(profile.said)))
    before, profile.status = profile.status, {} if status is None else status.to_json()
    stopped = [", ".join(status.get("stopped", [])) for status in (before, profile.status)]
    if stopped[0] != stopped[1] and before and profile.status:
        lines.append((changes.DAEMONS_STOPPED, stopped[0], stopped[1]))
    return lines


def _note_state(profile: ProjectProfile, now: dt.datetime, *, says_down: bool) -> _Said:
    was_down = profile.says_down_since is not None
    if was_down == says_down:
        return []
    profile.says_down_since = now if says_down else None
    words = ["up", "down for maintenance"]
    return [(changes.STATE, words[was_down], words[says_down])]


def _next_time(now: dt.datetime, failures: int = 0) -> dt.datetime:
    # 2 ** 5 hours are more than a day.
    wait = min(FIRST_RETRY * 2 ** min(failures - 1, 5), EVERY) if failures else EVERY
    return now + wait * random.uniform(1 - JITTER, 1 + JITTER)


def take_due(now: dt.datetime) -> list[int]:
    """Take the projects that are due, those that have waited longest first. They are not due again before tomorrow, so
    one that stops its worker does so once a day. Locks their profiles; runs may overlap, each takes others.

    The site's own project is not among them: the site knows it.
    """
    with transaction.atomic():
        profiles = (
            ProjectProfile.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(ask_after__lte=now, project__is_active=True)
            .exclude(project__is_own=True)
            .order_by("ask_after")[:MAX_PROJECTS_PER_RUN]
        )
        taken = list(profiles)
        for profile in taken:
            profile.ask_after = _next_time(now)
            profile.save(update_fields=["ask_after"])
    return [profile.project_id for profile in taken]
