"""Changes of the owner's preferences during a run, applied to existing versions and jobs."""

from __future__ import annotations

from dataclasses import replace

from emulator.engine.client import Client
from emulator.engine.events.hardware import find_offers
from emulator.engine.scenario import ChangePreferences


def change_preferences(client: Client, event: ChangePreferences, now: float) -> None:
    """Makes the change. Jobs continue, at another pace if the CPU limit changes; servers observe the new RAM limit."""
    before = client.preferences
    client.set_preferences(replace(before, **event.changes()))
    if client.preferences.cpu_usage_percent != before.cpu_usage_percent:
        _follow_cpu_limit(client, now)
    for project in client.all_projects:
        for app in project.apps:
            for offer in app.all_offers:
                offer.too_large = app.app.working_set_bytes > client.ram_bytes_max
    find_offers(client)


def _follow_cpu_limit(client: Client, now: float) -> None:
    for job in client.running:
        client.settle(job, now)
    for project in client.all_projects:
        for app in project.apps:
            for offer in app.all_offers:
                offer.limit(client.cpu_limit)
        for job in project.jobs():
            job.pace = client.cpu_limit if job.cpus >= 1 else 1.0
    client.follow_rates(now)
