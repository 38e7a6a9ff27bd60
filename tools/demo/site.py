"""The demo for a private installation: people, projects, and the project's own results."""

from __future__ import annotations

from dataclasses import astuple

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import OutputWrapper
from django.utils import timezone

from portal.dev.demo_login import OPERATOR, VOLUNTEER
from portal.extras import apps_in_use
from portal.models import User
from tools.demo import data as demo_data


def make(stdout: OutputWrapper) -> None:
    """Make the demo volunteer, an operator, projects and ninety days of history."""
    stdout.write("Making a demo volunteer with ninety days of history…")
    demo_data.create_projects()
    people = demo_data.create_people(timezone.now())
    for email in (VOLUNTEER.email, OPERATOR.email):
        user = User.objects.get(email=email)
        EmailAddress.objects.get_or_create(user=user, email=email, defaults={"verified": True, "primary": True})
    stdout.write(f"{people.calls} requests of simulated computers were answered.")
    if "project" in settings.ROOMS:
        work = {host_id: [astuple(stretch) for stretch in did] for host_id, did in people.own_work.items()}
        call_command("simulate_history", VOLUNTEER.email, work=work, stdout=stdout)
    for app in apps_in_use():
        app.make_demo(User.objects.get(email=VOLUNTEER.email), timezone.now())
