"""The demo data of `make run`: projects, a volunteer with ninety days of history, and an operator."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from accounting.choosing import standings
from accounting.engine.choice.facts import CPU
from accounting.ledger import rollup
from accounting.models import AccountSettings, Project
from accounting.projects import signing_key
from accounting.rpc import account_keys, catalogue
from accounting.simulation import fleet
from portal.models import User

DEMO_EMAIL: Final = "demo@example.org"
OPERATOR_EMAIL: Final = "operator@example.org"
PASSWORD: Final = "cobblestone"
HISTORY: Final = dt.timedelta(days=90)
SEED: Final = 2026

LINUX, WINDOWS, MAC = "x86_64-pc-linux-gnu", "windows_x86_64", "arm64-apple-darwin"


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
    """Some fictitious projects, and this site itself as a project to come."""
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
    Project.objects.get_or_create(
        master_url=settings.SITE_URL,
        defaults={
            "name": f"{settings.SITE_NAME} itself",
            "summary": "Jobs of this site's own; opens when its project server does.",
            "is_active": False,
            "colour": len(PROJECTS),
            "url_signature": signing_key.sign_url(settings.SITE_URL) or "",
        },
    )
    catalogue.forget()


def create_people(now: dt.datetime) -> int:
    """The demo volunteer, whose simulated computers have reported for ninety days; and an operator. RPCs made."""
    User.objects.create_superuser(OPERATOR_EMAIL, PASSWORD, name="Operator")
    volunteer = User.objects.create_user(DEMO_EMAIL, PASSWORD, name="Mara", created_at=now - HISTORY)
    AccountSettings.objects.create(user=volunteer)
    calls = fleet.run(fleet.assemble(DEMO_EMAIL, PASSWORD, SEED), now - HISTORY, now)
    rollup.roll_up(now, since=(now - HISTORY).date())
    standings.refresh(now)
    return calls
