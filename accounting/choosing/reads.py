"""What pages read about the choice: which projects a volunteer's computers work for, and how much they did for each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.db.models import BigIntegerField, F, Sum
from django.db.models.functions import Cast

from accounting.engine.choice.facts import CPU, Choice, Computer, Volunteer, Wish, device_types
from accounting.engine.choice.rules import choose
from accounting.engine.choice.troubles import current_troubles
from accounting.models import AccountSettings, HostLedger, HostProject, Project, UserProject
from accounting.rpc.catalogue import facts_of, with_facts
from portal.models import Host, User
from portal.people.access import own_hosts


@dataclass(frozen=True, slots=True)
class Selection:
    """All projects by id, with the facts behind the choice, and the volunteer's own choices.

    ``fractions``: the share of the work of all of the volunteer's computers that each project gets, 0 to 1, if
    requested.
    """

    projects: dict[int, Project]
    rows: dict[int, UserProject]
    volunteer: Volunteer
    fractions: dict[int, float] = field(default_factory=dict)

    @property
    def is_by_hand(self) -> bool:
        """Whether computers get the projects that the volunteer picked."""
        return any(
            row.is_chosen and self.projects[id_].is_active and not self.lacks_account(id_)
            for id_, row in self.rows.items()
        )

    @property
    def is_without_effect(self) -> bool:
        """Whether projects are picked, but none of them currently takes computers of this volunteer."""
        return not self.is_by_hand and any(row.is_chosen for row in self.rows.values())

    def fraction(self, project_id: int) -> float | None:
        """Return the project's share of the computers' work, 0 to 1; None if they do not work for it."""
        return self.fractions.get(project_id)

    def lacks_account(self, project_id: int) -> bool:
        """Whether computers cannot be attached to it because there is no account at the project yet."""
        return _lacks_account(self.projects[project_id], self.rows.get(project_id))

    def choice_for(self, computer: Computer, now: dt.datetime) -> Choice:
        """Return the choice that the client RPC would make for the computer."""
        return choose([facts_of(project) for project in self.projects.values()], self.volunteer, computer, now)


def _lacks_account(project: Project, row: UserProject | None) -> bool:
    if project.is_served_here:
        return False
    if project.account_mode == Project.Account.SHARED:
        return not project.shared_account_key
    return row is None or not row.account_key


def read_selection(user: User) -> Selection:
    """Read the selection without the fractions; seven statements."""
    projects = {project.pk: project for project in with_facts(Project.objects.all())}
    rows = {row.project_id: row for row in UserProject.objects.filter(user=user)}
    keywords = AccountSettings.objects.filter(user=user).values_list("keywords_yes", "keywords_no").first()
    yes, no = keywords or ((), ())
    volunteer = Volunteer(
        {id_: Wish(row.is_chosen, row.resource_share) for id_, row in rows.items()},
        frozenset(yes),
        frozenset(no),
        frozenset(id_ for id_, project in projects.items() if _lacks_account(project, rows.get(id_))),
    )
    return Selection(projects, rows, volunteer)


def read_selection_of_all(user: User, now: dt.datetime) -> Selection:
    """Read the selection, with the fractions over all computers in use; nine statements.

    A volunteer without computers sees what a first one would get.
    """
    selection = read_selection(user)
    computers = [computer for _, computer in read_computers(user, now)] or [Computer(0)]
    sums: dict[int, float] = {}
    for computer in computers:
        for id_, part in fractions(selection.choice_for(computer, now).shares).items():
            sums[id_] = sums.get(id_, 0.0) + part / len(computers)
    return replace(selection, fractions=sums)


def read_computers(user: User, now: dt.datetime) -> list[tuple[Host, Computer]]:
    """Return the volunteer's computers in use as input for the choice, latest contact first; two statements."""
    hosts = list(own_hosts(user).filter(retired_at=None).select_related("ledger").order_by("-last_contact_at", "pk"))
    rows: dict[int, dict[int, HostProject]] = {}
    for row in HostProject.objects.filter(host__in=[host.pk for host in hosts]):
        rows.setdefault(row.host_id, {})[row.project_id] = row
    return [(host, computer_of(host, getattr(host, "ledger", None), rows.get(host.pk, {}), now)) for host in hosts]


def fractions(shares: Mapping[int, float]) -> dict[int, float]:
    """Return each share as a fraction of their sum, 0 to 1; equal fractions if all are 0."""
    total = sum(shares.values())
    return {id_: share / total if total else 1 / len(shares) for id_, share in shares.items()}


def computer_of(host: Host, ledger: HostLedger | None, rows: Mapping[int, HostProject], now: dt.datetime) -> Computer:
    """Build the choice's input from a computer and its rows by project."""
    excluded_types = ledger.excluded_types if ledger is not None else []
    return Computer(
        host.pk,
        tuple(type_ for type_ in (CPU, *device_types(host.coprocs)) if type_ not in excluded_types),
        host.platform_name,
        frozenset(id_ for id_, row in rows.items() if row.listed),
        frozenset(id_ for id_, row in rows.items() if row.excluded),
        {id_: frozenset(row.no_rsc) for id_, row in rows.items() if row.no_rsc},
        frozenset(id_ for id_, row in rows.items() if row.suspended or row.no_new_work),
        {
            id_: current_troubles(row.state["troubles"], row.state.get("at"), is_here=row.listed, now=now)
            for id_, row in rows.items()
            if row.state.get("troubles")
        },
    )


@dataclass(frozen=True, slots=True)
class ProjectWork:
    """The work of the volunteer's computers for a project: micro-credits, micro-seconds of run time, jobs."""

    credit: int
    run_time: int
    jobs: int


def read_parts(user: User) -> dict[int, ProjectWork]:
    """Read the volunteer's work by project from the ledger's totals; one statement."""
    rows = (
        HostProject.objects.filter(host__owner=user)
        .values("project_id")
        .annotate(
            credit=Cast(Sum(F("credited__0") + F("credited__1")), BigIntegerField()),
            run_time=Cast(Sum(F("credited__2") + F("credited__3")), BigIntegerField()),
            jobs=Cast(Sum(F("credited__4") + F("credited__5")), BigIntegerField()),
        )
    )
    return {row["project_id"]: ProjectWork(row["credit"], row["run_time"], row["jobs"]) for row in rows}
