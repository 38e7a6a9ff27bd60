"""Chooses the versions of apps for a computer, and says why apps are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from scheduler.engine.choice import keywords, versions
from scheduler.engine.choice.selection import Selection
from scheduler.engine.choice.versions import Choices
from scheduler.engine.facts import AppFacts, RecordKey, Version
from scheduler.engine.hr_classes import Redundancy
from scheduler.engine.lanes import ANY_VERSION, Requirement
from scheduler.engine.project_preferences import ProjectPreferences
from scheduler.engine.reasons import Reason
from scheduler.engine.request import SchedulerRequest
from scheduler.programs.catalogue import Catalogue
from scheduler.rpc.choice.computer import ceilings

CHOSEN_SCORE: Final = 10_000
"""Exceeds any app's number of keywords."""


@dataclass(slots=True)
class VersionChooser:
    """Chooses versions for a work request for the ``wanted_types``.

    ``requester``: user 0, who tests nothing, if the volunteer wants no tests. ``inherited``: for each record that the
    computer lacks, the version whose statistics it takes over. ``scores``: how much the volunteer likes each app.
    """

    request: SchedulerRequest
    catalogue: Catalogue
    selection: Selection
    wanted_types: list[str]
    user_id: int
    preferences: ProjectPreferences
    requester: versions.Requester
    inherited: dict[RecordKey, int] = field(default_factory=dict)
    scores: dict[int, int] = field(default_factory=dict)

    def choose_all(self) -> dict[int, Choices]:
        """Choose the best versions of each app, by app and processor type.

        Records why there are none, and the scores.
        """
        chosen: dict[int, Choices] = {}
        any_version = any_paused = False
        for app in self.catalogue.apps.values():
            if app.testers is not None and self.requester.user_id not in app.testers:
                continue
            usable = self._usable(app)
            has_version = bool(usable) or self._has_own(app)
            if app.is_paused:
                any_paused = any_paused or has_version
            elif has_version or self.preferences.may_have_app(app.id):
                score = keywords.score(app, self.request)
                barrier = self._barrier(app, score, has_version=has_version)
                any_version = any_version or has_version or barrier is not None
                choices, reasons = self._choose(app, usable) if barrier is None else ({}, {barrier})
                self.selection.reasons |= reasons
                if choices:
                    chosen[app.id] = choices
                    # A choice made for this project outweighs general interests.
                    self.scores[app.id] = (score or 0) + CHOSEN_SCORE * self.preferences.wants_app(app.id)
        if not any_version:
            lacking = Reason.NO_CLIENT_VERSION if self.request.is_anonymous else Reason.NO_APP
            self.selection.reasons.add(Reason.PAUSED if any_paused else lacking)
        return chosen

    def choose(self, app: AppFacts, requirement: Requirement) -> Choices:
        """Choose the best of the versions that a job asks for or is bound to."""
        return self._choose(app, self._usable(app, requirement), requirement)[0]

    def inherit(self, version: Version) -> None:
        """Give the computer a record of a version that is new to it, with the statistics of an older one."""
        older = versions.inherit(self.selection.records, version, self.catalogue.versions_by_app[version.app_id])
        if older:
            self.inherited[RecordKey(version.app_id, version.id, version.processor_type)] = older

    def _choose(
        self, app: AppFacts, usable: list[Version], requirement: Requirement = ANY_VERSION
    ) -> tuple[Choices, set[Reason]]:
        """Choose the best versions of the app for each needed type; also return why others were left out."""
        selection, request = self.selection, self.request
        common = selection.computer, self.wanted_types, selection.records, selection.today, ceilings()
        if request.is_anonymous:
            if requirement.version_id:
                return {}, set()
            return versions.choose_own(app, request.client_versions, *common, requirement.version_num)
        for version in usable:
            self.inherit(version)
        seed = f"{self.user_id}:{request.host.host_cpid}:{request.rpc_seqno}"
        return versions.choose(app, usable, self.catalogue.plan_classes, *common, seed)

    def _usable(self, app: AppFacts, requirement: Requirement = ANY_VERSION) -> list[Version]:
        """Return the project's versions that the client can run; none if it has its own (anonymous platform)."""
        if self.request.is_anonymous:
            return []
        return versions.newest(self.catalogue.versions_by_app.get(app.id, ()), self.requester, requirement)

    def _has_own(self, app: AppFacts) -> bool:
        """Whether the client has its own version of the app."""
        return self.request.is_anonymous and any(own.app_name == app.name for own in self.request.client_versions)

    def _needs_other_client(self, app: AppFacts) -> bool:
        """Whether there are versions for the computer, but only for other versions of BOINC."""
        app_versions = self.catalogue.versions_by_app.get(app.id, ())
        return not self.request.is_anonymous and any(self.requester.can_run(version) for version in app_versions)

    def _barrier(self, app: AppFacts, score: int | None, *, has_version: bool) -> Reason | None:
        """Return why the computer gets no jobs of the app, whatever its versions need. ``score``: `keywords.score`."""
        if not self.preferences.may_have_app(app.id):
            return Reason.NOT_CHOSEN
        if score is None:
            return Reason.KEYWORDS
        if app.is_non_cpu_intensive and self.selection.is_busy_with(app):
            return Reason.IN_PROGRESS
        if app.redundancy != Redundancy.OFF and not self.selection.computer.hr_class(app.redundancy):
            return Reason.UNKNOWN_CLASS if has_version else None
        if app.is_homogeneous_version and self.request.is_anonymous:
            return Reason.OTHER_VERSION
        if not has_version and self._needs_other_client(app):
            return Reason.OTHER_CLIENT
        return None
