"""The table of this project's programs on a computer's page: only its owner sees it, and it is correct."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from credit.models import App, HostAppVersion
from portal.models import Host, User
from scheduler.lifecycle.host_programs import ProgramLine, errors_text, programs_section
from scheduler.models import HostRecord
from tests.support.credit_factories import make_app, make_version
from tests.support.page_text import text_of

pytestmark = pytest.mark.django_db

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


@pytest.fixture
def app(studio: Host) -> App:
    app = make_app()
    version = make_version(app, 102, plan_class="mt")
    HostAppVersion.objects.create(
        host=studio, app=app, app_version=version, error_rate=0.02, consecutive_valid=31, max_jobs_per_day=400,
        turnaround_n=3, turnaround_avg=7200.0,
    )  # fmt: skip
    HostAppVersion.objects.create(host=studio, app=app, processor_type="NVIDIA", error_rate=0.9, max_jobs_per_day=1)
    HostRecord.objects.create(
        host=studio, jobs_day=NOON.date(), jobs_of_day=[[app.pk, version.pk, "CPU", 7], [app.pk, 0, "NVIDIA", 1]]
    )
    return app


def test_each_program_has_a_line(app: App, studio: Host, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(2):
        section = programs_section(studio, NOON)
    assert section is not None
    assert section.rows == [
        ProgramLine("Alpine", "your own, for NVIDIA GPU", 1, 1, None, "many recently", 0),
        ProgramLine("Alpine", "1.02 (mt)", 7, 400, 7200.0, "hardly any", 31),
    ]


def test_yesterdays_jobs_are_not_todays(app: App, studio: Host) -> None:
    section = programs_section(studio, NOON + dt.timedelta(days=1))
    assert section is not None
    assert {line.njobs_today for line in section.rows if isinstance(line, ProgramLine)} == {0}


def test_a_computer_without_jobs_of_the_project_has_no_table(studio: Host) -> None:
    assert programs_section(studio, NOON) is None


def test_the_page_shows_it_to_the_owner_only(app: App, studio: Host, signed_in: Client, bob: User) -> None:
    HostRecord.objects.update(jobs_day=timezone.now().astimezone(dt.UTC).date())
    page = text_of(signed_in.get(f"/computers/{studio.pk}/"))
    assert "Alpine 1.02 (mt) 7 of 400" in page
    assert "hardly any 31" in page
    signed_in.force_login(bob)
    assert signed_in.get(f"/computers/{studio.pk}/").status_code == 404


@pytest.mark.parametrize(
    ("error_rate", "text"),
    [(0.0, "hardly any"), (0.05, "few, or too early to tell"), (0.1, "few, or too early to tell"),
     (0.2, "some recently"), (1.0, "many recently")],
)  # fmt: skip
def test_the_error_rate_in_words(error_rate: float, text: str) -> None:
    assert errors_text(error_rate) == text
