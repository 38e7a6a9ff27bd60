"""The laboratory's pages: operators' in the admin, volunteers' where it is public, and an app's own results."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from credit.models import App, Result
from extras.laboratory import request as requests
from extras.laboratory import worker
from extras.laboratory.charts import goal_charts
from extras.laboratory.models import CreditExperiment
from extras.laboratory.own_results import measure_app
from extras.laboratory.request import ExperimentRefusedError, ask
from extras.laboratory.trials.experiment import Experiment, Variant, measure
from portal.languages.messages import Message
from portal.models import RequestedWork, User
from portal.requested_work import queue
from tests.support.lock_waits import meanwhile
from tests.support.page_text import text_of
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db
SMALL = Experiment((Variant(), Variant("deployed")), {"hosts": 20, "cheat_exaggerate": 0.2}, 1000, 1)
SENT: dict[str, Any] = {
    "title": "Published or deployed?",
    "rule_sets": ["published", "deployed"],
    "replications": ["way_single"],
    "checks": ["on"],
    "jobs": "1000",
    "nseeds": "1",
    "hosts": "20",
}


@cache
def measured(said: str) -> list[dict[str, Any]]:
    return [goals.as_json() for goals in measure(Experiment.from_json(json.loads(said)))]


@pytest.fixture(autouse=True)
def measured_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most experiments are the same one, and its results are computed here once; tests of the process are marked."""
    if request.node.get_closest_marker("unit"):
        monkeypatch.setattr(worker, "measure_in_process", lambda said, report: measured(json.dumps(said)))


@pytest.fixture
def public(settings: Settings) -> None:
    settings.CREDIT_LABORATORY_PUBLIC = True


@pytest.fixture
def staff(client: Client, bob: User) -> Client:
    """An operator who has no permission yet."""
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    sign_in_lately(client, bob)
    return client


def allow(user: User, *codenames: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))


def asked(owner: User) -> CreditExperiment:
    return ask(owner, "Mine", SMALL, is_operator=False)


def done(owner: User) -> CreditExperiment:
    experiment = asked(owner)
    assert queue.carry_out_next()
    experiment.refresh_from_db()
    return experiment


# --- started, and carried out ---------------------------------------------------------------------------------


@pytest.mark.system
def test_an_operator_compares_rule_sets_in_the_admin(staff: Client, bob: User) -> None:
    allow(bob, "add_creditexperiment", "view_creditexperiment")
    response = staff.post(reverse("admin:laboratory_creditexperiment_add"), SENT)
    experiment = CreditExperiment.objects.get()
    address = reverse("admin:laboratory_creditexperiment_change", args=[experiment.pk])
    assert response.headers["Location"] == address
    assert "number 1 in the queue" in text_of(staff.get(address))
    assert queue.carry_out_next()
    text = text_of(staff.get(address))
    assert "1: published, single results, host_scale_check" in text
    assert "2: deployed, single results, host_scale_check" in text
    assert "equal jobs on different hosts: mean deviation" in text
    assert "This experiment is short." in text
    experiment.refresh_from_db()
    assert experiment.progress == 1.0 and experiment.finished_at is not None
    measured = staff.get(reverse("admin:laboratory_creditexperiment_json", args=[experiment.pk])).json()
    assert measured["results"] == experiment.results
    assert Experiment.from_json(measured["settings"]).parameters == {"hosts": 20}


def test_the_page_has_each_chart_and_the_same_numbers_as_a_table(staff: Client, bob: User) -> None:
    allow(bob, "view_creditexperiment")
    experiment = done(bob)
    page = staff.get(reverse("admin:laboratory_creditexperiment_change", args=[experiment.pk]))
    charts, rows = page.context["charts"], page.context["rows"]
    assert sum(len(chart["labels"]) for chart in charts) == len(rows)
    assert [chart["title"].split(":")[0] for chart in charts] == [
        "Device neutrality", "Limited project neutrality", "Cheat resistance",
    ]  # fmt: skip
    text = text_of(page)
    for chart in charts:
        assert f'<canvas id="{chart["id"]}"' in page.content.decode()
        assert chart["title"] in text
        assert [series["name"] for series in chart["series"]] == [
            "published, single results",
            "deployed, single results",
        ]
        assert all(len(series["values"]) == len(chart["labels"]) for series in chart["series"])
    # In percent; of the document's bound for versions' mean grants, 0.03
    assert experiment.results is not None
    first = experiment.results[0]["goals"][0]
    assert charts[0]["series"][0]["values"][0] == pytest.approx(100 * first["measured"])
    assert charts[0]["bounds"][0] == 3


@pytest.mark.parametrize("codename", ["add_creditexperiment", "view_creditexperiment", "view_app"])
def test_each_page_of_operators_needs_its_permission(staff: Client, bob: User, alice: User, codename: str) -> None:
    experiment = done(alice)
    pages = {
        "add_creditexperiment": reverse("admin:laboratory_creditexperiment_add"),
        "view_creditexperiment": reverse("admin:laboratory_creditexperiment_change", args=[experiment.pk]),
        "view_app": reverse("admin:credit_own_results"),
    }
    assert {name: staff.get(page).status_code for name, page in pages.items()} == dict.fromkeys(pages, 403)
    allow(bob, codename)
    for name, page in pages.items():
        assert staff.get(page).status_code == (200 if name == codename else 403), page


def test_an_experiment_is_shared_only_with_the_permission_to_change_it(
    staff: Client, bob: User, alice: User, public: None
) -> None:
    experiment = done(alice)
    address = reverse("admin:laboratory_creditexperiment_change", args=[experiment.pk])
    allow(bob, "view_creditexperiment")
    assert staff.post(address).status_code == 403
    allow(bob, "change_creditexperiment")
    bob_again = Client()
    sign_in_lately(bob_again, User.objects.get(pk=bob.pk))
    bob_again.post(address)
    experiment.refresh_from_db()
    assert experiment.share_token is not None


def test_a_field_out_of_its_range_is_named_with_its_limit(signed_in: Client, public: None) -> None:
    sent = {**SENT, "cheat_slack": "0.6", "limit_max_host_scale": "0.5"}
    response = signed_in.post(reverse("credit_experiment_new"), sent)
    assert response.status_code == 422
    errors = response.context["form"].errors
    assert errors["cheat_slack"] == ["Ensure this value is less than or equal to 0.5."]
    assert errors["limit_max_host_scale"] == ["Ensure this value is greater than or equal to 1."]


def test_limits_are_compared_with_the_rule_sets_own(signed_in: Client, public: None) -> None:
    sent = {**SENT, "rule_sets": ["published"], "limit_max_host_scale": "2", "compares_limits": "on"}
    signed_in.post(reverse("credit_experiment_new"), sent)
    variants = CreditExperiment.objects.get().settings["variants"]
    assert [variant["limits"] for variant in variants] == [{}, {"max_host_scale": 2.0}]


def test_too_many_combinations_are_refused(signed_in: Client, public: None) -> None:
    ways = ["way_single", "way_adaptive", "way_pairs"]
    sent = {**SENT, "replications": ways, "checks": ["on", "off"]}
    text = text_of(signed_in.post(reverse("credit_experiment_new"), sent))
    assert "the choices make 12; the limit is 8" in text


@pytest.mark.system
def test_what_takes_too_long_is_told(alice: User, settings: Settings) -> None:
    settings.CREDIT_LABORATORY_SECS_MAX = 1
    experiment = ask(alice, "Long", Experiment([Variant()], {}, 200_000, 10), is_operator=True)
    assert queue.carry_out_next()
    experiment.refresh_from_db()
    assert str(experiment.failure).startswith("It took more than 1 s of processor time")
    assert experiment.finished_at is not None and experiment.results is None


def test_one_that_was_deleted_is_not_carried_out(alice: User) -> None:
    requests.delete(asked(alice))
    assert RequestedWork.objects.count() == 0
    assert not queue.carry_out_next()


# --- limits -------------------------------------------------------------------------------------------------


def test_a_volunteer_has_few_unfinished_ones_and_small_ones(alice: User) -> None:
    with pytest.raises(ExperimentRefusedError, match="the limit is 200\u202f000"):
        ask(alice, "Large", Experiment([Variant()], {}, 200_000, 1), is_operator=False)
    with pytest.raises(ExperimentRefusedError, match="Only operators may measure the goals of the document"):
        ask(alice, "Report", Experiment([Variant()], is_document=True), is_operator=False)
    for _ in range(requests.MAX_UNFINISHED):
        asked(alice)
    with pytest.raises(ExperimentRefusedError, match="4 unfinished experiments"):
        asked(alice)


def test_the_form_of_volunteers_does_not_offer_the_documents_goals(signed_in: Client, public: None) -> None:
    signed_in.post(reverse("credit_experiment_new"), {**SENT, "is_document": "on"})
    assert CreditExperiment.objects.get().settings["is_document"] is False


# --- public, or not -----------------------------------------------------------------------------------------


def test_the_laboratory_is_public_only_where_the_operator_opens_it(
    signed_in: Client, alice: User, settings: Settings
) -> None:
    experiment = asked(alice)
    requests.share(experiment)
    experiment.refresh_from_db()
    pages = [
        reverse("credit_laboratory"),
        reverse("credit_experiment_new"),
        reverse("credit_experiment", args=[experiment.pk]),
        reverse("credit_experiment_shared", args=[experiment.share_token]),
        reverse("credit_experiment_shared_json", args=[experiment.share_token]),
    ]
    assert [signed_in.get(page).status_code for page in pages] == [404] * 5
    assert pages[0] not in signed_in.get(reverse("apps")).content.decode()
    settings.CREDIT_LABORATORY_PUBLIC = True
    assert [signed_in.get(page).status_code for page in pages] == [200] * 5
    assert pages[0] in signed_in.get(reverse("apps")).content.decode()


def test_a_shared_experiment_is_read_by_its_link_until_it_is_not_shared(
    signed_in: Client, alice: User, public: None
) -> None:
    experiment = done(alice)
    stranger = Client()
    signed_in.post(reverse("credit_experiment_share", args=[experiment.pk]))
    experiment.refresh_from_db()
    link = reverse("credit_experiment_shared", args=[experiment.share_token])
    assert link in text_of(signed_in.get(reverse("credit_experiment", args=[experiment.pk])))
    text = text_of(stranger.get(link))
    assert "Side by side" in text
    assert "Delete" not in text
    assert (
        stranger.get(reverse("credit_experiment_shared_json", args=[experiment.share_token])).json()["title"] == "Mine"
    )
    signed_in.post(reverse("credit_experiment_share", args=[experiment.pk]), {"end": "1"})
    assert stranger.get(link).status_code == 404


def test_a_change_of_a_copy_begins_with_its_settings(signed_in: Client, alice: User, bob: User, public: None) -> None:
    experiment = asked(alice)
    form = signed_in.get(reverse("credit_experiment_new"), {"from": experiment.pk}).context["form"]
    assert form.initial["rule_sets"] == ["deployed", "published"]
    assert form.initial["cheat_exaggerate"] == 0.2
    assert form.initial["hosts"] == 20
    others = asked(bob)
    assert signed_in.get(reverse("credit_experiment_new"), {"from": others.pk}).status_code == 404


# --- an app's own results -----------------------------------------------------------------------------------


def test_the_goals_are_measured_on_an_apps_own_results(staff: Client, bob: User) -> None:
    call_command("simulate_results", "--hosts", "12", "--jobs", "600", "--validate", verbosity=0)
    app = App.objects.get()
    measured = measure_app(app, 300)
    assert measured.nworkunits == 300
    # Two replicas of each
    assert sum(row.nresults for row in measured.versions) == 600
    assert "equal jobs on different hosts: mean deviation" in [goal.name for goal in measured.goals]
    allow(bob, "view_app")
    page = staff.get(reverse("admin:credit_own_results"), {"app": app.name, "last": "1000"})
    assert "the most recent 600 workunits" in text_of(page)
    assert "Mean grant of each version" in text_of(page)


def test_an_app_without_results_says_so(staff: Client, bob: User) -> None:
    App.objects.create(name="new")
    allow(bob, "view_app")
    text = text_of(staff.get(reverse("admin:credit_own_results"), {"app": "new"}))
    assert "has been granted credit yet" in text


def test_an_app_that_grants_nothing_is_measured(staff: Client, bob: User) -> None:
    call_command("simulate_results", "--hosts", "12", "--jobs", "1000", "--validate", verbosity=0)
    Result.objects.update(granted_credit=0, claimed_credit=0)
    measured = measure_app(App.objects.get(), 1000)
    assert {goal.measured for goal in measured.goals} == {0.0}
    assert len(measured.goals) == 4


def test_results_of_computers_that_are_gone_are_no_computer_of_their_own() -> None:
    call_command("simulate_results", "--hosts", "12", "--jobs", "600", "--validate", verbosity=0)
    app = App.objects.get()
    name = "equal jobs on different hosts: mean deviation"
    before = {goal.name: goal.measured for goal in measure_app(app, 600).goals}[name]
    gone = Result.objects.latest("pk")
    Result.objects.filter(host=gone.host).update(host=None, granted_credit=1e6)
    after = {goal.name: goal.measured for goal in measure_app(app, 600).goals}[name]
    # The others' grants are as close to each other as before.
    assert after < before + 0.05


# --- impossible input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["%00", "a" * 2000, "%ff", "'", "../1"])
def test_a_guessed_link_leads_nowhere(client: Client, public: None, key: str) -> None:
    for address in (f"/laboratory/shared/{key}/", f"/laboratory/shared/{key}/result.json"):
        assert client.get(address).status_code == 404


@pytest.mark.parametrize("pk", ["0", "²", "9" * 30, "1%00", "-1"])
def test_an_experiment_that_is_not_there_is_not_found(staff: Client, bob: User, pk: str) -> None:
    allow(bob, "view_creditexperiment", "change_creditexperiment")
    address = f"/admin/laboratory/creditexperiment/{pk}/change/"
    assert staff.get(address).status_code == staff.post(address).status_code == 404


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"app": "none"}, "“none” is not an app of this project."),
        ({"app": "no\0ne"}, "is not an app of this project."),
        ({"app": "a" * 5000}, f"“{'a' * 20}” is not an app of this project."),
        ({"last": "7"}, "“7” is not a number of workunits to choose from."),
    ],
)
def test_an_address_of_an_apps_own_results_that_makes_no_sense_says_so(
    staff: Client, bob: User, query: dict[str, str], words: str
) -> None:
    allow(bob, "view_app")
    assert words in text_of(staff.get(reverse("admin:credit_own_results"), query))


# Each with its message
HOSTILE: dict[str, tuple[str, ...]] = {
    "hosts": ("nan", "inf", "-1", "1e3", "9" * 5000, "10.5", "\0"),
    "jobs": ("", "0", "-5", "1e400", "200001"),
    "nseeds": ("", "0", "101", "٣٣٣"),
    "cheat_pick": ("nan", "inf", "-inf", "-0.1", "0.51", "1e400", "0x1"),
    "cpu_gflops": ("nan", "0", "1001"),
    "limit_host_avg_weight": ("nan", "0", "2"),
    "limit_min_host_samples": ("nan", "0", "2.5", "10001"),
    "title": ("", " ", "\0", "a" * 101),
    "rule_sets": ("", "none", "published' --"),
    "replications": ("", "three replicas"),
    "checks": ("", "maybe"),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values])
def test_what_is_no_number_of_the_range_is_refused_beside_its_field(
    signed_in: Client, public: None, name: str, value: str
) -> None:
    response = signed_in.post(reverse("credit_experiment_new"), {**SENT, name: value})
    assert response.status_code == 422
    assert name in response.context["form"].errors
    assert CreditExperiment.objects.count() == 0


# --- the worker fails, or is late ------------------------------------------------------------------------------


def test_a_page_read_while_the_last_figures_are_stored_does_not_say_that_it_was_given_up(
    signed_in: Client, alice: User, public: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = asked(alice)

    def finished_meanwhile(*said: Any) -> dict[int, Any]:
        assert queue.carry_out_next()
        return {}

    monkeypatch.setattr("extras.laboratory.reads.queue.standings", finished_meanwhile)
    text = text_of(signed_in.get(reverse("credit_experiment", args=[experiment.pk])))
    assert "given up" not in text
    assert "Side by side" in text


@pytest.mark.system
def test_one_that_failed_each_time_is_finished_and_says_so(
    signed_in: Client, alice: User, public: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = asked(alice)

    def fail(*said: Any, **options: Any) -> None:
        raise OSError("no memory for another process")

    monkeypatch.setattr("extras.laboratory.worker.subprocess.Popen", fail)
    for _ in range(queue.MAX_TRIES):
        with pytest.raises(OSError):
            queue.carry_out_next()
    assert not queue.carry_out_next()
    text = text_of(signed_in.get(reverse("credit_experiment", args=[experiment.pk])))
    assert "was abandoned." in text
    # It does not count among the unfinished ones.
    for _ in range(requests.MAX_UNFINISHED):
        asked(alice)


@pytest.mark.system
def test_one_that_is_deleted_while_it_runs_is_stopped(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(alice, "Long", Experiment([Variant()], {}, 200_000, 10), is_operator=True)
    started: list[subprocess.Popen[str]] = []
    popen, store = subprocess.Popen, worker._store

    def begin(*said: Any, **options: Any) -> Any:
        started.append(popen(*said, **options))
        return started[0]

    def delete_and_store(experiment_id: int, **columns: Any) -> None:
        if columns["progress"] > 0:
            requests.delete(CreditExperiment.objects.get(pk=experiment_id))
        store(experiment_id, **columns)

    monkeypatch.setattr("extras.laboratory.worker.subprocess.Popen", begin)
    monkeypatch.setattr(worker, "_store", delete_and_store)
    assert queue.carry_out_next()
    # SIGKILL
    assert started[0].returncode == -9
    assert not CreditExperiment.objects.exists()


def test_one_whose_worker_was_lost_begins_again(alice: User) -> None:
    experiment = asked(alice)
    CreditExperiment.objects.filter(pk=experiment.pk).update(progress=0.5)
    RequestedWork.objects.update(started_at=timezone.now() - queue.LOST_AFTER * 2, ntries=1)
    queue.requeue_lost(timezone.now())
    assert queue.carry_out_next()
    experiment.refresh_from_db()
    assert experiment.results is not None and experiment.progress == 1.0


@pytest.mark.system
@pytest.mark.parametrize("answer", ["", "found [", 'found [{"label": "half", "goals": []}]', "nothing that is known"])
def test_a_process_that_fails_is_told_as_a_fault_of_the_site(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{answer}'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("extras.laboratory.worker.sys.executable", str(program))
    experiment = done(alice)
    assert experiment.failure == Message("experiment_site_fault")
    assert experiment.results is None


# --- permissions ------------------------------------------------------------------------------------------------


def test_who_may_only_ask_sees_ones_own(staff: Client, bob: User, alice: User) -> None:
    allow(bob, "add_creditexperiment")
    response = staff.post(reverse("admin:laboratory_creditexperiment_add"), SENT, follow=True)
    assert response.status_code == 200
    assert "number 1 in the queue" in text_of(response)
    others = reverse("admin:laboratory_creditexperiment_change", args=[asked(alice).pk])
    assert staff.get(others).status_code == 403
    assert staff.post(others).status_code == 403


def test_an_operator_shares_an_experiment_also_while_the_laboratory_is_closed(
    staff: Client, bob: User, client: Client
) -> None:
    allow(bob, "add_creditexperiment", "view_creditexperiment", "change_creditexperiment")
    experiment = done(bob)
    address = reverse("admin:laboratory_creditexperiment_change", args=[experiment.pk])
    assert "Share with a link" in text_of(staff.get(address))
    staff.post(address)
    experiment.refresh_from_db()
    link = reverse("credit_experiment_shared", args=[experiment.share_token])
    assert link in text_of(staff.get(address))
    stranger = Client()
    assert "Side by side" in text_of(stranger.get(link))
    assert stranger.get(f"{link}result.json").status_code == 200
    # Experiments shared by somebody who is no longer an operator are closed.
    bob.user_permissions.clear()
    assert stranger.get(link).status_code == 404


def test_a_volunteers_link_can_be_ended_but_not_made_while_the_laboratory_is_closed(
    staff: Client, bob: User, alice: User, settings: Settings
) -> None:
    allow(bob, "view_creditexperiment", "change_creditexperiment")
    experiment = asked(alice)
    address = reverse("admin:laboratory_creditexperiment_change", args=[experiment.pk])
    assert "Share with a link" not in text_of(staff.get(address))
    assert "shared only while the laboratory is public" in text_of(staff.post(address, follow=True))
    experiment.refresh_from_db()
    assert experiment.share_token is None
    requests.share(experiment)
    assert "Stop sharing" in text_of(staff.get(address))
    staff.post(address, {"end": "1"})
    experiment.refresh_from_db()
    assert experiment.share_token is None


def test_a_volunteer_cannot_see_change_or_share_what_is_not_theirs(signed_in: Client, bob: User, public: None) -> None:
    experiment = done(bob)
    for name in ("credit_experiment", "credit_experiment_json"):
        assert signed_in.get(reverse(name, args=[experiment.pk])).status_code == 404
    for name in ("credit_experiment_share", "credit_experiment_delete"):
        assert signed_in.post(reverse(name, args=[experiment.pk])).status_code == 404
    experiment.refresh_from_db()
    assert experiment.share_token is None
    for page in ("credit_laboratory", "credit_experiment_new"):
        assert Client().get(reverse(page)).status_code == 302


def test_what_a_link_shows_says_nothing_of_its_owner(alice: User, public: None) -> None:
    experiment = done(alice)
    requests.share(experiment)
    experiment.refresh_from_db()
    stranger = Client()
    link = reverse("credit_experiment_shared", args=[experiment.share_token])
    for body in (stranger.get(link).content.decode(), stranger.get(f"{link}result.json").content.decode()):
        assert alice.email not in body and alice.name not in body
    fragment = stranger.get(link, headers={"HX-Request": "true"})
    assert "HX-Request" in fragment.headers["Vary"]
    assert "HX-Request" in stranger.get(link).headers["Vary"]


def test_the_documents_goals_are_charts_by_how_often_a_job_is_computed() -> None:
    def goal(message: Message) -> dict[str, Any]:
        return {**message.to_json(), "measured": 0.1, "worst": 0.2, "bound": None, "is_met": None}

    single, pairs = ([Message(way), "host_scale_check"] for way in ("way_single", "way_pairs"))
    picking = Message("picking_errors")
    messages = [
        Message("goal_versions_pairs"),
        Message("goal_cpu_time"),
        Message("goal_picking", cheat=picking, way=single),
        Message("goal_picking", cheat=picking, way=pairs),
        Message("goal_one_time_way", way=[Message("way_single")]),
        Message("goal_honest", way=[Message("way_single")]),
    ]
    charts = goal_charts([{**Variant().label.to_json(), "goals": [goal(message) for message in messages]}])
    assert [(chart["title"], len(chart["labels"])) for chart in charts] == [
        ("Device neutrality: equal jobs, equal credit", 1),
        ("Limited project neutrality: equal time, equal credit", 1),
        ("Cheat resistance, single results", 1),
        ("Cheat resistance, two replicas", 1),
        ("Cheat resistance: an absurd run time", 1),
        ("Cheat resistance: loss of honest computers", 1),
    ]
    assert charts[4]["series"][0] == {"name": "published, single results", "values": [0.1], "worst": [0.2]}
    # The title of the chart supplies the rest.
    assert charts[1]["labels"] == ["difference between credit for CPU time here and at another project"]
    assert charts[4]["labels"] == ["greatest grant over the default (single results)"]


def test_the_form_says_what_each_limit_means(signed_in: Client, public: None) -> None:
    text = text_of(signed_in.get(reverse("credit_experiment_new")))
    assert "Maximum host factor (max_host_scale)" in text
    assert "The upper limit of a host’s factor. If empty, the value of the rule set applies." in text


def test_the_documents_goals_are_asked_for_only_if_they_can_be_measured_in_time(bob: User) -> None:
    two = Experiment([Variant(), Variant("letter")], nseeds=1, is_document=True)
    ask(bob, "Two", two, is_operator=True)
    three = Experiment([Variant()], nseeds=3, is_document=True)
    with pytest.raises(ExperimentRefusedError, match="You chose 3 of these; the limit is 2"):
        ask(bob, "Three", three, is_operator=True)


@pytest.mark.django_db(transaction=True)
def test_shared_twice_at_the_same_moment_it_has_one_link(alice: User) -> None:
    experiment = CreditExperiment.objects.create(owner=alice, title="Twice", settings=SMALL.as_json())
    with meanwhile(lambda: requests.share(experiment)) as begin:
        with transaction.atomic():
            requests.share(experiment)
            experiment.refresh_from_db()
            first = experiment.share_token
            second = begin()
        second.result()
    experiment.refresh_from_db()
    assert first and experiment.share_token == first
