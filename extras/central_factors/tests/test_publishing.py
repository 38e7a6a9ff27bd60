"""Averages that a central server publishes, and the versions that take them."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from credit.engine.cross_project import Factor
from credit.models import App, AppVersion, RuleSet
from credit.statistics.feeder import feed
from extras.central_factors.candidates import candidates
from extras.central_factors.models import FactorList
from extras.central_factors.wire import parse_factors
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import make_app, make_version
from tests.support.page_text import text_of
from tests.support.settings_changes import last_change, save, undo
from tests.support.validator_runs import done, validate, volunteers
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db

FACTORS = [
    Factor("NVIDIA", None, 0.3, 900.0, 3, 7),
    Factor("NVIDIA", "cuda", 0.25, 400.0, 2, 3),
]
GPU: dict[str, Any] = {"processor_type": "NVIDIA", "gpu_usage": 1}


def publish(factors: list[Factor], url: str = "") -> None:
    now = timezone.now()
    rows = [asdict(factor) for factor in factors]
    FactorList.objects.create(url=url, factors=rows, asked_at=now, read_at=now)


@pytest.fixture
def known(settings: Settings) -> None:
    settings.CENTRAL_SERVER = "https://central.example.org/project/"
    publish(FACTORS, settings.CENTRAL_SERVER)


@pytest.fixture
def lonely(known: None) -> AppVersion:
    """The only version of an app; without others it has the factor 1."""
    version = make_version(make_app("comets"), plan_class="cuda", pfc_n=200, pfc_avg=12.5, **GPU)
    feed(timezone.now())
    version.refresh_from_db()
    assert version.pfc_scale == 1
    return version


def found() -> dict[str, float | None]:
    return {
        candidate.version.plan_class: candidate.found.scale if candidate.found else None
        for candidate in candidates(timezone.now())
    }


def test_averages_are_published(settings: Settings) -> None:
    settings.CENTRAL_PROJECTS = ["https://example.org/project/"]
    assert Client().get("/project/version_factors.xml").status_code == 404
    publish(FACTORS)
    answer = Client().get("/project/version_factors.xml")
    assert answer["Content-Type"] == "text/xml; charset=utf-8"
    assert parse_factors(answer.content) == FACTORS
    settings.CENTRAL_PROJECTS = []
    assert Client().get("/project/version_factors.xml").status_code == 404


def test_versions_for_gpus_without_a_counterpart_are_found(known: None) -> None:
    alone = make_app("alone")
    for plan_class in ("cuda", "other"):
        make_version(alone, plan_class=plan_class, **GPU)
    make_version(alone, plan_class="opencl_ati", processor_type="ATI", gpu_usage=1)
    make_version(alone, plan_class="old", is_deprecated=True, **GPU)
    beside = make_app("beside")
    make_version(beside, pfc_n=100, pfc_avg=2)
    make_version(beside, plan_class="beside", **GPU)
    soon = make_app("soon")
    make_version(soon, pfc_n=99, pfc_avg=2)
    make_version(soon, plan_class="soon", **GPU)
    left_out: list[dict[str, Any]] = [
        {"is_deprecated": True},
        {"rule_set": RuleSet.DEPLOYED},
        {"credit_system": "peak_flops"},
    ]
    for number, fields in enumerate(left_out):
        make_version(make_app(f"none{number}", **fields), plan_class="none", **GPU)
    # Of the plan class, else of the type; a CPU version counts from its hundredth sample on.
    assert found() == {"cuda": 0.25, "opencl_ati": None, "other": 0.3, "soon": 0.3}


def test_apps_are_read_in_three_statements(known: None) -> None:
    for number in range(3):
        make_version(make_app(f"app{number}"), plan_class="cuda", **GPU)
    # And one for the factors
    assert statements(lambda: candidates(timezone.now())) == 4


def test_old_averages_are_not_offered(lonely: AppVersion) -> None:
    FactorList.objects.update(read_at=timezone.now() - dt.timedelta(days=31))
    assert found() == {"cuda": None}


def test_the_page_shows_what_a_factor_would_change_sets_it_and_undoes_it(
    lonely: AppVersion, admin_client: Client
) -> None:
    url = reverse("admin:version_factors")
    text = text_of(admin_client.get(url))
    # 0.25 instead of 1
    assert (
        "0.25 for plan class cuda, 2 projects" in text
        and "× 0.25" in text
        and "From the central server https://central." in text
    )
    step = admin_client.post(url, {"version": lonely.pk})["Location"]
    assert "Cross-project factor" in (shown := text_of(admin_client.get(step))) and "Preview" in shown
    assert not AppVersion.objects.filter(cross_project_scale__isnull=False).exists()
    assert save(admin_client, step, "as elsewhere").status_code == 302
    feed(timezone.now())
    lonely.refresh_from_db()
    assert (lonely.cross_project_scale, lonely.pfc_scale, lonely.is_scale_received) == (0.25, 0.25, True)
    # 0.25 × 12.5
    assert App.objects.get().min_avg_pfc == about(3.125)
    assert "Set. Undo in the history" in text_of(admin_client.get(url))
    assert admin_client.post(url, {"version": lonely.pk})["Location"] == url
    assert undo(admin_client, last_change()).status_code == 302
    feed(timezone.now())
    lonely.refresh_from_db()
    assert (lonely.cross_project_scale, lonely.pfc_scale, lonely.is_scale_received) == (None, 1, False)


def test_the_feeder_does_not_overwrite_it_until_a_version_for_cpus_counts(lonely: AppVersion) -> None:
    AppVersion.objects.update(cross_project_scale=0.25)
    for _ in range(3):
        feed(timezone.now())
        lonely.refresh_from_db()
        assert lonely.pfc_scale == 0.25
    make_version(lonely.app, pfc_n=100, pfc_avg=5)
    feed(timezone.now())
    lonely.refresh_from_db()
    # 5 / 12.5
    assert (lonely.pfc_scale, lonely.is_scale_received) == (0.4, False)
    (row,) = candidates(timezone.now())
    assert not row.is_in_force and not row.can_be_set


def run(*args: str) -> str:
    out = StringIO()
    call_command("cross_project_factors", *args, stdout=out)
    return out.getvalue()


def test_the_command_lists_sets_and_undoes(lonely: AppVersion) -> None:
    assert (
        "0.25, of its plan class over 2 project(s). The factor now: 1. A job would bring 0.25 times the credit."
        in run()
    )
    assert AppVersion.objects.get().cross_project_scale is None
    with pytest.raises(CommandError, match="No factor can be set for: 999"):
        run("--set", "999")
    assert f"{lonely.pk}: " in run("--set", "--reason", "agreed")
    assert AppVersion.objects.get().cross_project_scale == 0.25
    assert (last_change().reason, last_change().actor) == ("agreed", None)
    assert "Nothing to set." in run("--set") and "It is set." in run()
    assert "0.25 → None" in run("--undo", str(lonely.pk))
    assert AppVersion.objects.get().cross_project_scale is None
    for pk in ("999", str(make_version(make_app("new")).pk)):
        with pytest.raises(CommandError):
            run("--undo", pk)


def test_undoing_again_goes_further_back_and_does_not_set_again_what_was_undone(lonely: AppVersion) -> None:
    run("--set")
    averages = FactorList.objects.get()
    averages.factors[1]["scale"] = 0.5
    averages.save()
    run("--set")
    assert "0.5 → 0.25" in run("--undo", str(lonely.pk))
    assert "0.25 → None" in run("--undo", str(lonely.pk))
    with pytest.raises(CommandError, match="No change of this version's factor is left to undo"):
        run("--undo", str(lonely.pk))


def test_a_task_says_where_its_factor_comes_from(lonely: AppVersion, admin_client: Client) -> None:
    AppVersion.objects.update(cross_project_scale=0.25)
    feed(timezone.now())
    workunit = done(lonely.app, lonely, *volunteers(1))
    validate(lonely.app)
    result = workunit.results.get()
    # 3,000 s at 4 GFLOPS, × 0.25
    assert (result.version_scale, result.claimed_pfc) == (0.25, about(3e12))
    text = text_of(admin_client.get(reverse("task", args=[result.pk])))
    assert "The average for such versions at other projects, because this app has no CPU version" in text
