"""A volunteer's tasks, the page of one, workunits and apps: what they show, and to whom."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from credit.engine.explanation import ClaimRule, GrantRule
from credit.models import App, Outcome, PartState, Result, ResultPart, ServerState, UserCredit, ValidateState, Workunit
from credit.pages.explanation import explain_parts
from credit.pages.task_reads import PAGE_TASKS
from credit.statistics.feeder import feed
from portal.models import Host, User
from tests.support.accounting_factories import make_host
from tests.support.credit_factories import NOON, make_app, make_result, make_success, make_version, make_workunit
from tests.support.page_text import text_of


@pytest.fixture
def app(db: None) -> App:
    return make_app("alpine", user_friendly_name="Alpine glaciers")


@pytest.fixture
def granted(app: App, studio: Host) -> Result:
    """3,000 s at 4 GFLOPS = 1.2e13 FLOPs, × 0.5 × 2 = 1.2e13 FLOPs × 200 / 86400e9 = 27.78 credits."""
    version = make_version(app)
    credit = 1.2e13 * 200 / 86400e9
    return make_success(
        make_workunit(app, fpops_est=1e13, canonical_credit=credit),
        studio,
        app_version=version,
        validate_state=ValidateState.VALID,
        claim_rule=ClaimRule.VERSION_AND_HOST,
        raw_pfc=1.2e13,
        claimed_pfc=1.2e13,
        claimed_credit=credit,
        is_approximate=False,
        version_scale=0.5,
        host_scale=2.0,
        on_probation=False,
        version_pfc_n=412,
        version_pfc_avg=1.31,
        host_pfc_n=12,
        host_pfc_avg=0.655,
        grant_rule=GrantRule.MEAN_OF_NORMAL,
        granted_credit=credit,
        granted_at=NOON,
    )


def test_without_tasks_the_page_says_how_to_get_some(signed_in: Client) -> None:
    text = text_of(signed_in.get(reverse("tasks")))
    assert "No tasks yet" in text
    assert "Connect a computer" in text


def test_a_granted_task_is_listed_with_its_state_and_credit(signed_in: Client, alice: User, granted: Result) -> None:
    UserCredit.objects.create(user=alice, total_credit=27.78, expavg_credit=2.5)
    text = text_of(signed_in.get(reverse("tasks")))
    assert f"{granted.name} valid Alpine glaciers" in text
    assert "27.8" in text


@pytest.mark.parametrize(
    ("fields", "state", "word"),
    [
        ({"server_state": ServerState.IN_PROGRESS}, "progress", "in progress"),
        ({"server_state": ServerState.OVER, "outcome": Outcome.CLIENT_ERROR, "exit_status": 3}, "error", "error"),
        ({"server_state": ServerState.OVER, "outcome": Outcome.NO_REPLY}, "error", "no reply"),
    ],
)
def test_each_state_has_its_list(
    signed_in: Client, app: App, studio: Host, fields: dict[str, int], state: str, word: str
) -> None:
    far = NOON + dt.timedelta(days=36_500)
    task = make_result(make_workunit(app), studio, **{"deadline_at": far, **fields})
    assert f"{task.name} {word}" in text_of(signed_in.get(reverse("tasks"), {"state": state}))
    for other in {"progress", "pending", "valid", "invalid", "error"} - {state}:
        assert task.name not in text_of(signed_in.get(reverse("tasks"), {"state": other}))


def test_the_ladder_shows_each_factor_and_the_grant(signed_in: Client, granted: Result) -> None:
    text = text_of(signed_in.get(reverse("task", args=[granted.pk])))
    assert "Why this credit" in text
    for number in ("3000", "0.5", "412", "0.655", "27.78"):
        assert number in text


def test_an_exit_code_is_told_in_words(signed_in: Client, app: App, studio: Host) -> None:
    task = make_result(
        make_workunit(app), studio, server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR, exit_status=196
    )
    assert "the task exceeded its disk space limit" in text_of(signed_in.get(reverse("task", args=[task.pk])))


@pytest.fixture
def in_parts(app: App, studio: Host) -> Result:
    """A job in progress: 1,000 s and 500 s more at 4 GFLOPS, × 0.5 = 4.63 and 2.31 credits."""
    result = make_result(
        make_workunit(app), studio, app_version=make_version(app), partial_elapsed_secs=1500.0, partial_credit=6.9444
    )
    for begin, end in ((0.0, 1000.0), (1000.0, 1500.0)):
        raw = (end - begin) * 4e9
        credit = raw / 2 * 200 / 86400e9
        ResultPart.objects.create(
            result=result,
            granted_at=NOON,
            from_secs=begin,
            to_secs=end,
            credit=credit,
            claim_rule=ClaimRule.VERSION_AND_HOST,
            raw_pfc=raw,
            claimed_pfc=raw / 2,
            claimed_credit=credit,
            is_approximate=False,
            version_scale=0.5,
            host_scale=1.0,
            version_pfc_n=412,
            version_pfc_avg=1.31,
            host_pfc_n=12,
            host_pfc_avg=1.31,
        )
    return result


def test_each_part_of_a_job_is_shown_with_its_reasons(signed_in: Client, in_parts: Result) -> None:
    text = text_of(signed_in.get(reverse("task", args=[in_parts.pk])))
    assert "The rest is granted when the task is finished and validated." in text
    shown = text[text.index("Credited while running") :]
    # The newest first.
    assert shown.index("2.31") < shown.index("4.63")
    for expected in ("17 min to 25 min of run time", "× factor of the version", "Granted (credit)"):
        assert expected in shown.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("outcome", [Outcome.CLIENT_ERROR, Outcome.NO_REPLY, Outcome.CLIENT_DETACHED])
def test_what_a_job_got_in_parts_is_shown_when_it_does_not_end_well(
    signed_in: Client, in_parts: Result, outcome: int
) -> None:
    Result.objects.update(server_state=ServerState.OVER, outcome=outcome)
    text = text_of(signed_in.get(reverse("task", args=[in_parts.pk])))
    assert "You keep these credits although the task did not end with a valid result." in text
    assert "6.94" in text_of(signed_in.get(reverse("tasks")))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (PartState.PROVISIONAL, "provisional credit among these is about to be taken back"),
        (PartState.CONFIRMED, "confirmed 20"),
        (PartState.TAKEN_BACK, "taken back 20"),
    ],
)
def test_the_state_of_parts_is_shown(signed_in: Client, in_parts: Result, state: int, expected: str) -> None:
    ResultPart.objects.update(state=state, settled_at=None if state == PartState.PROVISIONAL else NOON)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    page = signed_in.get(reverse("task", args=[in_parts.pk]))
    assert expected in text_of(page)
    assert ("<s>" in page.content.decode()) == (state == PartState.TAKEN_BACK)


def test_a_part_that_the_maximum_cut_says_so(in_parts: Result) -> None:
    ResultPart.objects.filter(from_secs=1000).update(credit=0.5)
    *_, cut = explain_parts(ResultPart.objects.all(), in_parts, in_parts.workunit)
    assert [step.label for step in cut.steps][-2:] == ["Maximum (credit)", "Granted (credit)"]
    assert cut.steps[-1].number == 0.5


def test_a_part_whose_factor_is_at_the_apps_limit_names_the_limit(in_parts: Result) -> None:
    App.objects.update(max_host_scale=5)
    # 30 / 1, and 5 at most
    ResultPart.objects.update(
        host_scale=5, host_pfc_n=50, host_pfc_avg=1, version_pfc_n=500, version_pfc_avg=30, version_scale=1
    )
    in_parts.refresh_from_db()
    for part in explain_parts(ResultPart.objects.all(), in_parts, in_parts.workunit):
        assert "limited to 5, the maximum for this app" in " ".join(step.sentence for step in part.steps)


def test_wingmen_stay_nameless(signed_in: Client, granted: Result, bob: User) -> None:
    other = Host.objects.create(owner=bob, domain_name="bobs-secret-box")
    theirs = make_success(granted.workunit, other, name="theirs_1")
    for page in (reverse("task", args=[granted.pk]), reverse("workunit", args=[granted.workunit_id])):
        body = signed_in.get(page).content.decode()
        assert "theirs_1" in body
        assert "another volunteer’s" in body
        assert "bobs-secret-box" not in body
        assert bob.email not in body
        assert reverse("task", args=[theirs.pk]) not in body


def test_which_jobs_are_spot_checked_is_not_told_before_they_are_decided(
    client: Client, granted: Result, bob: User, operator: User
) -> None:
    App.objects.update(adaptive_replication=True)
    Workunit.objects.update(canonical_result=None, canonical_credit=None, min_quorum=2, target_nresults=2)
    make_success(granted.workunit, Host.objects.create(owner=bob, domain_name="other"), name="theirs_1")
    pages = [reverse("task", args=[granted.pk]), reverse("workunit", args=[granted.workunit_id])]

    def told(user: User) -> list[bool]:
        client.force_login(user)
        bodies = [client.get(page).content.decode() for page in pages]
        return ["theirs_1" in body or "matching outputs" in body for body in bodies]

    assert granted.user is not None
    assert (told(granted.user), told(operator)) == ([False, False], [True, True])
    Workunit.objects.update(canonical_result=granted)
    assert told(granted.user) == [True, True]


def test_outputs_that_could_not_be_checked_are_said_to_all_and_why_to_operators_only(
    client: Client, granted: Result, alice: User, operator: User
) -> None:
    why = "IntegrityError: Failing row contains (secret)"
    Workunit.objects.update(need_validate=True, validate_fault=why, validate_after=NOON)
    page = reverse("workunit", args=[granted.workunit_id])
    for who, is_told in ((alice, False), (operator, True)):
        client.force_login(who)
        text = text_of(client.get(page))
        assert "The outputs could not be compared." in text
        assert ("secret" in text) is is_told
    listed = client.get("/admin/credit/workunit/", {"validate_fault__isempty": "0"})
    assert granted.workunit.name in listed.content.decode()
    assert client.get("/admin/credit/workunit/", {"validate_fault__isempty": "1"}).context["cl"].result_count == 0
    Workunit.objects.update(need_validate=False)
    assert "could not be checked" not in text_of(client.get(page))


def test_somebody_elses_task_does_not_exist_but_for_operators(
    client: Client, granted: Result, bob: User, operator: User
) -> None:
    pages = [reverse("task", args=[granted.pk]), reverse("workunit", args=[granted.workunit_id])]
    for who, status in ((bob, 404), (operator, 200)):
        client.force_login(who)
        assert [client.get(page).status_code for page in pages] == [status, status]


def test_recent_average_credit_is_that_of_today_however_old_the_last_grant_is(
    signed_in: Client, alice: User, app: App
) -> None:
    # Two weeks are two half-lives: 400 / 4 and 640 / 4.
    last = timezone.now() - dt.timedelta(days=14)
    make_version(app, expavg_credit=640, expavg_at=last)
    UserCredit.objects.create(user=alice, total_credit=5000, expavg_credit=400, expavg_at=last)
    assert "Recent average 100 per day" in text_of(signed_in.get(reverse("tasks")))
    versions = text_of(signed_in.get(reverse("app", args=[app.name])))
    assert "160" in versions and "640" not in versions


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"computer": "11"}, "There is no parameter “computer”. There are: state, host, app, before."),
        ({"state": "odd"}, "There are no tasks in the state “odd”. States are: "),
        ({"host": "x"}, "“x” is not one of your computers."),
        ({"before": "9" * 30}, "is not the number of a task."),
        ({"app": "none"}, "“none” is not an app of this project."),
        ({"app": "no\0ne"}, "is not an app of this project."),
    ],
)
def test_an_address_that_makes_no_sense_says_so_and_shows_all(
    signed_in: Client, query: dict[str, str], words: str
) -> None:
    assert words in text_of(signed_in.get(reverse("tasks"), query))


def test_the_computer_of_another_is_one_that_is_not_there(signed_in: Client, bob: User) -> None:
    host = make_host(bob, "secret-name")
    shown = text_of(signed_in.get(reverse("tasks"), {"host": host.pk}))
    assert f"“{host.pk}” is not one of your computers." in shown and "secret-name" not in shown


def test_the_list_is_paged_and_asks_as_often_whatever_its_length(
    signed_in: Client, app: App, studio: Host, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    tasks = [make_success(make_workunit(app), studio) for _ in range(PAGE_TASKS + 3)]
    with django_assert_max_num_queries(10):
        first = signed_in.get(reverse("tasks"))
    assert tasks[-1].name in text_of(first)
    assert tasks[0].name not in text_of(first)
    rest = signed_in.get(reverse("tasks"), {"before": tasks[3].pk}, headers={"HX-Target": "more-tasks"})
    assert [task.name in text_of(rest) for task in tasks[:4]] == [True, True, True, False]
    assert b"<html" not in rest.content


def test_the_page_of_an_app_tells_versions_apart(signed_in: Client, app: App, granted: Result) -> None:
    assert granted.app_version is not None
    type(granted.app_version).objects.filter(pk=granted.app_version.pk).update(
        pfc_n=412, pfc_avg=1.31, pfc_scale=0.92, total_credit=98_765.4, ngranted=431
    )
    text = text_of(signed_in.get(reverse("app", args=["alpine"])))
    # 27.78 credits in 3000 s: 27.78 × 3600 / 3000 = 33.3 an hour
    assert "412 1.31 0.92 27.8 33.3 0 % of 1" in text
    assert "98 765 for 431" in " ".join(text.split())


def test_apps_are_listed(signed_in: Client, app: App) -> None:
    assert "Alpine glaciers CreditNew" in text_of(signed_in.get(reverse("apps")))
    assert signed_in.get(reverse("app", args=["none"])).status_code == 404


def test_a_stranger_sees_which_apps_there_are(client: Client, app: App) -> None:
    shown = client.get(reverse("apps"))
    assert "Alpine glaciers CreditNew" in text_of(shown)
    # How it grants is for who is signed in.
    assert reverse("app", args=[app.name]) not in shown.content.decode()


def test_an_app_of_weight_0_is_called_paused(signed_in: Client, app: App) -> None:
    make_app("abacus", user_friendly_name="Abacus", weight=0)
    assert "Abacus paused CreditNew" in text_of(signed_in.get(reverse("apps")))
    assert "Abacus paused" in text_of(signed_in.get(reverse("app", args=["abacus"])))


def test_finished_apps_are_listed_last_because_tasks_link_to_them(signed_in: Client, app: App) -> None:
    make_app("abacus", user_friendly_name="Abacus", is_deprecated=True)
    text = text_of(signed_in.get(reverse("apps")))
    assert "Abacus finished CreditNew" in text
    assert text.index("Alpine glaciers") < text.index("Abacus")
    assert "Abacus finished" in text_of(signed_in.get(reverse("app", args=["abacus"])))


@pytest.mark.parametrize(("beside_cpu", "shown"), [(True, "0.25"), (False, "0.5 set")])
def test_the_factor_of_a_version_is_the_one_in_force(signed_in: Client, app: App, beside_cpu: bool, shown: str) -> None:
    gpu: dict[str, Any] = {"processor_type": "NVIDIA", "gpu_usage": 1, "cross_project_scale": 0.5}
    make_version(app, plan_class="cuda", pfc_n=100, pfc_avg=8.0, **gpu)
    if beside_cpu:
        # X is 2, so the factor of the GPU version is 2 / 8.
        make_version(app, pfc_n=100, pfc_avg=2.0)
    feed(NOON)
    assert f"100 8 {shown} –" in text_of(signed_in.get(reverse("app", args=["alpine"])))
