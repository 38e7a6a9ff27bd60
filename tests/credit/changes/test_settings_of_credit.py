"""A change of credit goes through a step that shows it and asks for the reason; nothing is saved before."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from credit.models import App, AppVersion, CreditChange, CreditSystem, Preview, ProcessorType, RuleSet
from credit.statistics import feeder
from credit.statistics.markers import markers
from portal.models import Change
from tests.support.admin_forms import post_form
from tests.support.credit_factories import make_app, make_version
from tests.support.roles import make_person
from tests.support.settings_changes import change_settings, last_change, save, to_step, undo
from tests.support.validator_runs import done, validate, volunteers

pytestmark = pytest.mark.django_db


def test_saving_a_setting_of_credit_leads_to_a_step_and_changes_nothing_yet(desk: Client, app: App) -> None:
    before = Change.objects.count()
    step = to_step(desk, app, host_scale_check="on", description="Trees")
    page = desk.get(step).content.decode()
    for word in ("Apply host-scale probation", "Description", "Trees", "yes", "Save without a preview"):
        assert word in page
    app.refresh_from_db()
    assert (app.host_scale_check, app.description) == (False, "")
    assert Change.objects.count() == before


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501])
def test_a_reason_of_1_to_500_characters_is_demanded(reason: str, desk: Client, app: App) -> None:
    step = to_step(desk, app, host_scale_check="on")
    assert save(desk, step, reason).status_code == 200
    app.refresh_from_db()
    assert app.host_scale_check is False
    assert save(desk, step, "x" * 500).status_code == 302
    app.refresh_from_db()
    assert app.host_scale_check is True


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"host_scale_check": False}, {"host_scale_check": True}),
        ({"max_granted_credit": None}, {"max_granted_credit": 123.456789012345678}),
        ({"max_granted_credit": 1 / 3}, {"max_granted_credit": None}),
        ({"rule_set": RuleSet.PUBLISHED}, {"rule_set": RuleSet.DEPLOYED}),
        ({"min_host_samples": None}, {"min_host_samples": 20}),
        (
            {"credit_system": CreditSystem.CREDITNEW, "fixed_credit": None},
            {"credit_system": CreditSystem.FIXED, "fixed_credit": 100.0},
        ),
    ],
)
def test_values_are_kept_as_they_are_and_put_back_exactly(
    before: dict[str, Any], after: dict[str, Any], desk: Client
) -> None:
    app = make_app(**before)
    sent = {name: {True: "on", None: ""}.get(value, value) for name, value in after.items()}
    change = change_settings(desk, app, **sent)
    app.refresh_from_db()
    assert {name: getattr(app, name) for name in after} == after
    assert change.changes == {name: [before[name], after[name]] for name in after}
    assert undo(desk, change).status_code == 302
    app.refresh_from_db()
    assert {name: getattr(app, name) for name in after} == before
    assert last_change().undoes == change


def test_other_settings_are_saved_at_once(desk: Client, app: App) -> None:
    assert post_form(desk, app, weight="3")["Location"] == "/admin/credit/app/"
    assert last_change().changes == {"weight": [1.0, 3.0]}


def test_a_step_that_another_change_overtook_saves_nothing_and_shows_it(desk: Client, app: App) -> None:
    step = to_step(desk, app, max_granted_credit="100")
    App.objects.filter(pk=app.pk).update(max_granted_credit=50.0)
    response = save(desk, step)
    assert response.status_code == 200
    page = response.content.decode()
    assert "somebody changed this meanwhile" in page
    assert "You saw" in page
    app.refresh_from_db()
    assert app.max_granted_credit == 50.0
    assert desk.post(step, {"do": "renew"}).status_code == 302
    assert save(desk, step).status_code == 302
    assert last_change().changes == {"max_granted_credit": [50.0, 100.0]}


def test_two_operators_who_change_different_settings_lose_nothing(desk: Client, app: App) -> None:
    first = to_step(desk, app, max_granted_credit="100")
    second = to_step(desk, app, host_scale_check="on")
    assert save(desk, first).status_code == 302
    assert save(desk, second).status_code == 302
    app.refresh_from_db()
    assert (app.max_granted_credit, app.host_scale_check) == (100.0, True)


def test_a_preview_is_asked_for_in_the_step_and_kept_with_the_change(desk: Client, app: App) -> None:
    step = to_step(desk, app, host_scale_check="on", min_replication_chance="0.1")
    assert desk.post(step, {"do": "preview"}).status_code == 302
    preview = Preview.objects.get()
    assert preview.changes["app"] == {"host_scale_check": [False, True]}
    assert preview.app == app
    page = desk.get(step).content.decode()
    assert f"/admin/credit/preview/{preview.pk}/result/" in page
    assert 'hx-trigger="every 2s"' in page
    Preview.objects.update(finished_at=timezone.now(), progress=1)
    page = desk.get(step).content.decode()
    assert 'hx-trigger="every 2s"' not in page
    assert "Save without a preview" not in page
    assert save(desk, step).status_code == 302
    assert CreditChange.objects.get(change=last_change()).preview == preview


def test_a_preview_from_before_another_change_of_credit_is_not_used_again(desk: Client, app: App) -> None:
    desk.post(to_step(desk, app, host_scale_check="on"), {"do": "preview"})
    change_settings(desk, app, max_granted_credit="100")
    desk.post(to_step(desk, app, host_scale_check="on"), {"do": "preview"})
    assert Preview.objects.filter(app=app).count() == 2
    desk.post(to_step(desk, app, host_scale_check="on"), {"do": "preview"})
    assert Preview.objects.filter(app=app).count() == 2


def test_a_step_that_goes_on_from_other_values_forgets_the_preview_of_the_old_ones(desk: Client, app: App) -> None:
    step = to_step(desk, app, max_granted_credit="100")
    desk.post(step, {"do": "preview"})
    App.objects.filter(pk=app.pk).update(max_granted_credit=50.0)
    desk.post(step, {"do": "renew"})
    assert "Save without a preview" in desk.get(step).content.decode()
    save(desk, step)
    assert CreditChange.objects.get(change=last_change()).preview is None


def test_links_to_changes_and_previews_are_for_those_who_may_see_them(desk: Client, app: App) -> None:
    step = to_step(desk, app, host_scale_check="on")
    desk.post(step, {"do": "preview"})
    save(desk, step)
    change, preview = f"/admin/portal/change/{last_change().pk}/change/", Preview.objects.get().pk
    public = f"/apps/{app.name}/"
    assert f"/admin/credit/preview/{preview}/result/" in desk.get(change).content.decode()
    assert change in desk.get(public).content.decode()
    for role, sees_change in (("Read only", True), ("Support", False)):
        client = Client()
        client.force_login(make_person(role))
        assert (change in client.get(public).content.decode()) is sees_change
        assert client.get(change).status_code == (200 if sees_change else 403)
        assert f"/admin/credit/preview/{preview}/" not in client.get(change).content.decode()


def test_withdrawing_a_version_goes_through_the_step_with_a_preview_of_its_own(desk: Client, app: App) -> None:
    version = make_version(app, processor_type=ProcessorType.NVIDIA, gpu_usage=1)
    step = to_step(desk, version, is_deprecated="on")
    desk.post(step, {"do": "preview"})
    assert Preview.objects.get().changes["versions"] == {str(version.pk): {"is_deprecated": [False, True]}}
    assert save(desk, step).status_code == 302
    version.refresh_from_db()
    assert version.is_deprecated is True
    undo(desk, last_change())
    version.refresh_from_db()
    assert version.is_deprecated is False


def test_what_decides_which_jobs_are_done_has_no_preview(desk: Client, app: App) -> None:
    step = to_step(desk, app, adaptive_replication="on")
    assert "There is no preview of this" in desk.get(step).content.decode()
    assert desk.post(step, {"do": "preview"}).status_code == 403


def test_a_change_can_be_given_up_in_the_step(desk: Client, app: App) -> None:
    step = to_step(desk, app, host_scale_check="on")
    assert desk.post(step, {"do": "cancel"})["Location"] == f"/admin/credit/app/{app.pk}/change/"
    assert save(desk, step)["Location"] == "/admin/"
    app.refresh_from_db()
    assert app.host_scale_check is False


def test_markers_name_changes_of_credit_of_the_app_and_its_versions_only(desk: Client, app: App) -> None:
    began = timezone.now()
    version = make_version(app)
    other = make_app("beech")
    change = change_settings(desk, app, host_scale_check="on")
    change_settings(desk, version, is_deprecated="on")
    change_settings(desk, other, host_scale_check="on")
    post_form(desk, app, weight="3")
    marked = markers(app.pk, began, timezone.now())
    assert [marker.label for marker in marked] == [
        "Alpine: Apply host-scale probation (host_scale_check): no → yes",
        f"{version}: Withdrawn: no → yes",
    ]
    assert marked[0].at == change.timestamp
    assert desk.get(marked[0].link).status_code == 200
    assert markers(app.pk, began - dt.timedelta(days=2), began) == []
    assert [marker.label for marker in markers(None, began, timezone.now())][
        -1
    ] == "Beech: Apply host-scale probation (host_scale_check): no → yes"
    # Volunteers see what was changed, and nobody's name or reason.
    page = desk.get(f"/apps/{app.name}/").content.decode()
    assert "(host_scale_check): no → yes" in page
    assert "a test" not in page


def test_markers_tell_volunteers_of_no_other_setting_that_was_saved_with_it(desk: Client, app: App) -> None:
    began = timezone.now()
    change_settings(desk, app, host_scale_check="on", comparison_tolerance="0.25", weight="3")
    [marker] = markers(app.pk, began, timezone.now())
    assert marker.label == "Alpine: Apply host-scale probation (host_scale_check): no → yes"


def test_validators_leave_no_change(app: App) -> None:
    version = make_version(app)
    for host in volunteers(2):
        done(app, version, host)
    before = Change.objects.count()
    assert validate(app, timezone.now()).nvalid == 2
    version.refresh_from_db()
    assert version.pfc_n == 2
    assert Change.objects.count() == before


def test_the_feeder_leaves_no_change(desk: Client, app: App) -> None:
    for kind in (ProcessorType.CPU, ProcessorType.NVIDIA):
        make_version(
            app,
            100 if kind == ProcessorType.CPU else 101,
            processor_type=kind,
            gpu_usage=kind != ProcessorType.CPU,
            pfc_n=1000,
            pfc_avg=1.5,
        )
    before = Change.objects.count()
    report = feeder.feed(timezone.now())
    assert report.nscales == 2
    app.refresh_from_db()
    assert app.min_avg_pfc == 1.5
    assert AppVersion.objects.exclude(pfc_scale=None).count() == 2
    assert Change.objects.count() == before
