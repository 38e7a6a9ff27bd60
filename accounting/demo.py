"""What `make run` comes with: projects, a demo volunteer with ninety days of history, and an operator."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.conf import settings

from accounting import catalogue, fleet, keys, rollup, vault
from accounting.models import AccountSettings, Project
from portal.models import User

DEMO_EMAIL: Final = "demo@example.org"
OPERATOR_EMAIL: Final = "operator@example.org"
PASSWORD: Final = "cobblestone"
HISTORY: Final = dt.timedelta(days=90)
SEED: Final = 2026

# Name, host, what it does; none of them exists.
PROJECTS: Final = (
    ("Tidewater", "tidewater.example.org", "Models how estuaries change as the sea rises."),
    ("Quiet Sky Survey", "quietsky.example.org", "Searches radio recordings for pulsars that nobody has seen yet."),
    ("Fold Garden", "foldgarden.example.org", "Predicts how small proteins fold, for plant medicine."),
    ("Prime Orchard", "primeorchard.example.org", "Looks for large primes of rare forms."),
)


def create_projects() -> None:
    """Some fictitious projects, and this site itself as a project to come."""
    for number, (name, host, summary) in enumerate(PROJECTS):
        url = f"https://{host}/science/"
        Project.objects.get_or_create(
            master_url=url,
            defaults={
                "name": name,
                "web_url": f"https://{host}/",
                "summary": summary,
                "colour": number,
                "url_signature": keys.sign_url(url) or "",
                "shared_account_key": vault.encrypt(f"{number + 1}_{number + 1:032x}"),
            },
        )
    Project.objects.get_or_create(
        master_url=settings.SITE_URL,
        defaults={
            "name": f"{settings.SITE_NAME} itself",
            "summary": "Jobs of this site's own; opens when its project server does.",
            "is_active": False,
            "colour": len(PROJECTS),
            "url_signature": keys.sign_url(settings.SITE_URL) or "",
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
    return calls
