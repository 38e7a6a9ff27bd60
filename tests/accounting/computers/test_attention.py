"""What wants a volunteer's attention, where it is shown, and at what cost."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.computers.attention import AtProject, Attention, Concern, are_failing, idle_types, read_attention
from accounting.engine.states import DayFlag
from accounting.models import HostProject, Project, ProjectVersion
from portal.models import Host, MailChoice, User
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
THREE_DAYS = 3 * DAY
ALL: frozenset[str] | None = None


def said(*troubles: tuple[str, str, dt.datetime], in_store_secs: int = 0, **fields: Any) -> AtProject:
    usual = AtProject(
        name="Alpha",
        is_paused=False,
        types=ALL,
        excluded_types=frozenset(),
        troubles=troubles,
        in_store_secs=in_store_secs,
    )
    return replace(usual, **fields)


def no_work(type_: str, since: dt.datetime) -> tuple[str, str, dt.datetime]:
    return "no_work", type_, since


# --- the rules ------------------------------------------------------------------------------------------


def test_a_type_is_idle_once_no_project_has_had_work_for_a_day() -> None:
    longer, shorter = said(no_work("CPU", NOW - 9 * DAY)), said(no_work("CPU", NOW - DAY), name="Beta")
    assert idle_types(["CPU"], [longer, shorter], NOW) == [("CPU", NOW - DAY, ["Alpha", "Beta"])]
    assert idle_types(["CPU"], [longer, shorter], NOW - dt.timedelta(seconds=1)) == []


def test_one_project_with_work_is_enough() -> None:
    assert idle_types(["CPU"], [said(no_work("CPU", NOW - 9 * DAY)), said(name="Beta")], NOW) == []


def test_jobs_in_store_keep_the_processors_busy() -> None:
    lacking = no_work("CPU", NOW - 2 * DAY)
    assert idle_types(["CPU"], [said(lacking, in_store_secs=60)], NOW) == []
    assert idle_types(["CPU"], [said(lacking)], NOW) != []


def test_a_project_that_does_not_answer_has_no_work_for_anything() -> None:
    failing = said(("failing", "", NOW - 2 * DAY))
    assert [type_ for type_, _, _ in idle_types(["CPU", "NVIDIA"], [failing], NOW)] == ["CPU", "NVIDIA"]


def test_projects_without_programs_for_a_gpu_say_nothing_of_it() -> None:
    for_cpus = said(types=frozenset({"CPU"}), name="Beta")
    lacking = said(no_work("NVIDIA", NOW - 2 * DAY))
    assert idle_types(["NVIDIA"], [lacking, for_cpus], NOW) == [("NVIDIA", NOW - 2 * DAY, ["Alpha"])]
    assert idle_types(["NVIDIA"], [for_cpus], NOW) == []


def test_what_rests_or_may_not_use_a_type_does_not_serve_it() -> None:
    lacking = said(no_work("CPU", NOW - 2 * DAY))
    assert idle_types(["CPU"], [lacking, said(is_paused=True)], NOW) != []
    assert idle_types(["CPU"], [lacking, said(excluded_types=frozenset({"CPU"}))], NOW) != []
    assert idle_types(["CPU"], [said(is_paused=True)], NOW) == []


@pytest.mark.parametrize(
    ("succeeded", "failed", "wrong"), [(0, 2, False), (0, 3, True), (12, 3, True), (13, 3, False), (0, 0, False)]
)
def test_jobs_fail_if_three_and_a_fifth_of_all_do(succeeded: int, failed: int, wrong: bool) -> None:
    # 3 of 15 are a fifth, 3 of 16 are less.
    assert are_failing(succeeded, failed) is wrong


# --- what is read -----------------------------------------------------------------------------------------


@pytest.fixture
def studio_here(studio: Host) -> Host:
    Host.objects.filter(pk=studio.pk).update(last_contact_at=NOW)
    studio.refresh_from_db()
    return studio


def of(user: User, now: dt.datetime = NOW) -> list[Attention]:
    return read_attention(user, list(Host.objects.filter(owner=user)), now, THREE_DAYS)


def report(host: Host, project: Project, *troubles: tuple[str, str, dt.datetime], **fields: object) -> None:
    state = {"troubles": [[kind, type_, int(since.timestamp())] for kind, type_, since in troubles]}
    HostProject.objects.create(host=host, project=project, listed=True, state=state, **fields)


def test_a_silent_computer_is_said_to_be_so_and_nothing_else(studio_here: Host) -> None:
    report(studio_here, make_project(), no_work("CPU", NOW))
    (line,) = of(studio_here.owner, NOW + THREE_DAYS)
    assert (line.concern, line.since, line.text) == (Concern.SILENT, NOW, "has not synced for 3 days.")


def test_a_computer_without_work_names_what_it_waits_for(studio_here: Host) -> None:
    alpha = make_project("Alpha")
    report(studio_here, alpha, no_work("CPU", NOW - 2 * DAY))
    (line,) = of(studio_here.owner)
    assert line.concern == Concern.NO_WORK
    assert line.text == (
        "has had no work for its processors since 8 Mar 2026, 12:00 UTC: Alpha has none or does not answer."
    )
    ProjectVersion.objects.create(project=alpha, processor_type="NVIDIA")
    assert of(studio_here.owner) == []


def test_failing_jobs_are_counted_per_project_over_a_week(studio_here: Host) -> None:
    alpha, beta = make_project("Alpha"), make_project("Beta")
    credit(studio_here, alpha, "2026-03-04", (0, 0, 0, 0, 1, 2))
    credit(studio_here, alpha, "2026-03-10", (0, 0, 0, 0, 1, 2))
    credit(studio_here, alpha, "2026-03-03", (0, 0, 0, 0, 90, 9))
    credit(studio_here, beta, "2026-03-10", (0, 0, 0, 0, 90, 9))
    (line,) = of(studio_here.owner)
    # 2 + 2 of 1 + 2 + 1 + 2; the third of March is eight days ago, and 9 of 99 are few.
    assert line.text == "failed 4 of 6 tasks of Alpha in the last 7 days."


def test_capped_reports_are_told_while_something_waits(studio_here: Host) -> None:
    alpha = make_project("Alpha")
    credit(studio_here, alpha, "2026-03-09", (1, 0, 0, 0, 0, 0), flags=DayFlag.CAPPED)
    waiting = HostProject.objects.filter(host=studio_here)
    waiting.update(pending=[0, 0, 5, 0, 0, 0])
    # Late reports of honest computers come once.
    assert of(studio_here.owner) == []
    credit(studio_here, alpha, "2026-03-10", (1, 0, 0, 0, 0, 0), flags=DayFlag.CAPPED | DayFlag.RESET)
    (line,) = of(studio_here.owner)
    assert line.text == "reported more than it could have done on 2 of the last 7 days. The rest is waiting."
    waiting.update(pending=[0] * 6)
    assert of(studio_here.owner) == []


def test_losses_are_told_with_their_number(studio_here: Host) -> None:
    make_note(studio_here, "dropped", "2026-03-04", detail="cpu_ec")
    make_note(studio_here, "reset", "2026-03-10")
    (line,) = of(studio_here.owner)
    assert (line.concern, "1 note" in line.text) == (Concern.NOT_COUNTED, True)


def test_retired_and_merged_computers_want_nothing(studio_here: Host) -> None:
    make_host(studio_here.owner, "old", retired_at=NOW)
    make_host(studio_here.owner, "gone", merged_into=studio_here)
    assert of(studio_here.owner) == []


# --- where it is shown ----------------------------------------------------------------------------------


def test_home_list_and_page_say_it(client: Client, studio: Host) -> None:
    now = timezone.now()
    Host.objects.filter(pk=studio.pk).update(last_contact_at=now)
    report(studio, make_project("Alpha"), no_work("CPU", now - 2 * DAY))
    credit(studio, make_project("Beta"), str(now.date()), (0, 0, 0, 0, 0, 3))
    client.force_login(studio.owner)
    home = page_of(client, "/home/").words
    assert "studio has had no work for its processors" in home and "studio failed 3 of 3 tasks of Beta" in home
    assert "studio no work failing tasks" in page_of(client, "/computers/").words
    page = page_of(client, f"/computers/{studio.pk}/").words
    assert "This computer has had no work for its processors" in page
    assert "This computer failed 3 of 3 tasks of Beta" in page


def test_the_owner_says_when_a_computer_counts_as_silent(client: Client, studio: Host) -> None:
    Host.objects.filter(pk=studio.pk).update(last_contact_at=timezone.now() - 4 * DAY)
    client.force_login(studio.owner)
    assert "studio silent" in page_of(client, "/computers/").words
    MailChoice.objects.create(user=studio.owner, silent_days=5)
    assert "studio silent" not in page_of(client, "/computers/").words


def test_the_list_of_computers_costs_the_same_for_many(
    client: Client, studio: Host, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(studio.owner)
    project = make_project()
    report(studio, project, no_work("CPU", timezone.now() - 2 * DAY))
    # Session, user, whether the address is confirmed; computers, totals, today, when silent; revoked keys, programs,
    # types, projects, jobs, capped days, notes; projects that there are.
    with django_assert_num_queries(16):
        client.get("/computers/")
    for number in range(20):
        report(make_host(studio.owner, f"node-{number}"), project, no_work("CPU", timezone.now() - 2 * DAY))
    with django_assert_num_queries(16):
        client.get("/computers/")


def test_many_silent_computers_are_told_of_in_one_line(client: Client, alice: User) -> None:
    for number in range(6):
        make_host(alice, f"node-{number}", last="2026-01-02")
    client.force_login(alice)
    words = page_of(client, "/home/").words
    assert "6 computers have not synced for several days: node-0, node-1, node-2, node-3 and 2 more" in words


@pytest.mark.parametrize(
    ("changed", "is_told"),
    [
        pytest.param({}, True, id="installed again"),
        pytest.param({"name": "other"}, False, id="another name"),
        pytest.param({"p_model": "Core i9"}, False, id="another processor"),
        pytest.param({"first": "2026-03-07"}, False, id="both reported at the same time"),
        pytest.param({"first": "2026-03-02"}, False, id="more than a week ago"),
    ],
)
def test_a_computer_that_was_installed_again_may_be_merged(
    changed: dict[str, str], is_told: bool, signed_in: Client, alice: User
) -> None:
    make_host(alice, "studio", last="2026-03-08")
    newer = make_host(alice, **{"name": "studio", "first": "2026-03-08", "last": "2026-03-10", **changed})
    attention = read_attention(alice, list(Host.objects.all()), NOW, dt.timedelta(days=30))
    told = [line for line in attention if line.concern is Concern.SECOND_RECORD]
    assert [line.host_id for line in told] == ([newer.pk] if is_told else [])


def test_two_computers_of_one_name_are_not_offered_for_merging_before_both_had_time_to_report(alice: User) -> None:
    make_host(alice, "studio", last="2026-03-09")
    Host.objects.update(last_contact_at=NOW - DAY + dt.timedelta(seconds=1))
    make_host(alice, "studio", first="2026-03-10", last="2026-03-10")
    assert not read_attention(alice, list(Host.objects.all()), NOW, dt.timedelta(days=30))


def test_home_offers_to_merge_a_computer_that_was_installed_again(signed_in: Client, alice: User) -> None:
    today = timezone.now()
    old, new = (make_host(alice, "studio") for _ in range(2))
    Host.objects.filter(pk=old.pk).update(last_contact_at=today - 2 * DAY)
    Host.objects.filter(pk=new.pk).update(created_at=today - 2 * DAY, last_contact_at=today)
    page = page_of(signed_in, "/home/")
    assert "may be listed twice" in page.words
    assert [a.attributes["href"] for a in page.all("a") if a.text == "Merge them?"] == [f"/computers/{new.pk}/merge/"]
