"""Reads: which projects a volunteer's computers work for, and what the volunteer's part at each is."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import BigIntegerField, F, Sum
from django.db.models.functions import Cast

from accounting.choosing import Wish, choose
from accounting.models import HostProject, Project, UserProject
from portal.models import User


@dataclass(frozen=True, slots=True)
class Selection:
    """All projects by id, the volunteer's word on them, and the shares that come of it (chosen projects
    only).
    """

    projects: dict[int, Project]
    rows: dict[int, UserProject]
    shares: dict[int, float]

    @property
    def is_by_hand(self) -> bool:
        """Whether the shares come from a choice of the volunteer's own."""
        return any(id_ in self.rows and self.rows[id_].is_chosen for id_ in self.shares)

    @property
    def is_without_effect(self) -> bool:
        """Whether there is a choice, but of projects that take no computers of this volunteer at present."""
        return not self.is_by_hand and any(row.is_chosen for row in self.rows.values())

    def fraction(self, project_id: int) -> float | None:
        """The project's part of the computers' work, 0 to 1; None for one that they do not work for."""
        total = sum(self.shares.values())
        if project_id not in self.shares:
            return None
        return self.shares[project_id] / total if total else 1 / len(self.shares)

    def lacks_account(self, project_id: int) -> bool:
        """Whether computers cannot be attached to it, as there is no account at the project yet."""
        project, row = self.projects[project_id], self.rows.get(project_id)
        if project.account_mode == Project.Account.SHARED:
            return not project.shared_account_key
        return row is None or not row.account_key


def read_selection(user: User) -> Selection:
    """Two statements.

    The same choice as the client RPC makes: only projects with an account can be chosen.
    """
    projects = {project.pk: project for project in Project.objects.all()}
    rows = {row.project_id: row for row in UserProject.objects.filter(user=user)}
    wishes = {id_: Wish(row.is_chosen, row.resource_share) for id_, row in rows.items()}
    selection = Selection(projects, rows, {})
    attachable = [project for id_, project in projects.items() if not selection.lacks_account(id_)]
    return Selection(projects, rows, choose(attachable, wishes))


@dataclass(frozen=True, slots=True)
class Part:
    """What the volunteer's computers gave a project: micro-credits, micro-seconds of run time, jobs."""

    credit: int
    run_time: int
    jobs: int


def read_parts(user: User) -> dict[int, Part]:
    """The volunteer's part by project, from the ledger's totals; one statement."""
    rows = (
        HostProject.objects.filter(host__owner=user)
        .values("project_id")
        .annotate(
            credit=Cast(Sum(F("credited__0") + F("credited__1")), BigIntegerField()),
            run_time=Cast(Sum(F("credited__2") + F("credited__3")), BigIntegerField()),
            jobs=Cast(Sum(F("credited__4") + F("credited__5")), BigIntegerField()),
        )
    )
    return {row["project_id"]: Part(row["credit"], row["run_time"], row["jobs"]) for row in rows}
