"""A volunteer's preferences for this project are saved on a page, sent to clients, and decide what they get."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from credit.models import App, Outcome, Result
from portal.models import ApiToken, Host, User
from scheduler.engine.project_preferences import ProjectPreferences, bounded
from scheduler.models import BetaTest, BetaTester, PlanClass, UserPreferences
from scheduler.programs import catalogue
from scheduler.project_preferences.save import read_saved, save
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.rest_api import bearer
from tests.support.scheduler_clients import computer_of, gpu, messages, names, value

pytestmark = pytest.mark.django_db

PAGE = "/project/preferences/"
ALL_TYPES = ["CPU", "NVIDIA", "ATI", "intel_gpu", "apple_gpu"]
USUAL: dict[str, Any] = {"other_apps": "on", "tests": "on", "types": ALL_TYPES}


@pytest.fixture
def app(db: None) -> App:
    app = make_app(name="fold", max_jobs_per_day_init=1000)
    make_version(app)
    return app


def waiting(app: App, number: int = 1, **fields: Any) -> None:
    for _ in range(number):
        make_result(make_workunit(app, output_files=[], **fields))


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def apps_of(reply: str) -> set[str]:
    return set(Result.objects.filter(name__in=names(reply, "result")).values_list("app__name", flat=True))


def test_a_place_has_a_whole_set_of_its_own_until_that_is_removed(app: App, alice: User) -> None:
    computer = computer_of(alice)
    assert "<project_preferences>" not in computer.ask()
    page = browser(alice)
    assert page.post(PAGE, USUAL | {"max_jobs": "3", "apps": [str(app.pk)]}).status_code == 302
    assert page.post(f"{PAGE}?place=home", USUAL | {"max_cpus": "2"}).status_code == 302
    assert read_saved(alice) == {"": bounded(apps=[app.pk], max_jobs=3), "home": bounded(max_cpus=2)}
    reply = computer.ask()
    assert value(reply, "max_jobs") == "3"
    assert "<max_cpus>" not in reply
    Host.objects.update(venue="home")
    reply = computer.ask()
    assert (value(reply, "max_cpus"), "<max_jobs>" in reply) == ("2", False)
    assert b"This place has no preferences of its own" not in page.get(f"{PAGE}?place=home").content
    page.post(f"{PAGE}?place=home", {"forget": "1"})
    assert value(computer.ask(), "max_jobs") == "3"
    # A client keeps what it was told last, so it is told that there is nothing any more.
    page.post(PAGE, {"forget": "1"})
    reply = computer.ask()
    assert "<project_preferences>" in reply and "<max_jobs>" not in reply


def test_saving_leaves_the_general_preferences_alone(app: App, alice: User) -> None:
    UserPreferences.objects.create(user=alice, mod_time=1.6e9, text="<max_ncpus_pct>50</max_ncpus_pct>")
    save(alice, "", bounded(max_jobs=1))
    reply = computer_of(alice).ask()
    assert "<max_ncpus_pct>50<" in reply and "<max_jobs>1<" in reply


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_jobs": "10001"}, "max_jobs"),
        ({"max_jobs": "0"}, "max_jobs"),
        ({"max_cpus": "9" * 400}, "max_cpus"),
        ({"max_threads": "-1"}, "max_threads"),
        ({"apps": ["999999999999999999999"]}, "apps"),
        ({"types": []}, "types"),
        ({"types": ["TPU"]}, "types"),
        ({"resource_share": "nan"}, "resource_share"),
        ({"resource_share": "1e9"}, "resource_share"),
    ],
)
def test_what_is_beyond_a_limit_is_refused_by_its_field(
    app: App, alice: User, given: dict[str, Any], field: str
) -> None:
    response = browser(alice).post(PAGE, USUAL | given)
    assert response.status_code == 422
    assert list(response.context["form"].errors) == [field]
    assert not UserPreferences.objects.exists()


def test_an_unknown_place_is_not_taken_for_another_one(app: App, alice: User) -> None:
    assert browser(alice).post(f"{PAGE}?place=moon", USUAL).status_code == 404
    with pytest.raises(ValueError, match="moon"):
        save(alice, "moon", ProjectPreferences())


def test_only_chosen_apps_send_jobs_and_others_only_if_those_have_none(app: App, alice: User) -> None:
    other = make_app(name="dock", max_jobs_per_day_init=1000)
    make_version(other)
    waiting(app, 2)
    waiting(other, 8)
    save(alice, "", bounded(apps=[app.pk], other_apps=False))
    computer = computer_of(alice, ncpus=8)
    assert apps_of(computer.ask(0, 2)) == {"fold"}
    reply = computer.ask(0, 2)
    assert names(reply, "result") == []
    assert messages(reply) == [
        "No tasks sent: your preferences for this project leave out the applications that your computer could run",
        "No tasks sent: no tasks are available at the moment",
    ]
    save(alice, "", bounded(apps=[app.pk]))
    catalogue.forget()
    assert apps_of(computer.ask(0, 2)) == {"dock"}
    waiting(app, 2)
    catalogue.forget()
    assert apps_of(computer.ask(0, 2)) == {"fold"}


def test_most_tasks_at_a_time_counts_those_of_all_apps_and_processors(app: App, alice: User) -> None:
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1)
    waiting(app, 10)
    save(alice, "", bounded(max_jobs=3))
    computer = computer_of(alice, ncpus=8, coprocs=gpu(instances=1))
    assert len(names(computer.ask(0, 8), "result")) == 3
    notices = messages(computer.ask(0, 8))
    assert notices == ["No tasks sent: this computer has as many tasks as your preferences for this project allow"]


def test_each_computer_follows_its_own_place_even_if_it_has_more_than_is_allowed_there(
    app: App, alice: User, settings: Settings
) -> None:
    settings.MAX_JOBS_IN_PROGRESS = 2
    waiting(app, 20)
    save(alice, "home", bounded(max_jobs=1))
    save(alice, "work", bounded(max_cpus=1))
    computers = [computer_of(alice, ncpus=8) for _ in range(4)]
    for computer, venue in zip(computers, ("home", "work", "school", "moon"), strict=True):
        computer.ask()
        Host.objects.filter(pk=computer.hostid).update(venue=venue)
    # A place without preferences, and one that clients do not know, follow those for everywhere: here none.
    assert [len(names(computer.ask(0, 4), "result")) for computer in computers] == [1, 2, 4, 4]
    Host.objects.update(venue="home")
    for computer in computers:
        assert "as many tasks as your preferences" in messages(computer.ask(0, 4))[0]
    Host.objects.update(venue="")
    assert len(names(computers[0].ask(0, 4), "result")) == 4


@pytest.mark.parametrize(
    ("chosen", "nagain"),
    [({"other_apps": True}, 4), ({"other_apps": False}, 2), ({"max_jobs": 3}, 3), ({"refused_types": ["CPU"]}, 0)],
)
def test_who_chooses_otherwise_and_resets_the_project_gets_back_what_they_still_want(
    app: App, alice: User, chosen: dict[str, Any], nagain: int
) -> None:
    other = make_app(name="dock", max_jobs_per_day_init=1000)
    make_version(other)
    computer = computer_of(alice, ncpus=8)
    for each in (app, other):
        waiting(each, 2)
        catalogue.forget()
        computer.ask(0, 2)
    assert len(computer.jobs) == 4
    save(alice, "", bounded(apps=[app.pk], **chosen))
    # The client has dropped its jobs.
    computer.jobs.clear()
    assert len(names(computer.ask(), "result")) == nagain
    assert Result.objects.filter(outcome=Outcome.CLIENT_DETACHED).count() == 4 - nagain


def test_refused_processors_get_nothing_though_the_client_asks_for_them(app: App, alice: User) -> None:
    waiting(app)
    save(alice, "", bounded(refused_types=["CPU"]))
    reply = computer_of(alice).ask(0, 1)
    assert names(reply, "result") == [] and "<no_cpu>1</no_cpu>" in reply
    assert "your preferences do not allow this project to use the requested processors" in messages(reply)[0]


@pytest.mark.parametrize(
    ("chosen", "nthreads"),
    [
        ({}, 8),
        ({"max_cpus": 4}, 4),
        ({"max_threads": 3}, 3),
        ({"max_cpus": 2, "max_threads": 3}, 2),
        ({"max_cpus": 1024, "max_threads": 1024}, 8),
        # The class needs two at least.
        ({"max_cpus": 1}, None),
        ({"max_threads": 1}, None),
    ],
)
def test_a_job_uses_as_many_processors_as_the_volunteer_allows(
    app: App, alice: User, chosen: dict[str, Any], nthreads: int | None
) -> None:
    app.versions.all().delete()
    PlanClass.objects.create(name="mt", min_ncpus=2, max_ncpus=16, nthreads_cmdline=True)
    make_version(app, plan_class="mt")
    waiting(app)
    save(alice, "", bounded(**chosen))
    reply = computer_of(alice, ncpus=8).ask(0, 8)
    if nthreads is None:
        assert "your preferences for this project allow fewer processors than its tasks need" in messages(reply)[0]
    else:
        assert (value(reply, "avg_ncpus"), value(reply, "cmdline")) == (str(nthreads), f"--nthreads {nthreads}")


def test_who_tests_may_keep_tests_away_from_a_place(app: App, alice: User) -> None:
    tested = make_version(app, version_num=200)
    BetaTest.objects.create(app_version=tested, with_volunteers=True)
    BetaTester.objects.create(user=alice)
    save(alice, "work", bounded(tests=False))
    waiting(app, 2)
    computer = computer_of(alice)
    assert value(computer.ask(0, 1), "version_num") == "200"
    Host.objects.update(venue="work")
    assert value(computer.ask(0, 2), "version_num") != "200"


def test_programs_of_their_owner_read_them(app: App, alice: User) -> None:
    save(alice, "home", bounded(max_jobs=3))
    headers = bearer(alice, ApiToken.Scope.PROJECTS)
    places = Client().get("/api/v1/project-preferences/", headers=headers).json()["results"]
    assert [(row["place"], row["max_jobs"]) for row in places] == [("", None), ("home", 3)]
