"""Read the pages of the set-up, and of projects' problems."""

from __future__ import annotations

import datetime as dt
import shlex
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.cache import cache
from django.db import connection
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from accounting.choosing.texts import trouble_text
from accounting.engine.choice.facts import Trouble, TroubleKind
from accounting.engine.states import NoteKind
from accounting.models import Project, ProjectProfile
from accounting.project_setup import answer_history, sql
from accounting.project_setup.accounts import web_rpc_base
from accounting.project_setup.changes import ConfigChange, described, fingerprint, master_url_problem, states, unseen
from accounting.project_setup.steps import StepRefused, account_key, is_signed, obstacles
from accounting.projects import signing_key
from accounting.wire.project_config import ProjectConfig, from_json
from accounting.wire.server_status import status_from_json
from portal.languages.sentences import sentence
from portal.models import User
from portal.templatetags.display import count

REPORTS_COUNT_FOR: Final = dt.timedelta(days=1)
"""How long a computer's last report counts."""
REFUSED_WITHIN: Final = dt.timedelta(days=7)
# The statements read a row for each computer and project, so they do not run for each view of the page.
_KEPT_SECS: Final = 60
_KEY: Final = "project-setup-reported"
_COUNTS: Final = {
    "results_ready_to_send": _("Tasks ready to send"),
    "results_in_progress": _("Tasks in progress"),
    "workunits_waiting_for_validation": _("Workunits waiting for validation"),
    "workunits_waiting_for_assimilation": _("Workunits waiting for assimilation"),
    "transitioner_backlog_hours": _("Transitioner backlog in hours"),
    "users_with_recent_credit": _("Volunteers with recent credit"),
    "hosts_with_recent_credit": _("Computers with recent credit"),
}
_REFUSED: Final = {
    NoteKind.INVALID.value: _("%(reports)s reports from %(computers)s computers: could not be read"),
    NoteKind.DROPPED.value: _(
        "%(reports)s reports from %(computers)s computers: more than the computer could have done"
    ),
    NoteKind.EC_ABOVE_TIME.value: _(
        "%(reports)s reports from %(computers)s computers: more credit than the run time allows"
    ),
}


def read_set_up(project: Project, user: User) -> dict[str, Any]:
    """Return the template values of one project's set-up page."""
    profile = ProjectProfile.objects.filter(project=project).first()
    config = from_json(profile.said) if profile is not None and profile.said else ProjectConfig()
    try:
        has_key, key_problem = bool(account_key(project, user)), ""
    except StepRefused as refusal:
        has_key, key_problem = False, str(refusal)
    base = web_rpc_base(project)
    return {
        "project": project,
        "profile": profile,
        "problem": sentence(profile.problem) if profile is not None else "",
        "tried_text": sentence(profile.tried_text) if profile is not None else "",
        "config": config,
        "rows": described(config) if profile is not None and profile.said else [],
        "states": states(config, status_from_json(profile.status) if profile is not None else None),
        "counts": _counts(profile),
        "history": answer_history.read(project),
        "master_url_problem": master_url_problem(project.master_url, config) if profile and profile.said else "",
        "changes": unseen(profile) if profile is not None else [],
        "shown": fingerprint(profile) if profile is not None else "",
        "is_signed": is_signed(project),
        "can_sign_here": signing_key.is_here(),
        # The project may have written the URL, and the command runs where the private key is.
        "url_in_shell": shlex.quote(project.master_url),
        "is_shared": project.account_mode == Project.Account.SHARED,
        "has_key": has_key,
        "key_problem": key_problem,
        "asked_at_url": base,
        "is_plain": base.startswith("http://"),
        "obstacles": obstacles(project),
    }


def _counts(profile: ProjectProfile | None) -> list[tuple[str, str]]:
    """Return the project's queue counts in words."""
    counts = status_from_json(profile.status).counts if profile is not None else {}
    return [(gettext(label), count(round(counts[name]))) for name, label in _COUNTS.items() if name in counts]


@dataclass(slots=True)
class ProjectTroubles:
    """A project on the page of problems. Counts are of computers that were in contact within a day."""

    project: Project
    profile: ProjectProfile | None
    changes: list[ConfigChange]
    # Problems that the project itself reports, or problems with its answer
    warnings: list[str]
    troubles: list[tuple[str, dt.datetime, str]]
    computers: int = 0
    failing: int = 0
    most_failures: int = 0
    without_work: int = 0
    last_good_at: dt.datetime | None = None
    refused: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str:
        """Why the project could not be asked, in the active language."""
        return sentence(self.profile.problem) if self.profile is not None else ""

    @property
    def tried_text(self) -> str:
        """The result of the last test, in the active language."""
        return sentence(self.profile.tried_text) if self.profile is not None else ""

    @property
    def needs_attention(self) -> bool:
        """Whether an operator should look at it."""
        profile = self.profile
        has_problem = profile is not None and (bool(profile.problem) or profile.tried_well is False)
        has_findings = self.warnings or self.troubles or self.changes or self.refused
        return bool(has_findings) or has_problem or 2 * self.failing > self.computers


def read_troubles(now: dt.datetime) -> list[ProjectTroubles]:
    """Read all projects, those that need attention first. Six statements, two of them at most once a minute."""
    lines = {}
    for project in Project.objects.select_related("profile").prefetch_related("troubles"):
        profile = getattr(project, "profile", None)
        lines[project.pk] = ProjectTroubles(
            project,
            profile,
            unseen(profile) if profile is not None else [],
            _warnings(project, profile),
            [
                (
                    trouble_text(Trouble(TroubleKind(row.kind), row.processor_type, row.since)),
                    row.since,
                    gettext("%(number)s of %(all)s volunteers") % {"number": row.volunteers, "all": row.of_volunteers},
                )
                for row in project.troubles.all()
            ],
        )
    reported, refused = _reported(now)
    for project_id, computers, failing, most, without_work, good_at in reported:
        if (line := lines.get(project_id)) is not None:
            line.computers, line.failing, line.most_failures, line.without_work = computers, failing, most, without_work
            line.last_good_at = dt.datetime.fromtimestamp(good_at, dt.UTC) if good_at is not None else None
    for project_id, kind, computers, reports in refused:
        if (line := lines.get(project_id)) is not None:
            line.refused.append(gettext(_REFUSED[kind]) % {"reports": reports, "computers": computers})
    return sorted(lines.values(), key=lambda line: (not line.needs_attention, line.project.name))


def _warnings(project: Project, profile: ProjectProfile | None) -> list[str]:
    if profile is None or not profile.said:
        return []
    config = from_json(profile.said)
    problem = master_url_problem(project.master_url, config)
    return [*states(config, status_from_json(profile.status)), *([problem] if problem else [])]


def _reported(now: dt.datetime) -> tuple[list[list[Any]], list[list[Any]]]:
    reports = cache.get(_KEY)
    if reports is None:
        reports = [
            _rows(sql.REPORTED, {"since": now - REPORTS_COUNT_FOR}),
            _rows(sql.REFUSED, {"first": (now - REFUSED_WITHIN).date()}),
        ]
        cache.set(_KEY, reports, _KEPT_SECS)
    reported, refused = reports
    return reported, refused


def _rows(statement: str, params: dict[str, Any]) -> list[list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return [list(row) for row in cursor.fetchall()]
