"""The demo data of `make run`: projects, a volunteer with ninety days of history, and an operator."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from accounting.badges import award
from accounting.certificates import registry
from accounting.certificates.facts import CertificateRequest, read_scopes
from accounting.choosing import standings
from accounting.choosing.choices import choose_keywords, choose_projects
from accounting.engine.choice.facts import CPU
from accounting.ledger import rollup
from accounting.models import AccountSettings, Badge, Project
from accounting.projects import own_project, signing_key
from accounting.rpc import account_keys, catalogue
from accounting.simulation import fleet
from portal.models import User

DEMO_EMAIL: Final = "demo@example.org"
OPERATOR_EMAIL: Final = "operator@example.org"
PASSWORD: Final = "cobblestone"
HISTORY: Final = dt.timedelta(days=90)
OWN_PROJECT: Final = dt.timedelta(days=21)
"""For so long the demo volunteer's computers have worked for this site's own project."""
SEED: Final = 2026

LINUX, WINDOWS, MAC = "x86_64-pc-linux-gnu", "windows_x86_64", "arm64-apple-darwin"
OWN_PROGRAMS: Final = ((LINUX, CPU), (WINDOWS, CPU), (LINUX, "NVIDIA"), (WINDOWS, "NVIDIA"))
SUBJECTS: Final = (1, 9)
"""What the demo volunteer likes: astronomy, biology and medicine."""
CHOSEN: Final = ("Tidewater", "Quiet Sky Survey", "Fold Garden", "Slow Virus")
"""What the demo volunteer chose later, besides this site's own project."""
BADGES: Final = ("First task", "1,000 tasks", "10,000 credits", "100,000 credits", "First hour on a GPU", "100 days")
"""Of the badges that come with the site, those that the demo awards."""


@dataclass(frozen=True, slots=True)
class DemoProject:
    """A project that does not exist. ``keywords``: numbers and weights; ``gpus``: types that it has programs for."""

    name: str
    host: str
    summary: str
    description: str
    keywords: dict[int, float]
    platforms: tuple[str, ...] = (LINUX, WINDOWS, MAC)
    gpus: tuple[str, ...] = ()
    has_cpu: bool = True

    @property
    def url(self) -> str:
        return f"https://{self.host}/science/"

    @property
    def versions(self) -> set[tuple[str, str]]:
        types = (CPU,) * self.has_cpu + self.gpus
        return {(platform, type_) for platform in self.platforms for type_ in types}


PROJECTS: Final = (
    DemoProject(
        "Tidewater",
        "tidewater.example.org",
        "Models how estuaries change as the sea rises.",
        "Where rivers meet the sea, a hand's breadth of water decides over marsh, meadow or town. Each job runs one"
        " estuary through a hundred years of tides, storms and dredging.",
        {35: 0.6, 34: 0.4, 61: 1.0},
    ),
    DemoProject(
        "Quiet Sky Survey",
        "quietsky.example.org",
        "Searches radio recordings for pulsars that nobody has seen yet.",
        "A pulsar is a faint tick in years of noise. Each job takes two minutes of one telescope's recording and tries"
        " thousands of periods and distances on it.",
        {3: 1.0, 18: 1.0},
        gpus=("NVIDIA", "ATI"),
    ),
    DemoProject(
        "Fold Garden",
        "foldgarden.example.org",
        "Predicts how small proteins fold, for plant medicine.",
        "Plants make small proteins that keep fungi away. Each job folds one of them a few hundred times and keeps the"
        " shapes that hold.",
        {11: 0.7, 10: 0.3, 21: 1.0},
        gpus=("NVIDIA", "intel_gpu"),
    ),
    DemoProject(
        "Prime Orchard",
        "primeorchard.example.org",
        "Looks for large primes of rare forms.",
        "Each job tests one number with some million digits. Most are not prime; the few that are get the name of the"
        " volunteer whose computer found them.",
        {32: 1.0, 59: 1.0},
    ),
    DemoProject(
        "Lantern",
        "lantern.example.org",
        "Follows light through new materials for solar cells.",
        "Each job lets a few million photons loose in one crystal and counts what becomes of them.",
        {8: 0.8, 62: 0.2, 24: 1.0},
        gpus=("NVIDIA", "ATI", "intel_gpu"),
        has_cpu=False,
    ),
    DemoProject(
        "Slow Virus",
        "slowvirus.example.org",
        "Asks how viruses of trees and bees jump from host to host.",
        "Each job grows a family tree of a few thousand samples, and says how sure one can be of it.",
        {64: 0.7, 12: 0.3, 48: 1.0},
        platforms=(LINUX, WINDOWS),
    ),
)


def create_projects() -> None:
    """Some fictitious projects."""
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
                "shared_account_key": account_keys.encrypt(f"{number + 1}_{number + 1:032x}"),
            },
        )
        if created:
            for keyword, weight in demo.keywords.items():
                project.keywords.create(keyword=keyword, weight=weight)
            for platform, type_ in sorted(demo.versions):
                project.versions.create(platform=platform, processor_type=type_)
    catalogue.forget()


@dataclass(frozen=True, slots=True)
class Told:
    """The requests of the demo volunteer's computers, and what these did for this site's own project, by their ids."""

    calls: int
    own_work: dict[int, list[fleet.Stretch]]


def create_people(now: dt.datetime) -> Told:
    """An operator, and the demo volunteer, whose computers have reported for ninety days.

    At first the volunteer's subjects decide; for the last three weeks the computers work for projects that were chosen
    by hand, with this site's own among them, if there is one.
    """
    User.objects.create_superuser(OPERATOR_EMAIL, PASSWORD, name="Operator")
    volunteer = User.objects.create_user(DEMO_EMAIL, PASSWORD, name="Mara", created_at=now - HISTORY)
    AccountSettings.objects.create(user=volunteer)
    choose_keywords(volunteer, SUBJECTS, [])
    machines = fleet.assemble(DEMO_EMAIL, PASSWORD, SEED)
    calls = fleet.schedule(machines, now - HISTORY, now)
    begins = now - OWN_PROJECT
    own = _make_own_project()
    fleet.play(machines, [call for call in calls if call[0] < begins])
    hosts = dict(volunteer.hosts.values_list("domain_name", "pk"))
    if own is not None:
        for machine in machines:
            machine.computer.hostids[own.master_url] = hosts[machine.computer.name]
        Project.objects.filter(pk=own.pk).update(is_active=True)
        catalogue.forget()
        chosen = Project.objects.filter(name__in=CHOSEN) | Project.objects.filter(pk=own.pk)
        choose_projects(volunteer, dict.fromkeys(chosen.values_list("pk", flat=True)))
    fleet.play(machines, [call for call in calls if call[0] >= begins])
    rollup.roll_up(now, since=(now - HISTORY).date())
    standings.refresh(now)
    _give_proof(volunteer, now)
    url = own.master_url if own is not None else ""
    return Told(len(calls), {hosts[each.computer.name]: each.stretches.get(url, []) for each in machines})


def _give_proof(volunteer: User, now: dt.datetime) -> None:
    """Some badges that this site awards, and a certificate of the last thirty days."""
    Badge.objects.filter(title__in=BADGES).update(is_active=True, changed_at=now)
    award.award_due(now)
    today = now.astimezone(dt.UTC).date()
    shows = ("credit", "run_time", "tasks", "computers", "since", "badges")
    wanted = CertificateRequest(
        today - dt.timedelta(days=30), today - dt.timedelta(days=1), "all", shows, volunteer.name
    )
    registry.issue(volunteer, wanted, read_scopes(volunteer), now)


def _make_own_project() -> Project | None:
    """This site's own project, which takes no computers yet, with the programs of its demo app."""
    if not own_project.create_if_missing(is_active=False):
        return None
    project = Project.objects.get(master_url=settings.PROJECT_URL)
    for platform, type_ in OWN_PROGRAMS:
        project.versions.create(platform=platform, processor_type=type_)
    return project
