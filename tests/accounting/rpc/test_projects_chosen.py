"""What clients are told to work for: by keywords, by processors, and by what they and others met."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from accounting.choosing.choices import choose_keywords, choose_projects
from accounting.choosing.reads import computer_of, read_selection
from accounting.computers.wishes import exclude_types
from accounting.models import HostLedger, HostProject, Project
from accounting.rpc import catalogue
from portal.models import User
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import GPU, START, Reply, attach, call, host_of, make_computer, row_of
from tools.simulation.client import SimulatedComputer

ASTRONOMY, PULSARS, CANCER = 1, 3, 14
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def subjects(projects: list[Project]) -> list[Project]:
    """Alpha is about pulsars, Beta about cancer and for NVIDIA GPUs alone, of Gamma nothing is known."""
    projects[0].keywords.create(keyword=PULSARS)
    projects[0].versions.create(processor_type="CPU")
    projects[1].keywords.create(keyword=CANCER)
    projects[1].versions.create(processor_type="NVIDIA")
    catalogue.forget()
    return projects


def told(reply: Reply) -> dict[str, str]:
    """What the reply says of each project: its share, or that it is to leave."""
    return {
        url.split("//")[1].split(".")[0]: "leave"
        if account.find("detach_when_done") is not None
        else account.findtext("resource_share", "")
        for url, account in reply.accounts.items()
    }


def change(project: Project, **fields: object) -> None:
    Project.objects.filter(pk=project.pk).update(**fields)
    catalogue.forget()


def test_a_first_contact_gets_what_its_processors_can_do(alice: User, subjects: list[Project]) -> None:
    assert attach(alice, "plain").projects.keys() == {subjects[0].master_url, subjects[2].master_url}
    with_gpu = attach(alice, "gpu", devices=(GPU,))
    assert with_gpu.projects.keys() == {project.master_url for project in subjects}


def test_keywords_change_the_next_reply_and_are_forwarded(alice: User, subjects: list[Project]) -> None:
    computer = make_computer(alice, devices=(GPU,))
    assert told(call(computer, START)) == {"alpha": "100", "beta": "100", "gamma": "100"}
    choose_keywords(alice, [ASTRONOMY], [CANCER])
    reply = call(computer, START + HOUR)
    # Gamma is there for the GPU, with a tenth of its share.
    assert told(reply) == {"alpha": "100", "beta": "leave", "gamma": "10"}
    keywords = reply.root.find("user_keywords")
    assert keywords is not None
    assert [(keyword.tag, keyword.text) for keyword in keywords] == [("yes", "1"), ("no", "14")]


def test_a_pick_by_hand_overrules_keywords(alice: User, subjects: list[Project]) -> None:
    choose_keywords(alice, [], [CANCER])
    choose_projects(alice, {subjects[1].pk: 70})
    assert told(call(make_computer(alice), START)) == {"beta": "70"}


def test_the_reply_and_the_page_of_the_computer_agree(alice: User, subjects: list[Project]) -> None:
    computer = attach(alice, devices=(GPU,))
    choose_keywords(alice, [PULSARS], [])
    exclude_types(host_of(computer), ["CPU"])
    wanted = {name: share for name, share in told(call(computer, timezone.now())).items() if share != "leave"}
    host = host_of(computer)
    rows = {row.project_id: row for row in HostProject.objects.filter(host=host)}
    selection = read_selection(alice)
    shown = selection.choice_for(computer_of(host, host.ledger, rows, timezone.now()), timezone.now()).shares
    assert wanted == {selection.projects[id_].name.lower(): f"{share:g}" for id_, share in shown.items()}


def test_an_excluded_type_is_forbidden_to_every_project(alice: User, subjects: list[Project]) -> None:
    computer = attach(alice, devices=(GPU,))
    exclude_types(host_of(computer), ["NVIDIA"])
    reply = call(computer, timezone.now() + HOUR)
    assert told(reply) == {"alpha": "100", "beta": "leave", "gamma": "100"}
    assert [each.text for each in reply.account(subjects[0]).findall("no_rsc")] == ["NVIDIA"]


def test_a_computer_without_anything_to_do_is_told_so(alice: User, subjects: list[Project]) -> None:
    change(subjects[2], is_active=False)
    choose_keywords(alice, [], [ASTRONOMY, CANCER])
    reply = call(make_computer(alice), START)
    assert told(reply) == {}
    assert any("There is no project for this computer" in message for message in reply.messages)


def test_a_project_that_is_down_leaves_and_comes_back(alice: User, subjects: list[Project]) -> None:
    computer = attach(alice)
    change(subjects[0], down_since=timezone.now())
    assert told(call(computer, timezone.now() + HOUR)) == {"alpha": "leave", "gamma": "100"}
    change(subjects[0], down_since=None)
    assert told(call(computer, timezone.now() + 2 * HOUR)) == {"alpha": "100", "gamma": "100"}


def without_work(computer: SimulatedComputer, project: Project) -> None:
    computer.projects[project.master_url].no_work = ("CPU",)


def test_no_work_is_remembered_from_its_first_report_and_the_project_left_after_a_day(
    alice: User, projects: list[Project]
) -> None:
    computer = make_computer(alice)
    call(computer, START)
    without_work(computer, projects[0])
    call(computer, START + HOUR)
    assert row_of(computer, projects[0]).state["troubles"] == [["no_work", "CPU", int((START + HOUR).timestamp())]]
    assert told(call(computer, START + 24 * HOUR))["alpha"] == "100"
    assert told(call(computer, START + 25 * HOUR)) == {
        "alpha": "leave",
        "beta": "100",
        "gamma": "100",
    }
    # It stays away for a day, and then has another chance.
    assert "alpha" not in told(call(computer, START + 48 * HOUR))
    assert told(call(computer, START + 50 * HOUR))["alpha"] == "100"


def test_work_that_comes_again_ends_the_memory(alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    call(computer, START)
    without_work(computer, projects[0])
    call(computer, START + HOUR)
    computer.projects[projects[0].master_url].no_work = ()
    call(computer, START + 2 * HOUR)
    assert row_of(computer, projects[0]).state["troubles"] == []
    without_work(computer, projects[0])
    assert told(call(computer, START + 26 * HOUR))["alpha"] == "100"


def test_what_most_computers_miss_keeps_others_from_a_project(alice: User, projects: list[Project]) -> None:
    there = make_computer(alice)
    call(there, START)
    projects[0].troubles.create(kind="failing", since=START, last_at=START, volunteers=5, of_volunteers=6)
    catalogue.forget()
    assert "alpha" not in told(call(make_computer(alice, "another"), START + HOUR))
    # Who has it keeps it for a day.
    assert told(call(there, START + HOUR))["alpha"] == "100"
    assert told(call(there, START + 24 * HOUR))["alpha"] == "leave"


def test_boosts_change_shares(alice: User, projects: list[Project]) -> None:
    projects[0].standings.create(on_gpu=False, target=0.5, got=0.1, boost=1.5, day=START.date())
    catalogue.forget()
    assert told(call(make_computer(alice), START))["alpha"] == "150"


def test_a_choice_stays_the_same_from_one_report_to_the_next(alice: User, projects: list[Project]) -> None:
    for number in range(12):
        make_project(
            name=f"More {number}",
            master_url=f"https://more{number}.example.org/",
            account_key="1_key",
        )
    catalogue.forget()
    computers = [make_computer(alice, f"pc{number}") for number in range(6)]
    first = [told(call(computer, START)) for computer in computers]
    assert all(len(shares) == 5 for shares in first) and len({frozenset(shares) for shares in first}) > 1
    for hours in (1, 6, 12):
        assert [told(call(computer, START + hours * HOUR)) for computer in computers] == first
    assert HostLedger.objects.count() == 6
