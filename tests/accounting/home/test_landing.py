"""The front page: sums of the whole site, its science, and few bytes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.models import Project, ProjectDay, ProjectKeyword

LANDING_BYTES = 60_000
"""Of the page and what it loads, compressed."""


def page(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def test_the_front_page_shows_sums_and_the_science(
    projects: list[Project], client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    today = timezone.now()
    # 36 hours of CPU and 12 of GPUs
    ProjectDay.objects.create(
        project=projects[0], day=today.date(), cpu_time=36 * 3_600_000_000, gpu_time=12 * 3_600_000_000,
        njobs_success=7, rolled_up_at=today,
    )  # fmt: skip
    ProjectKeyword.objects.create(project=projects[0], keyword=3, weight=1)
    cache.clear()
    # Two of the public status, two of sums, two of projects
    with django_assert_num_queries(6):
        said = page(client, "/")
    assert re.search(r"Hours contributed</dt><dd>48</dd>", said) and re.search(r"Results</dt><dd>7</dd>", said)
    assert re.search(r"<dt>Astronomy</dt>\s*<dd>.*?" + projects[0].name, said, re.DOTALL)
    assert "Look around" not in said
    with django_assert_num_queries(0):
        page(client, "/")


def test_the_front_page_is_light(projects: list[Project], client: Client) -> None:
    said = page(client, "/")
    files = set(re.findall(r'(?:href|src)="/static/([^"#?]+)', said))
    sizes = {"the page": len(gzip.compress(said.encode()))}
    for name in files:
        path = finders.find(name)
        assert path is not None, name
        sizes[name] = len(gzip.compress(Path(path).read_bytes()))
    assert sum(sizes.values()) < LANDING_BYTES, sizes
