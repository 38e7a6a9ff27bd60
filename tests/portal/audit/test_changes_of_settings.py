"""Changes of settings are kept with their values, and can be undone: in the admin, by the real forms and pages."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from auditlog.registry import auditlog
from django.contrib.auth.models import Permission
from django.db import models, transaction
from django.test import Client

from accounting.models import Project, UserProject
from credit.models import App, Platform, ProcessorType
from portal.audit.undo import proposal_of
from portal.audit.values import lines_of
from portal.languages.sentences import unpacked
from portal.models import Change, User
from scheduler.models import PlanClass
from tests.support.admin_forms import form_values, post_form
from tests.support.credit_factories import make_app
from tests.support.lock_waits import meanwhile
from tests.support.settings_changes import last_change, undo

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss@example.org", "a long password")


@pytest.fixture
def operator(client: Client, boss: User) -> Client:
    client.force_login(boss)
    return client


@pytest.fixture
def plan_class() -> PlanClass:
    return PlanClass.objects.create(name="mt", max_ncpus=4)


def test_a_change_names_who_when_and_the_values_before_and_after(
    operator: Client, boss: User, plan_class: PlanClass
) -> None:
    assert post_form(operator, plan_class, max_ncpus="8", needs_opencl="on").status_code == 302
    change = last_change()
    assert (change.actor, change.action, change.object_repr) == (boss, Change.Action.UPDATE, "mt")
    assert change.changes == {"max_ncpus": [4, 8], "needs_opencl": [False, True]}
    shown = {line.label: (line.before, line.after) for line in lines_of(change)}
    assert shown == {"Processors used at most": ("4", "8"), "Needs OpenCL": ("no", "yes")}
    page = operator.get(f"/admin/scheduler/planclass/{plan_class.pk}/history/").content.decode()
    assert "boss" in page
    assert "Processors used at most" in page


def test_what_a_command_changes_is_kept_too(plan_class: PlanClass) -> None:
    plan_class.min_ncpus = 2
    plan_class.save()
    change = last_change()
    assert (change.actor, change.changes) == (None, {"min_ncpus": [0, 2]})


def test_choices_are_shown_as_on_the_form(plan_class: PlanClass) -> None:
    PlanClass.objects.filter(pk=plan_class.pk).update(gpu_usage=0)
    plan_class.processor_type, plan_class.gpu_usage = ProcessorType.NVIDIA, 0.5
    plan_class.save()
    assert {(line.before, line.after) for line in lines_of(last_change())} == {("CPU", "NVIDIA GPU"), ("0", "0.5")}


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("down_since", None, dt.datetime(2026, 11, 20, 12, 30, tzinfo=dt.UTC)),
        ("down_since", dt.datetime(2026, 11, 20, 12, 30, 15, 123456, tzinfo=dt.UTC), None),
        ("default_share", 0.1 + 0.2, 1 / 3),
        ("is_active", True, False),
        ("account_mode", Project.Account.SHARED, Project.Account.PER_USER),
        ("down_reason", "", "Their disks are full."),
    ],
)
def test_an_undo_puts_back_the_very_values(field: str, before: object, after: object, operator: Client) -> None:
    project = Project.objects.create(name="Rosetta", master_url="https://rosetta.example.org/", **{field: before})
    setattr(project, field, after)
    project.save()
    changed = last_change()
    assert undo(operator, changed).status_code == 302
    project.refresh_from_db()
    assert getattr(project, field) == before
    undone = last_change()
    assert (undone.undoes, undone.reason) == (changed, "it was wrong")
    # And the undo is a change like any other.
    assert undo(operator, undone).status_code == 302
    project.refresh_from_db()
    assert getattr(project, field) == after
    page = operator.get(f"/admin/portal/change/{undone.pk}/change/").content.decode()
    assert "It undid" in page
    assert "It was undone by" in page


def test_an_undo_of_what_was_changed_again_says_so_and_wants_to_be_confirmed(
    operator: Client, plan_class: PlanClass
) -> None:
    for number in (8, 16):
        plan_class.max_ncpus = number
        plan_class.save()
    first = Change.objects.get(changes__max_ncpus=[4, 8])
    response = undo(operator, first)
    assert response.status_code == 200
    page = response.content.decode()
    assert "changed again later" in page
    assert "Tick this if you want to overwrite the later change." in page
    plan_class.refresh_from_db()
    assert plan_class.max_ncpus == 16
    assert undo(operator, first, anyway="on").status_code == 302
    plan_class.refresh_from_db()
    assert plan_class.max_ncpus == 4
    assert last_change().changes == {"max_ncpus": [16, 4]}


def test_an_undo_that_the_database_would_refuse_says_why(operator: Client) -> None:
    plan_class = PlanClass.objects.create(name="gpu", processor_type=ProcessorType.NVIDIA, gpu_usage=1, avg_ncpus=0)
    plan_class.avg_ncpus = 1
    plan_class.save()
    change = last_change()
    PlanClass.objects.filter(pk=plan_class.pk).update(processor_type=ProcessorType.CPU, gpu_usage=0)
    response = undo(operator, change)
    assert response.status_code == 200
    assert "These values can’t be combined" in response.content.decode().replace("these", "These")
    plan_class.refresh_from_db()
    assert plan_class.avg_ncpus == 1


def test_what_needs_no_undo_offers_none(operator: Client, plan_class: PlanClass) -> None:
    created = Change.objects.get(object_repr="mt")
    assert created.action == Change.Action.CREATE
    assert proposal_of(created, plan_class) is None
    assert "Undo" not in operator.get(f"/admin/portal/change/{created.pk}/change/").content.decode()


def test_a_form_that_is_older_than_another_change_is_refused_and_names_it(
    operator: Client, plan_class: PlanClass
) -> None:
    mine = form_values(operator, plan_class)
    PlanClass.objects.filter(pk=plan_class.pk).update(max_ncpus=6)
    response = post_form(operator, plan_class, mine, min_ncpus="2")
    assert response.status_code == 200
    page = response.content.decode()
    assert "somebody changed “processors used at most” from 4 to 6" in page
    plan_class.refresh_from_db()
    assert (plan_class.min_ncpus, plan_class.max_ncpus) == (0, 6)
    # The form as it is shown next takes the change.
    assert post_form(operator, plan_class, min_ncpus="2").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_a_form_waits_for_a_change_that_is_being_saved_and_does_not_overwrite_it(
    operator: Client, plan_class: PlanClass
) -> None:
    mine = form_values(operator, plan_class)
    with meanwhile(lambda: post_form(operator, plan_class, mine, min_ncpus="2")) as begin:
        with transaction.atomic():
            PlanClass.objects.filter(pk=plan_class.pk).update(max_ncpus=6)
            second = begin()
        page = second.result().content.decode()
    assert "somebody changed “processors used at most” from 4 to 6" in page
    plan_class.refresh_from_db()
    assert (plan_class.min_ncpus, plan_class.max_ncpus) == (0, 6)


def test_keys_of_accounts_never_get_into_the_history(operator: Client) -> None:
    project = Project.objects.create(name="Rosetta", master_url="https://rosetta.example.org/")
    for key in ("first_secret_key", "second_secret_key"):
        assert post_form(operator, project, new_account_key=key).status_code == 302
    project.refresh_from_db()
    assert project.shared_account_key
    keys = [
        change.changes["shared_account_key"]
        for change in Change.objects.order_by("pk")
        if change.changes and "shared_account_key" in change.changes
    ]
    assert keys == [["(none)", "(not shown)"], ["(not shown)", "(not shown)"]]
    stored = json.dumps(list(Change.objects.values()), default=str)
    assert "secret_key" not in stored
    assert bytes(project.shared_account_key).hex() not in stored
    assert str(bytes(project.shared_account_key)) not in stored
    assert "seen" not in stored


def test_what_an_operator_does_to_a_volunteers_account_is_kept_without_the_volunteer(operator: Client) -> None:
    project = Project.objects.create(name="Rosetta", master_url="https://rosetta.example.org/")
    mara = User.objects.create_user("mara@example.org", "a long password")
    choice = UserProject.objects.create(user=mara, project=project)
    count = Change.objects.count()
    UserProject.objects.filter(pk=choice.pk).update(resource_share=50.0)
    assert Change.objects.count() == count
    assert post_form(operator, choice, new_account_key="volunteers_key", resource_share="20").status_code == 302
    change = last_change()
    assert change.changes == {"resource_share": [50.0, 20.0], "account_key": ["(none)", "(not shown)"]}
    assert unpacked(change.object_repr) == f"account of person {mara.pk} at Rosetta"
    assert "Undo" not in operator.get(f"/admin/portal/change/{change.pk}/change/").content.decode()
    operator.post(f"/admin/accounting/userproject/{choice.pk}/delete/", {"post": "yes"})
    assert last_change().action == Change.Action.DELETE
    stored = json.dumps(list(Change.objects.values()), default=str)
    assert "mara" not in stored
    assert "volunteers_key" not in stored


def test_no_field_that_is_audited_is_a_secret() -> None:
    for model in auditlog.get_models():
        known = auditlog.get_model_fields(model)
        for name in known["include_fields"]:
            field = model._meta.get_field(name)
            is_hidden = name in known["mask_fields"]
            assert is_hidden or not isinstance(field, models.BinaryField), f"{model.__name__}.{name}"
            assert is_hidden or "key" not in name.removesuffix("keyword"), f"{model.__name__}.{name}"


def staff(*permissions: str) -> Client:
    user = User.objects.create_user("helper@example.org", "a long password", is_staff=True)
    for name in permissions:
        label, codename = name.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=label, codename=codename))
    client = Client()
    client.force_login(user)
    return client


def test_who_may_see_a_row_sees_its_changes_and_who_may_change_it_undoes_them(plan_class: PlanClass) -> None:
    plan_class.max_ncpus = 8
    plan_class.save()
    change = last_change()
    path = f"/admin/portal/change/{change.pk}/change/"
    nobody = staff()
    assert nobody.get(path).status_code == 403
    assert nobody.get("/admin/portal/change/").status_code == 403
    assert nobody.post(f"/admin/portal/change/{change.pk}/undo/").status_code == 403
    User.objects.get(email="helper@example.org").delete()
    reader = staff("scheduler.view_planclass")
    assert reader.get(path).status_code == 200
    assert b"Undo" not in reader.get(path).content
    assert reader.post(f"/admin/portal/change/{change.pk}/undo/").status_code == 403
    User.objects.get(email="helper@example.org").delete()
    auditor = staff("portal.view_change")
    assert auditor.get("/admin/portal/change/").status_code == 200
    assert auditor.get(path).status_code == 200
    User.objects.get(email="helper@example.org").delete()
    editor = staff("scheduler.view_planclass", "scheduler.change_planclass")
    assert undo(editor, change).status_code == 302
    plan_class.refresh_from_db()
    assert plan_class.max_ncpus == 4


def test_a_proposal_is_only_in_the_session_of_who_made_it(operator: Client, plan_class: PlanClass) -> None:
    plan_class.max_ncpus = 8
    plan_class.save()
    step = operator.post(f"/admin/portal/change/{last_change().pk}/undo/")["Location"]
    assert operator.get(step).status_code == 200
    other = staff("scheduler.view_planclass", "scheduler.change_planclass")
    assert other.post(step, {"do": "save", "reason": "mine"}).status_code == 302
    plan_class.refresh_from_db()
    assert plan_class.max_ncpus == 8


def test_the_list_of_all_changes_is_narrowed_by_person_kind_and_date(
    operator: Client, boss: User, plan_class: PlanClass
) -> None:
    post_form(operator, plan_class, max_ncpus="8")
    Platform.objects.create(name="riscv64-linux-gnu")
    page = "/admin/portal/change/"
    everything = operator.get(page).content.decode()
    assert "Processors used at most: 4 → 8" in everything
    assert "riscv64-linux-gnu" in everything
    mine = operator.get(page, {"actor__id__exact": boss.pk}).content.decode()
    assert "4 → 8" in mine
    assert "platform: riscv64-linux-gnu" not in mine
    kind = Change.objects.get(object_repr="riscv64-linux-gnu").content_type_id
    platforms = operator.get(page, {"kind": kind}).content.decode()
    assert "platform: riscv64-linux-gnu" in platforms
    assert "4 → 8" not in platforms
    assert "4 → 8" not in operator.get(page, {"timestamp__year": "2020"}).content.decode()


def test_a_person_who_is_deleted_leaves_their_changes_without_a_name(plan_class: PlanClass) -> None:
    client = staff("scheduler.view_planclass", "scheduler.change_planclass")
    post_form(client, plan_class, max_ncpus="8")
    User.objects.get(email="helper@example.org").delete()
    change = last_change()
    assert (change.actor, change.actor_email) == (None, None)
    assert "helper" not in json.dumps(list(Change.objects.values()), default=str)


def test_apps_are_kept_from_their_first_day(operator: Client) -> None:
    app: App = make_app()
    change = Change.objects.get(object_repr=str(app))
    assert change.action == Change.Action.CREATE
    assert change.changes["name"] == [None, "alpine"]
    assert "min_avg_pfc" not in change.changes
