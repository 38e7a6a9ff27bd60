"""The front page: what this is, sums of the whole site, and its science."""

from __future__ import annotations

import re

from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.models import HostProject, Project, ProjectDay, ProjectKeyword
from accounting.projects.public import DAYS_SHOWN
from portal.dashboard import record
from portal.models import User
from tests.support.accounting_factories import make_host
from tests.support.page_text import text_of


def page(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def test_the_front_page_says_what_this_is_what_it_costs_and_whether_it_is_safe(db: None, client: Client) -> None:
    landing_text = text_of(client.get("/"))
    for words in (
        "BOINC is free software that runs research tasks on your computer while you are not using it.",
        "What it costs The software and the account are free.",
        "Is it safe? BOINC is open source.",
    ):
        assert words in landing_text


def test_the_front_page_shows_sums_and_the_science(
    projects: list[Project], client: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    today = timezone.now()
    # 36 hours of CPU and 12 of GPUs
    ProjectDay.objects.create(
        project=projects[0], day=today.date(), cpu_time=36 * 3_600_000_000, gpu_time=12 * 3_600_000_000,
        njobs_success=7, rolled_up_at=today,
    )  # fmt: skip
    ProjectKeyword.objects.create(project=projects[0], keyword=3, weight=1)
    volunteers = [
        alice,
        *(User.objects.create_user(f"{name}@example.org") for name in ("bob", "carol", "dave", "erin")),
    ]
    for number, volunteer in enumerate(volunteers):
        host = make_host(volunteer, f"node-{number}", last=str(today.date()))
        HostProject.objects.create(host=host, project=projects[0])
    record.take_all(today)
    cache.clear()
    # Two of the public status, three of sums, two of projects
    with django_assert_num_queries(7):
        landing_text = page(client, "/")
    assert re.search(r"Hours contributed</dt><dd>48</dd>", landing_text) and re.search(
        r"Results</dt><dd>7</dd>", landing_text
    )
    assert re.search(r"Computers active this week</dt><dd>5</dd>", landing_text) and "node-" not in landing_text
    # A bar a day
    assert landing_text.count('<rect class="spark__') == DAYS_SHOWN
    assert re.search(r"<dt>Astronomy</dt>\s*<dd>.*?" + projects[0].name, landing_text, re.DOTALL)
    assert "Look around" not in landing_text
    with django_assert_num_queries(0):
        page(client, "/")
    # Four people are so few that sums would tell of single ones
    cache.clear()
    volunteers[-1].delete()
    assert "Hours contributed" not in page(client, "/") and "Astronomy" in page(client, "/")
