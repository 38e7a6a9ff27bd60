"""An operator changes settings of credit in a browser: previews, saves with a reason, looks at it, undoes it."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from credit.models import App, AppVersion, CreditChange, ProcessorType, Result, RuleSet
from credit.statistics import feeder
from portal.models import Change, User
from tests.support.browser_visitor import colours, sign_in
from tests.support.credit_factories import make_app, make_version
from tests.support.site_process import Site
from tests.support.validator_runs import done, record, validate, volunteers


@pytest.fixture
def app() -> App:
    return make_app()


@pytest.fixture
def operator(page: Page, site: Site, app: App, worker: None) -> Page:
    sign_in(page.context, site, User.objects.create_superuser("boss@example.org", "a long password"))
    return page


def press_save_of_form(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page).to_have_url(re.compile("/admin/portal/change/step/"))


def preview(page: Page) -> None:
    """Ask for a preview in the step, and wait until it is there."""
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.get_by_role("link", name="See the whole preview")).to_be_visible(timeout=60_000)


def test_an_operator_previews_saves_with_a_reason_sees_the_entry_and_the_marker_and_undoes_it(
    operator: Page, app: App
) -> None:
    operator.goto(f"/admin/credit/app/{app.pk}/change/")
    operator.get_by_label("Apply host-scale probation").check()
    press_save_of_form(operator)
    expect(operator.get_by_role("rowheader", name="Apply host-scale probation")).to_be_visible()
    preview(operator)
    operator.get_by_role("button", name="Save", exact=True).click()
    expect(operator.get_by_text("Give a reason")).to_be_visible()
    operator.get_by_label("Reason").fill("Somebody picks the jobs that pay best")
    operator.get_by_role("button", name="Save", exact=True).click()
    expect(operator.get_by_text("Somebody picks the jobs that pay best")).to_be_visible()
    expect(operator.get_by_role("heading", name="Effect of the change")).to_be_visible()
    expect(operator.get_by_role("link", name="The preview viewed before the change")).to_be_visible()
    app.refresh_from_db()
    assert app.host_scale_check is True
    operator.goto(f"/admin/credit/app/{app.pk}/history/")
    expect(operator.get_by_text("Somebody picks the jobs that pay best")).to_be_visible()
    operator.goto("/admin/portal/change/")
    expect(operator.get_by_text("(host_scale_check): no → yes")).to_be_visible()
    operator.goto(f"/apps/{app.name}/")
    operator.get_by_role("link", name="(host_scale_check): no → yes").click()
    operator.get_by_role("button", name="Undo").click()
    operator.get_by_label("Reason").fill("Nobody did")
    operator.get_by_role("button", name="Save without a preview").click()
    expect(operator.get_by_text("It undid")).to_be_visible()
    app.refresh_from_db()
    assert app.host_scale_check is False


@pytest.fixture
def gpu_version(app: App) -> AppVersion:
    """A version that uses five times the peak FLOPS of the CPU version, and has a fifth of its factor.

    By the rules to the letter a version that is withdrawn loses its factor, so its jobs would bring five times as much.
    """
    App.objects.filter(pk=app.pk).update(rule_set=RuleSet.LETTER)
    cpu = make_version(app, pfc_n=1000, pfc_avg=1.2)
    gpu = make_version(
        app, plan_class="cuda", processor_type=ProcessorType.NVIDIA, gpu_usage=1, pfc_n=1000, pfc_avg=6.0
    )
    feeder.feed(timezone.now(), app)
    hosts = volunteers(2)
    for version, host in zip((cpu, gpu), hosts, strict=True):
        record(host, version, pfc_n=100, pfc_avg=version.pfc_avg, processor_type=version.processor_type)
    # The feeder runs before the preview's window and in it. What it does differently shows in the second half.
    for _ in range(2):
        # 3,000 s at 4 and at 20 GFLOPS are 12e12 and 60e12 FLOPs, of 10e12 estimated.
        for version, host, flops in zip((cpu, gpu), hosts, (4e9, 2e10), strict=True):
            for _ in range(40):
                done(app, version, host, peak_flops=flops, processor_type=version.processor_type)
        validate(app, timezone.now())
        feeder.feed(timezone.now(), app)
    assert Result.objects.filter(granted_credit__gt=0).count() == 160
    return gpu


@pytest.mark.parametrize("begins", ["at the version", "at all versions"])
def test_an_operator_withdraws_a_gpu_version_and_is_warned_by_the_preview(
    operator: Page, app: App, gpu_version: AppVersion, begins: str
) -> None:
    if begins == "at the version":
        operator.goto(f"/admin/credit/appversion/{gpu_version.pk}/change/")
        operator.get_by_label("Withdrawn").check()
        press_save_of_form(operator)
    else:
        operator.goto("/admin/scheduler/releasedraft/")
        operator.get_by_role("row", name="cuda").get_by_role("button", name="Withdraw").click()
        expect(operator.get_by_role("heading", name=re.compile("^Withdraw "))).to_be_visible()
    preview(operator)
    expect(operator.get_by_text("Equal jobs would not earn equal credit").first).to_be_visible()
    expect(operator.get_by_text("Most recent 160 granted workunits")).to_be_visible()
    operator.get_by_label("Reason").fill("It crashes with the new driver")
    operator.get_by_role("button", name="Save", exact=True).click()
    expect(operator.get_by_text("It crashes with the new driver")).to_be_visible()
    operator.get_by_role("link", name="The preview viewed before the change").click()
    expect(operator.get_by_role("heading", name="By version")).to_be_visible()
    for chart in ("days", "versions", "classes", "spread"):
        assert colours(operator, f"#chart-{chart}") > 3
    gpu_version.refresh_from_db()
    assert gpu_version.is_deprecated is True
    assert CreditChange.objects.get(change=Change.objects.latest("pk")).preview is not None
