"""The admin of apps and versions: settings are explained and checked; state is read-only and never overwritten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db.models import F
from django.db.models.signals import pre_save
from django.test import Client
from pytest_django import Settings

from credit.engine.rules import LIMITS
from credit.models import App, AppVersion, CreditSystem, ProcessorType
from tests.support.credit_factories import make_version
from tests.support.settings_changes import STEP, save

pytestmark = pytest.mark.django_db


def fields_of(client: Client, path: str) -> dict[str, Any]:
    """What the form on a page would send as it stands."""
    response = client.get(path)
    assert response.status_code == 200
    form = response.context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def path_of(row: App | AppVersion) -> str:
    return f"/admin/credit/{row._meta.model_name}/{row.pk}/change/"


def change(client: Client, row: App | AppVersion, **fields: Any) -> dict[str, list[str]]:
    """Send the form with other values; its errors by field."""
    return send(client, row, {**fields_of(client, path_of(row)), **fields})


def send(client: Client, row: App | AppVersion, fields: dict[str, Any]) -> dict[str, list[str]]:
    response = client.post(path_of(row), fields)
    if response.status_code == 302:
        if response["Location"].startswith(STEP):
            assert save(client, response["Location"]).status_code == 302
        return {}
    assert response.status_code == 200
    return dict(response.context["adminform"].form.errors)


def test_each_limit_of_the_rules_is_checked_against_the_engines_own(desk: Client, app: App) -> None:
    sent = fields_of(desk, path_of(app))
    too_low = {name: low / 2 if low < 1 else 0 for name, (low, _) in LIMITS.items()}
    too_high = {name: high * 2 for name, (_, high) in LIMITS.items()}
    for wrong in (too_low, too_high, dict.fromkeys(LIMITS, "nan")):
        assert LIMITS.keys() <= send(desk, app, {**sent, **wrong}).keys()
    for end in (0, 1):
        right = {name: limits[end] for name, limits in LIMITS.items()}
        assert change(desk, app, **{name: f"{value:.15g}" for name, value in right.items()}) == {}
        app.refresh_from_db()
        assert {name: getattr(app, name) for name in LIMITS} == right


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"credit_system": CreditSystem.FIXED}, "fixed_credit"),
        ({"comparison": "custom"}, "comparison_function"),
        ({"comparison_function": "nowhere.at_all"}, "comparison_function"),
        ({"comparison_function": "no module"}, "comparison_function"),
        # Registered, and of no use
        ({"comparison_function": "nowhere.registered"}, "comparison_function"),
        ({"trickle_function": "credit.validator.comparison.MAX_FILES"}, "trickle_function"),
        # Functions of the server that nobody registered
        ({"comparison_function": "os.system"}, "comparison_function"),
        ({"assimilation_function": "os.system"}, "assimilation_function"),
        ({"trickle_function": "os.system"}, "trickle_function"),
        ({"comparison_tolerance": "2"}, "comparison_tolerance"),
        ({"weight": "nan"}, "weight"),
        ({"actual_flops_scale": "0"}, "actual_flops_scale"),
        ({"max_jobs_per_day_init": "0"}, "max_jobs_per_day_init"),
        ({"max_jobs_in_progress": "0"}, "max_jobs_in_progress"),
        ({"max_gpu_jobs_in_progress": "10001"}, "max_gpu_jobs_in_progress"),
        ({"max_jobs_per_rpc": "501"}, "max_jobs_per_rpc"),
        ({"name": "../x"}, "name"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_the_field_named(
    fields: dict[str, Any], wrong: str, desk: Client, app: App, settings: Settings
) -> None:
    settings.APP_FUNCTIONS = ["nowhere.registered", "credit.validator.comparison.MAX_FILES"]
    assert wrong in change(desk, app, **fields)
    app.refresh_from_db()
    assert app.credit_system == CreditSystem.CREDITNEW


def test_an_app_takes_a_registered_function_and_the_sites_own(desk: Client, app: App, settings: Settings) -> None:
    settings.APP_FUNCTIONS = ["credit.validator.comparison.to_the_bit"]
    chosen = {
        "comparison_function": "credit.validator.comparison.to_the_bit",
        "trickle_function": "scheduler.rpc.trickles.grant_partial_credit",
    }
    assert change(desk, app, **chosen) == {}
    app.refresh_from_db()
    assert {name: getattr(app, name) for name in chosen} == chosen


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a b", "Use only letters (A to Z, a to z), digits, _ . and -, and begin with a letter or digit."),
        ("a" * 65, "Ensure this value has at most 64 characters (it has 65)."),
    ],
)
def test_a_name_that_cannot_be_says_what_may(name: str, said: str, desk: Client, app: App) -> None:
    assert change(desk, app, name=name) == {"name": [said]}


def test_every_setting_is_explained(desk: Client, app: App) -> None:
    unexplained = set()
    for row in (app, make_version(app)):
        response = desk.get(f"/admin/credit/{row._meta.model_name}/{row.pk}/change/")
        form = response.context["adminform"].form
        unexplained |= {name for name, field in form.fields.items() if not field.help_text}
    assert unexplained <= {"name", "user_friendly_name", "description", "is_deprecated", "seen"}


def test_state_is_shown_and_cannot_be_sent(desk: Client, app: App) -> None:
    version = make_version(app, pfc_n=123, pfc_avg=1.5, pfc_scale=0.75)
    App.objects.update(min_avg_pfc=2.25)
    page = desk.get(f"/admin/credit/app/{app.pk}/change/").content.decode()
    assert "2.25" in page
    assert f'href="/apps/{app.name}/"' in page
    assert re.search(r'name="min_avg_pfc"', page) is None
    assert change(desk, version, pfc_n=9, pfc_scale=9, is_deprecated="on") == {}
    version.refresh_from_db()
    assert (version.is_deprecated, version.pfc_n, version.pfc_scale) == (True, 123, 0.75)


@pytest.fixture
def moving() -> Iterator[None]:
    """A validator and a feeder whose work is committed between the form's reading a row and its saving it."""

    def move(sender: type[App | AppVersion], instance: App | AppVersion, **_: Any) -> None:
        if sender is AppVersion:
            AppVersion.objects.filter(pk=instance.pk).update(pfc_n=F("pfc_n") + 1, pfc_avg=3.0, pfc_scale=0.5)
        else:
            App.objects.filter(pk=instance.pk).update(min_avg_pfc=7.0)

    for model in (App, AppVersion):
        pre_save.connect(move, sender=model, weak=False)
    yield
    for model in (App, AppVersion):
        assert pre_save.disconnect(move, sender=model)


def test_saving_a_setting_undoes_nothing_that_validators_and_feeder_wrote(desk: Client, app: App, moving: None) -> None:
    version = AppVersion.objects.get(pk=make_version(app, pfc_n=123, pfc_avg=1.5).pk)
    AppVersion.objects.update(pfc_n=123)
    assert change(desk, version, is_deprecated="on") == {}
    version.refresh_from_db()
    assert (version.is_deprecated, version.pfc_n, version.pfc_avg, version.pfc_scale) == (True, 124, 3.0, 0.5)
    assert change(desk, app, host_scale_check="on") == {}
    app.refresh_from_db()
    assert (app.host_scale_check, app.min_avg_pfc) == (True, 7.0)


@pytest.mark.parametrize(
    ("type_", "usage"), [(ProcessorType.CPU, "1"), (ProcessorType.NVIDIA, "0"), (ProcessorType.NVIDIA, "65")]
)
def test_a_versions_use_of_gpus_has_to_fit_its_type(type_: str, usage: str, desk: Client, app: App) -> None:
    version = make_version(app, processor_type=type_, gpu_usage=0 if type_ == ProcessorType.CPU else 1)
    assert "gpu_usage" in change(desk, version, gpu_usage=usage)


def test_apps_are_added_in_the_admin_and_neither_apps_nor_versions_deleted(desk: Client, app: App) -> None:
    sent = {**fields_of(desk, "/admin/credit/app/add/"), "name": "beech", "user_friendly_name": "Beech"}
    assert desk.post("/admin/credit/app/add/", sent).status_code == 302
    assert App.objects.get(name="beech").host_scale_check is False
    version = make_version(app)
    for row in (app, version):
        assert desk.post(f"/admin/credit/{row._meta.model_name}/{row.pk}/delete/").status_code == 403
    assert {App, AppVersion} <= set(admin.site._registry)
