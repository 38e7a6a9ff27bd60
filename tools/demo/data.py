"""The demo data of `make run`: projects, a volunteer with ninety days of history, and an operator."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from accounting.choosing import standings
from accounting.choosing.choices import choose_keywords, choose_projects
from accounting.engine.choice.facts import CPU
from accounting.ledger import rollup
from accounting.models import AccountSettings, Project
from accounting.projects import own_project, signing_key
from accounting.projects.demo_projects import LINUX, PROJECTS, WINDOWS
from accounting.rpc import account_keys, catalogue
from portal.dev.demo_login import OPERATOR, VOLUNTEER
from portal.models import User
from tools.demo.statistics import DemoStatistics
from tools.simulation import fleet

HISTORY: Final = dt.timedelta(days=90)
OWN_PROJECT: Final = dt.timedelta(days=21)
"""How long the demo volunteer's computers have worked for this site's own project."""
EXPORTED_AT: Final = dt.timedelta(hours=2)
"""The hour after midnight, UTC, when projects export their statistics."""
SEED: Final = 2026

OWN_PROGRAMS: Final = ((LINUX, CPU), (WINDOWS, CPU), (LINUX, "NVIDIA"), (WINDOWS, "NVIDIA"))
SUBJECTS: Final = (1, 9)
"""The demo volunteer's likes: astronomy, biology and medicine."""
CHOSEN: Final = ("Tidewater", "Quiet Sky Survey", "Fold Garden", "Slow Virus")
"""The demo volunteer's later choice, besides this site's own project."""


def create_projects() -> None:
    """Create some fictitious projects."""
    for number, demo in enumerate(PROJECTS):
        project, created = Project.objects.get_or_create(
            master_url=demo.url,
            defaults={
                "name": demo.name,
                "web_url": f"https://{demo.host}/",
                "summary": demo.summary,
                "description": demo.description,
                "colour": number,
                "url_signature": signing_key.sign_url(demo.url) or "",
            },
        )
        if created:
            project.shared_account_key = account_keys.seal_shared(project, f"{number + 1}_{number + 1:032x}")
            project.save(update_fields=["shared_account_key"])
            for keyword, weight in demo.keywords.items():
                project.keywords.create(keyword=keyword, weight=weight)
            for platform, type_ in sorted(demo.versions):
                project.versions.create(platform=platform, processor_type=type_)
    catalogue.forget()


@dataclass(frozen=True, slots=True)
class DemoPeople:
    """The requests of the demo volunteer's computers, and their work for this site's own project, by their ids."""

    calls: int
    own_work: dict[int, list[fleet.ProjectWork]]


def create_people(now: dt.datetime) -> DemoPeople:
    """Create an operator, and the demo volunteer, whose computers have reported for ninety days.

    At first the volunteer's subjects decide; for the last three weeks the computers work for projects that were chosen
    by hand, including this site's own, if there is one.
    """
    User.objects.create_superuser(*OPERATOR, name="Operator")
    volunteer = User.objects.create_user(*VOLUNTEER, name="Mara", created_at=now - HISTORY)
    AccountSettings.objects.create(user=volunteer)
    choose_keywords(volunteer, SUBJECTS, [])
    machines = fleet.assemble(*VOLUNTEER, SEED)
    calls = fleet.schedule(machines, now - HISTORY, now)
    begins = dt.datetime.combine((now - OWN_PROJECT).astimezone(dt.UTC).date(), dt.time(), dt.UTC) + EXPORTED_AT
    own = _make_own_project()
    statistics = DemoStatistics(machines)
    _play(machines, [call for call in calls if call[0] < begins], statistics)
    hosts = dict(volunteer.hosts.values_list("domain_name", "pk"))
    if own is not None:
        for machine in machines:
            machine.computer.hostids[own.master_url] = hosts[machine.computer.name]
        Project.objects.filter(pk=own.pk).update(is_active=True)
        catalogue.forget()
        chosen = Project.objects.filter(name__in=CHOSEN) | Project.objects.filter(pk=own.pk)
        choose_projects(volunteer, dict.fromkeys(chosen.values_list("pk", flat=True)))
    _play(machines, [call for call in calls if call[0] >= begins], statistics)
    rollup.roll_up(now, since=(now - HISTORY).date())
    standings.refresh(now)
    url = own.master_url if own is not None else ""
    return DemoPeople(
        len(calls), {hosts[machine.computer.name]: machine.stretches.get(url, []) for machine in machines}
    )


def _play(machines: Sequence[fleet.SimulatedHost], calls: Sequence[fleet.Call], statistics: DemoStatistics) -> None:
    """Let the computers work and report, and let two projects publish each night what they have granted."""
    for day, of_day in groupby(calls, lambda call: (call[0] - EXPORTED_AT).astimezone(dt.UTC).date()):
        statistics.publish(dt.datetime.combine(day, dt.time(), dt.UTC) + EXPORTED_AT)
        fleet.play(machines, list(of_day))


def _make_own_project() -> Project | None:
    """Create this site's own project, which takes no computers yet, with the programs of its demo app."""
    if not own_project.create_if_missing(is_active=False):
        return None
    project = Project.objects.get(is_own=True)
    for platform, type_ in OWN_PROGRAMS:
        project.versions.create(platform=platform, processor_type=type_)
    return project
