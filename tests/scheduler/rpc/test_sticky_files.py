"""Files that computers keep after their jobs: jobs go to them first, and unneeded files are deleted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone
from pytest_django import Settings

from credit.engine.states import AssimilateState, FileDeleteState, WorkunitError
from credit.models import App, Result, ServerState, Workunit
from portal.models import User
from scheduler.files.store import store_file
from scheduler.lifecycle import file_deleter
from scheduler.models import StickyFile, StoredFile
from scheduler.submission import retry
from scheduler.submission.submit import submit
from scheduler.wire.requests import MAX_HELD_FILES, parse_request
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, fill_ready_jobs
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db
REMOTE = {"open_name": "in", "url": "https://data.example.org/map", "nbytes": 4, "md5": "a" * 32, "sticky": True}


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    return app


def held(*names: str) -> str:
    """As Debian's client lists the files that it keeps."""
    return "".join(
        f"    <file_info>\n        <name>{name}</name>\n        <nbytes>4.000000</nbytes>\n"
        "        <status>1</status>\n        <sticky/>\n    </file_info>\n"
        for name in names
    )


def deleted(reply: str) -> list[str]:
    return re.findall("<delete_file_info>([^<]*)</delete_file_info>", reply)


def needing(app: App, name: str, **fields: Any) -> Any:
    file = {"name": name, "open_name": "in", "nbytes": 4, "md5": "e" * 32, "sticky": True}
    return make_result(make_workunit(app, input_files=[file], output_files=[]), **fields)


@pytest.mark.parametrize(
    ("kept", "priority", "first"),
    [
        # In the queue's order
        ((), 0, ["map_1", "map_2", "map_3"]),
        (("map_3",), 0, ["map_3", "map_1", "map_2"]),
        (("map_2", "map_3"), 0, ["map_2", "map_3", "map_1"]),
        (("of_another_project",), 0, ["map_1", "map_2", "map_3"]),
        # What is urgent waits for no file
        (("map_3",), 1, ["map_1", "map_3", "map_2"]),
    ],
)
def test_jobs_go_first_to_computers_that_have_their_files(
    app: App, alice: User, kept: tuple[str, ...], priority: int, first: list[str]
) -> None:
    jobs = {needing(app, "map_1", priority=priority).name: "map_1"}
    jobs |= {needing(app, name).name: name for name in ("map_2", "map_3")}
    # One from the queue itself; the next ones come from those that are at hand.
    make_result(make_workunit(app, output_files=[]), priority=9)
    computer = computer_of(alice, ncpus=16)
    computer.ask(0, 1)
    fill_ready_jobs()
    for _ in range(3):
        computer.ask(0, 1, extra=held(*kept))
    assert [jobs[name] for name in computer.jobs[1:]] == first


def test_nobody_gets_an_accomplices_other_copies_by_naming_their_files(app: App, alice: User, bob: User) -> None:
    for name in ("map_1", "map_2", "map_3"):
        needing(app, name)
    first = Result.objects.get(workunit__input_files__0__name="map_2")
    second = make_result(first.workunit)
    make_result(make_workunit(app, output_files=[]), priority=9)
    computers = [computer_of(user, ncpus=16) for user in (alice, bob)]
    computers[0].ask(0, 1)
    fill_ready_jobs()
    for computer in computers:
        computer.ask(0, 1, extra=held("map_2"))
    assert computers[0].jobs[-1] == first.name
    assert computers[1].jobs and computers[1].jobs[-1] != second.name


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_kept_files_cost_no_statement(app: App, alice: User) -> None:
    for _ in range(4):
        needing(app, "map")
    computer = computer_of(alice)
    computer.ask(0, 1)
    computer.ask(0, 1)
    # read; lock computer and jobs, write
    assert statements(lambda: computer.ask(0, 1, extra=held("map", *(f"old_{n}" for n in range(150))))) == 3


def test_a_stored_file_is_kept_until_it_is_deleted_here(app: App, alice: User) -> None:
    store_file("map", ContentFile(b"sea"))
    computer = computer_of(alice)
    assert deleted(computer.ask(extra=held("map", "never_heard_of"))) == ["never_heard_of"]
    StoredFile.objects.update(deleted_at=timezone.now())
    assert deleted(computer.ask(extra=held("map"))) == ["map"]


def test_an_output_is_kept_as_long_as_its_task_is_here(app: App, alice: User) -> None:
    result = make_result(make_workunit(app))
    held_files = held(f"{result.name}_0", f"{result.name}_12")
    computer = computer_of(alice)
    assert deleted(computer.ask(extra=held_files)) == []
    result.delete()
    assert sorted(deleted(computer.ask(extra=held_files))) == [f"{result.name}_0", f"{result.name}_12"]


def test_a_file_of_another_server_is_kept_until_the_last_batch_with_jobs_of_it_is_done(
    app: App, alice: User, settings: Settings
) -> None:
    settings.REMOTE_INPUT_HOSTS = ["*.example.org"]
    defaults = {"fpops_est": 1e12, "output_files": [{"open_name": "o", "max_nbytes": 1}], "input_files": [REMOTE]}
    batches = [submit(app, defaults, [{}, {}], owner=None, now=NOON)[0] for _ in range(2)]
    name = Workunit.objects.all()[0].input_files[0]["name"]
    assert StickyFile.objects.filter(name=name).count() == 2
    computer = computer_of(alice)
    for batch in batches:
        file_deleter.run(timezone.now())
        assert deleted(computer.ask(extra=held(name))) == []
        Workunit.objects.filter(batch=batch).update(file_delete_state=FileDeleteState.DONE)
    file_deleter.run(timezone.now())
    assert deleted(computer.ask(extra=held(name))) == [name]


def test_a_file_of_failed_jobs_is_kept_for_their_next_try_and_beyond_the_batch(
    app: App, alice: User, settings: Settings
) -> None:
    settings.REMOTE_INPUT_HOSTS = ["*.example.org"]
    defaults = {"fpops_est": 1e12, "output_files": [{"open_name": "o", "max_nbytes": 1}], "input_files": [REMOTE]}
    batch = submit(app, defaults, [{}], owner=None, now=NOON)[0]
    name = Workunit.objects.get().input_files[0]["name"]
    over = {
        "error_mask": WorkunitError.TOO_MANY_ERROR_RESULTS,
        "assimilate_state": AssimilateState.DONE,
        "file_delete_state": FileDeleteState.DONE,
    }
    Workunit.objects.update(**over)
    file_deleter.run(timezone.now())
    computer = computer_of(alice)
    assert deleted(computer.ask(extra=held(name))) == []
    again = retry.retry_failed(batch, NOON)
    Workunit.objects.filter(batch=batch).delete()
    file_deleter.run(timezone.now())
    assert [file.batch for file in StickyFile.objects.all()] == [again]
    assert deleted(computer.ask(extra=held(name))) == []


def test_the_list_of_kept_files_has_limits(app: App, alice: User) -> None:
    computer = computer_of(alice)
    names = [f"old_{n}" for n in range(MAX_HELD_FILES + 100)]
    assert sorted(deleted(computer.ask(extra=held(*names)))) == sorted(names[:MAX_HELD_FILES])


@pytest.mark.parametrize(
    "name", ["", "a b", "../../etc/passwd", "a/b", "x" * 300, "<delete_file_info>", "&lt;b", "n\x00", "é"]
)
def test_what_cannot_be_a_file_of_ours_is_passed_over(app: App, alice: User, name: str) -> None:
    computer = computer_of(alice)
    assert deleted(computer.ask(extra=held(name, "old"))) == ["old"]
    assert parse_request(computer.request(extra=held(name))).held_files == frozenset()


def test_outputs_of_a_report_are_not_kept_files(app: App, alice: User) -> None:
    result = make_result(make_workunit(app), server_state=ServerState.UNSENT)
    computer = computer_of(alice)
    report = f"<result>\n<name>{result.name}</name>\n<state>5</state>\n{held('x_0')}</result>\n"
    assert parse_request(computer.request(results=report, extra=held("y"))).held_files == {"y"}
