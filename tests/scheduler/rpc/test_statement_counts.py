"""The number of statements of an RPC: the same whatever the number of jobs, and never more than eight."""

from __future__ import annotations

import pytest

from credit.models import App
from portal.models import User
from scheduler.engine.lanes import Lane, LaneKind
from scheduler.programs import catalogue
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, result_xml
from tools.benchmarks.harness.statements import statements

# Outside a test's own transaction, BEGIN and COMMIT are sent as on the site.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("filled_once")]


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    return app


def warm(user: User) -> Computer:
    """A known computer of a process that knows the apps and has prepared its statements."""
    computer = computer_of(user, ncpus=16)
    computer.ask(0, 1)
    computer.ask(0, 0, results=result_xml("unheard_of"))
    computer.ask(1)
    return computer


@pytest.mark.parametrize("njobs", [1, 2, 20])
def test_jobs_cost_no_statements(app: App, alice: User, njobs: int) -> None:
    for _ in range(30):
        make_result(make_workunit(app, output_files=[]))
    computer = warm(alice)
    before = len(computer.jobs)
    # read; lock computer and jobs, write
    assert statements(lambda: computer.ask(0, njobs)) == 3
    assert len(computer.jobs) - before == njobs


def test_jobs_that_are_not_at_hand_cost_three_more(app: App, alice: User) -> None:
    computer = warm(alice)
    make_result(make_workunit(app, output_files=[]))
    # begin, lock, read, pick, write, commit
    assert statements(lambda: computer.ask(0, 1)) == 6
    assert len(computer.jobs) == 1


def test_a_job_for_the_computer_alone_costs_as_much_as_jobs_that_are_not_at_hand(app: App, alice: User) -> None:
    computer = warm(alice)
    lane = Lane(LaneKind.COMPUTER, computer.hostid).number
    make_result(make_workunit(app, output_files=[], lane=lane), lane=lane)
    catalogue.forget()
    computer.ask(0, 0)
    # read, and once more with the computer locked: begin, lock, read, pick, write, commit
    assert statements(lambda: computer.ask(0, 1)) <= 9
    assert len(computer.jobs) == 1


def test_reports_cost_one_statement_however_many(app: App, alice: User) -> None:
    for _ in range(30):
        make_result(make_workunit(app, output_files=[]))
    computer = warm(alice)
    computer.ask(0, 12)
    reports = "".join(result_xml(name) for name in computer.jobs)
    # begin, lock, read, report, lock jobs, write, commit
    assert statements(lambda: computer.ask(0, 5, results=reports)) == 7


def test_nothing_found_costs_one_more_to_say_why(app: App, alice: User) -> None:
    make_result(make_workunit(app, output_files=[]))
    computer = warm(alice)
    reports = "".join(result_xml(name) for name in computer.jobs)
    # begin, lock, read, report, pick, diagnose, write, commit
    assert statements(lambda: computer.ask(0, 5, results=reports)) == 8


def test_a_request_that_wants_nothing_reads_and_writes(app: App, alice: User) -> None:
    computer = warm(alice)
    # read; lock the computer, write
    assert statements(lambda: computer.ask()) == 3
