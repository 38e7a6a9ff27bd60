"""What many volunteers' computers say of projects: no work, no answer, and who got how much."""

from __future__ import annotations

import datetime as dt

import pytest

from accounting.choosing import standings as choosing_standings
from accounting.engine.states import DayFlag
from accounting.models import HostLedger, HostProject, Project, ProjectStanding, ProjectTrouble
from portal.models import Host, User
from tests.support.accounting_factories import at, credit, make_host, make_project
from tests.support.reference_ledger import counts_in_balance

NOW = at("2026-03-10", 12)
CREDIT = 1_000_000
NO_CPU, NO_NVIDIA, FAILING = ["no_work", "CPU", 0], ["no_work", "NVIDIA", 0], ["failing", "", 0]


@pytest.fixture
def people(db: None) -> list[User]:
    return [User.objects.create_user(f"v{number}@example.org", "a secret") for number in range(5)]


@pytest.fixture
def project(db: None) -> Project:
    return make_project("Alps")


def report(owner: User, project: Project, *troubles: list[object], gpu: str = "", at: dt.datetime = NOW) -> Host:
    """A new computer of the owner's that reported at that time what it met."""
    host = make_host(owner, "pc", coprocs=[{"type": gpu, "count": 1}] if gpu else [])
    HostLedger.objects.filter(host=host).update(last_at=at)
    HostProject.objects.create(host=host, project=project, listed=True, state={"troubles": list(troubles)})
    return host


def troubles() -> list[tuple[str, str, int, int]]:
    rows = ProjectTrouble.objects.order_by("kind", "processor_type")
    return [(row.kind, row.processor_type, row.volunteers, row.of_volunteers) for row in rows]


def test_what_most_volunteers_say_is_a_trouble(people: list[User], project: Project) -> None:
    for person in people[:3]:
        report(person, project, NO_CPU, FAILING)
    for person in people[3:]:
        report(person, project, FAILING)
    assert choosing_standings.refresh(NOW)
    assert troubles() == [("failing", "", 5, 5), ("no_work", "CPU", 3, 5)]


def test_two_volunteers_or_half_of_all_are_not_enough(people: list[User], project: Project) -> None:
    report(people[0], project, NO_CPU)
    # Many computers of one volunteer are one voice.
    for _ in range(9):
        report(people[1], project, NO_CPU)
    choosing_standings.refresh(NOW)
    assert troubles() == []
    report(people[2], project, NO_CPU)
    sixth = User.objects.create_user("v6@example.org", "a secret")
    for person in (*people[3:], sixth):
        report(person, project)
    # Three of six
    choosing_standings.refresh(NOW)
    assert troubles() == []


def test_a_volunteer_with_one_computer_that_has_work_says_that_there_is_work(
    people: list[User], project: Project
) -> None:
    for person in people[:3]:
        report(person, project, NO_CPU)
    report(people[0], project)
    choosing_standings.refresh(NOW)
    assert troubles() == []


def test_of_a_gpus_work_only_those_are_asked_who_have_one(people: list[User], project: Project) -> None:
    for person in people[:3]:
        report(person, project, NO_NVIDIA, gpu="NVIDIA")
    for person in people[3:]:
        report(person, project)
    choosing_standings.refresh(NOW)
    assert troubles() == [("no_work", "NVIDIA", 3, 3)]


def test_a_trouble_keeps_its_beginning_and_ends_when_most_say_so(people: list[User], project: Project) -> None:
    hosts = [report(person, project, NO_CPU) for person in people[:3]]
    choosing_standings.refresh(NOW)
    later = NOW + dt.timedelta(hours=2)
    choosing_standings.refresh(later)
    row = ProjectTrouble.objects.get()
    assert (row.since, row.last_at) == (NOW, later)
    HostProject.objects.filter(host=hosts[0]).update(state={"troubles": []})
    choosing_standings.refresh(later)
    assert troubles() == []


def test_a_trouble_is_remembered_for_a_day_after_all_computers_left(people: list[User], project: Project) -> None:
    for person in people[:3]:
        report(person, project, NO_CPU)
    choosing_standings.refresh(NOW)
    HostProject.objects.update(listed=False)
    choosing_standings.refresh(NOW + dt.timedelta(hours=24))
    assert len(troubles()) == 1
    choosing_standings.refresh(NOW + dt.timedelta(hours=25))
    assert troubles() == []


def test_reports_of_yesterday_count_no_more(people: list[User], project: Project) -> None:
    for person in people[:3]:
        report(person, project, NO_CPU, at=NOW - dt.timedelta(hours=25))
    choosing_standings.refresh(NOW)
    assert troubles() == []


# --- who got how much -----------------------------------------------------------------------------------


def standings(*, on_gpu: bool = False) -> dict[str, tuple[float, float]]:
    """Target and what they got, in per cent, by project."""
    rows = ProjectStanding.objects.filter(on_gpu=on_gpu).select_related("project")
    return {row.project.name: (round(row.target * 100), round(row.got * 100)) for row in rows}


def working_host(owner: User, name: str) -> Host:
    return make_host(owner, name, last="2026-03-10")


def test_standings_are_of_the_last_seven_whole_days(people: list[User], project: Project) -> None:
    bees = make_project("Bees", default_share=300)
    host = working_host(people[0], "pc")
    for day, micro in (("2026-03-02", 9000), ("2026-03-03", 10), ("2026-03-09", 20), ("2026-03-10", 9000)):
        credit(host, project, day, (micro * CREDIT, 0, 1, 0, 0, 0))
    credit(host, bees, "2026-03-05", (10 * CREDIT, 0, 1, 0, 0, 0))
    choosing_standings.refresh(NOW)
    # 30 and 10 of 40; shares of 100 and 300
    assert standings() == {"Alps": (25, 75), "Bees": (75, 25)}
    boosts = {row.project.name: row.boost for row in ProjectStanding.objects.select_related("project")}
    assert boosts["Alps"] < 1 < boosts["Bees"]


def test_gone_and_capped_computers_do_not_count(people: list[User], project: Project) -> None:
    bees = make_project("Bees")
    credit(working_host(people[0], "pc"), project, "2026-03-05", (10 * CREDIT, 0, 1, 0, 0, 0))
    credit(working_host(people[0], "pc2"), bees, "2026-03-05", (10 * CREDIT, 0, 1, 0, 0, 0))
    credit(make_host(people[1], "gone", last="2026-03-06"), bees, "2026-03-05", (500 * CREDIT, 0, 1, 0, 0, 0))
    cheat = working_host(people[2], "cheat")
    credit(cheat, bees, "2026-03-04", (500 * CREDIT, 0, 1, 0, 0, 0), flags=DayFlag.CAPPED)
    credit(cheat, bees, "2026-03-05", (500 * CREDIT, 0, 1, 0, 0, 0))
    choosing_standings.refresh(NOW)
    assert standings() == {"Alps": (50, 50), "Bees": (50, 50)}


@pytest.mark.parametrize("flag", list(DayFlag))
def test_what_takes_a_computer_out_of_the_balance_is_what_the_model_says(
    flag: DayFlag, people: list[User], project: Project
) -> None:
    bees = make_project("Bees")
    credit(working_host(people[0], "pc"), project, "2026-03-05", (10 * CREDIT, 0, 1, 0, 0, 0))
    credit(working_host(people[1], "marked"), bees, "2026-03-05", (10 * CREDIT, 0, 1, 0, 0, 0), flags=flag)
    choosing_standings.refresh(NOW)
    counts = counts_in_balance([{str(flag.name).lower()}])
    assert standings() == ({"Alps": (50, 50), "Bees": (50, 50)} if counts else {"Alps": (100, 100)})


def test_only_those_are_weighed_that_could_have_work_of_the_kind(people: list[User], project: Project) -> None:
    bees, down, idle = make_project("Bees"), make_project("Down", down_since=NOW), make_project("Idle")
    bees.versions.create(processor_type="NVIDIA")
    idle.versions.create(processor_type="CPU")
    idle.troubles.create(kind="no_work", processor_type="CPU", since=NOW, last_at=NOW, volunteers=3, of_volunteers=3)
    host = working_host(people[0], "pc")
    credit(host, project, "2026-03-05", (10 * CREDIT, 5 * CREDIT, 1, 1, 0, 0))
    credit(host, bees, "2026-03-05", (0, 15 * CREDIT, 1, 1, 0, 0))
    credit(host, down, "2026-03-05", (10 * CREDIT, 0, 1, 0, 0, 0))
    choosing_standings.refresh(NOW)
    assert standings() == {"Alps": (100, 100)}
    assert standings(on_gpu=True) == {"Alps": (50, 25), "Bees": (50, 75)}


def test_standings_move_once_a_day(people: list[User], project: Project) -> None:
    bees = make_project("Bees")
    host = working_host(people[0], "pc")
    credit(host, project, "2026-03-09", (10 * CREDIT, 0, 1, 0, 0, 0))
    bees.versions.create(processor_type="CPU")
    choosing_standings.refresh(NOW)
    first = ProjectStanding.objects.get(project=bees).boost
    choosing_standings.refresh(NOW + dt.timedelta(hours=11))
    assert ProjectStanding.objects.get(project=bees).boost == first > 1
    HostLedger.objects.update(last_at=NOW)
    choosing_standings.refresh(NOW + dt.timedelta(hours=13))
    assert ProjectStanding.objects.get(project=bees).boost > first
