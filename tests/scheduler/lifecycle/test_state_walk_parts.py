"""docs/reference/states.md: each line of its lists of transitions happens, by the part that the line names, and the
lists are complete. What the transitioner does to results is walked in test_state_walk.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pytest_django import Settings

from credit.models import App, Batch, FileDeleteState, Outcome, Result, Workunit
from portal.models import Host, User
from scheduler.lifecycle import assimilator, file_deleter, purge, transitioner, unsendable
from scheduler.models import ArchivedWorkunit, Upload
from scheduler.submission import batches
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, result_xml
from tests.support.state_document import TEXT, WORDS, listed_transitions
from tests.support.upload_requests import post, upload_body
from tests.support.validator_runs import RIGHT, WRONG, done, report, validate, volunteers

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
JOB: dict[str, Any] = {"fpops_est": 7.2e12, "output_files": [{"open_name": "out", "max_nbytes": 1000}]}


@dataclass
class Scene:
    """An app with a version, one workunit of it, and a computer that asks for work."""

    alice: User
    app: App = field(default_factory=make_app)

    def __post_init__(self) -> None:
        self.version = make_version(self.app)

    def job(self) -> Result:
        """An unsent result."""
        return make_result(make_workunit(self.app, fpops_bound=1e16, **JOB))

    def computer(self, result: Result) -> Computer:
        """One that has been sent it."""
        computer = computer_of(self.alice)
        computer.ask(1, now=NOON)
        result.refresh_from_db()
        assert computer.jobs == [result.name]
        return computer

    def hosts(self, *digests: bytes | None, **fields: Any) -> list[Result]:
        """Results of as many volunteers that the validator is to look at."""
        workunit = done(self.app, self.version, min_quorum=2, **fields)
        hosts = zip(volunteers(len(digests)), digests, strict=True)
        return [report(workunit, self.version, host, output_digest=digest) for host, digest in hosts]


def reports(before: str, after: str) -> Callable[[Scene], list[Result]]:
    """The computer reports it, from whatever it is."""

    def run(scene: Scene) -> list[Result]:
        result = scene.job()
        computer = scene.computer(result)
        assert post(upload_body(f"{result.name}_0", b"x", max_nbytes=1000)) == "0"
        state = WORDS[before]
        assert state is not None
        Result.objects.filter(pk=result.pk).update(server_state=state[0], outcome=state[1])
        failed = {"exit_status": 3, "state": 3} if after == "error" else {}
        computer.ask(results=result_xml(result.name, **failed), now=NOON + HOUR)
        return [result]

    return run


def is_sent(scene: Scene) -> list[Result]:
    result = scene.job()
    scene.computer(result)
    return [result]


def is_abandoned(scene: Scene) -> list[Result]:
    result = scene.job()
    scene.computer(result).ask(others=[], dont_send_work=1, now=NOON + HOUR)
    return [result]


def is_submitted(scene: Scene) -> list[Result]:
    batch, _ = submit(scene.app, JOB, [{}], owner=None, now=NOON)
    return list(Result.objects.filter(workunit__batch=batch))


def is_cancelled(scene: Scene) -> list[Result]:
    results = is_submitted(scene)
    batches.cancel(Batch.objects.get(), NOON)
    return results


def is_unsendable(scene: Scene) -> list[Result]:
    result = scene.job()
    App.objects.update(is_deprecated=True)
    assert unsendable.run(NOON) == 1
    return [result]


def judged(*digests: bytes | None, which: int = 0) -> Callable[[Scene], list[Result]]:
    """The validator looks at these outputs; the one with that number is asked about."""

    def run(scene: Scene) -> list[Result]:
        results = scene.hosts(*digests)
        validate(scene.app)
        return [results[which]]

    return run


def judged_again(which: int) -> Callable[[Scene], list[Result]]:
    """Two disagree, and a third one decides for the first."""

    def run(scene: Scene) -> list[Result]:
        results = scene.hosts(RIGHT, WRONG)
        validate(scene.app)
        assert Result.objects.get(pk=results[which].pk).validate_state == 4
        third = Host.objects.create(owner=scene.alice, p_fpops=4e9)
        report(results[0].workunit, scene.version, third)
        Workunit.objects.update(need_validate=True)
        validate(scene.app)
        return [results[which]]

    return run


DRIVERS: dict[tuple[str, str, str], Callable[[Scene], list[Result]]] = {
    ("(none)", "unsent", "submission"): is_submitted,
    ("unsent", "in progress", "scheduler"): is_sent,
    ("unsent", "not needed", "cancelling"): is_cancelled,
    ("unsent", "could not be sent", "hourly task"): is_unsendable,
    ("in progress", "abandoned", "scheduler"): is_abandoned,
    **{
        (before, after, "scheduler"): reports(before, after)
        for before in ("in progress", "no reply", "abandoned")
        for after in ("success, unchecked", "error")
    },
    ("success, unchecked", "valid", "validator"): judged(RIGHT, RIGHT),
    ("success, unchecked", "invalid", "validator"): judged(RIGHT, RIGHT, WRONG, which=2),
    ("success, unchecked", "inconclusive", "validator"): judged(RIGHT, WRONG),
    ("success, unchecked", "validate error", "validator"): judged(RIGHT, RIGHT, None, which=2),
    ("inconclusive", "valid", "validator"): judged_again(0),
    ("inconclusive", "invalid", "validator"): judged_again(1),
}
LISTED = [
    (before, after, part)
    for before, after, who in listed_transitions()
    for part in who.split(", ")
    if part != "transitioner"
]


@pytest.mark.parametrize("line", LISTED)
def test_each_part_makes_each_of_its_transitions(line: tuple[str, str, str], alice: User) -> None:
    found = DRIVERS[line](Scene(alice))
    for result in found:
        result.refresh_from_db()
    assert {(r.server_state, r.outcome, r.validate_state) for r in found} == {WORDS[line[1]]}


# --- workunits --------------------------------------------------------------------------------------------------------


def step_lines() -> list[tuple[str, str]]:
    """(step, who) of the last table."""
    table = TEXT.partition("| step | who | when |")[2].partition("\n\n")[0]
    return re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)[1:]


def ended_by(mask: int, *states: str, **fields: Any) -> Callable[[Scene, Host], bool]:
    """The transitioner finds results in these states, and ends the workunit with that reason."""

    def run(scene: Scene, host: Host) -> bool:
        workunit = make_workunit(scene.app, transition_at=NOON, **{"min_quorum": 1, "target_nresults": 1, **fields})
        for state in states:
            number = WORDS[state]
            assert number is not None
            received = NOON if number[1] == Outcome.SUCCESS else None
            make_result(
                workunit, host, server_state=5, outcome=number[1], validate_state=number[2], received_at=received
            )
        transitioner.run(NOON)
        workunit.refresh_from_db()
        return workunit.error_mask == mask and workunit.assimilate_state == 1

    return run


def decided(scene: Scene, **fields: Any) -> Workunit:
    """One with a canonical result and an output of it."""
    result = scene.hosts(RIGHT, RIGHT)[0]
    path = default_storage.save("outputs/x", ContentFile(b"x"))
    Upload.objects.create(result=result, name=f"{result.name}_0", path=path, nbytes=1, md5="0" * 32, completed_at=NOON)
    validate(scene.app)
    # No output file is expected, so none is kept, and all may be deleted.
    Workunit.objects.update(need_validate=False, **fields)
    return Workunit.objects.get()


def now_has(workunit: Workunit, **fields: Any) -> bool:
    workunit.refresh_from_db()
    return all(getattr(workunit, name) == value for name, value in fields.items())


def is_to_validate(scene: Scene, host: Host) -> bool:
    workunit = scene.hosts(RIGHT, RIGHT, need_validate=False, transition_at=NOON)[0].workunit
    transitioner.run(NOON)
    return now_has(workunit, need_validate=True, transition_at=None)


def is_judged(scene: Scene, host: Host) -> bool:
    result = scene.hosts(RIGHT, RIGHT)[0]
    validate(scene.app)
    workunit = Workunit.objects.get()
    return not workunit.need_validate and workunit.canonical_result == result and workunit.transition_at is not None


def is_withdrawn(scene: Scene, host: Host) -> bool:
    is_cancelled(scene)
    return now_has(Workunit.objects.get(), error_mask=16)


def is_ready(scene: Scene, host: Host) -> bool:
    workunit = decided(scene, transition_at=NOON)
    transitioner.run(NOON)
    return now_has(workunit, assimilate_state=1)


def is_assimilated(scene: Scene, host: Host) -> bool:
    workunit = decided(scene, assimilate_state=1)
    assimilator.run(NOON)
    return now_has(workunit, assimilate_state=2, assimilated_at=NOON)


def may_be_deleted(scene: Scene, host: Host) -> bool:
    workunit = decided(scene, assimilate_state=2, transition_at=NOON)
    transitioner.run(NOON)
    return now_has(workunit, file_delete_state=FileDeleteState.READY)


def is_deleted_or_not(scene: Scene, host: Host) -> bool:
    workunit = decided(scene, assimilate_state=2, file_delete_state=1)
    Upload.objects.update(path="../../out of the folder")
    file_deleter.run(NOON)
    could_not = now_has(workunit, file_delete_state=3)
    Upload.objects.update(path="outputs/x")
    Workunit.objects.update(file_delete_state=1)
    file_deleter.run(NOON + HOUR)
    return could_not and now_has(workunit, file_delete_state=2) and not default_storage.exists("outputs/x")


def is_deleted_later(scene: Scene, host: Host) -> bool:
    workunit = decided(scene, assimilate_state=2, file_delete_state=1)
    Upload.objects.update(path="../../out of the folder")
    file_deleter.run(NOON)
    assert now_has(workunit, file_delete_state=3)
    Upload.objects.update(path="outputs/x")
    file_deleter.run(NOON + HOUR)
    return now_has(workunit, file_delete_state=2)


def is_archived(scene: Scene, host: Host) -> bool:
    workunit = decided(scene, assimilate_state=2, file_delete_state=2, assimilated_at=NOON, transition_at=None)
    purge.run(NOON + 31 * DAY)
    return ArchivedWorkunit.objects.filter(pk=workunit.pk).exists() and not Workunit.objects.exists()


STEPS: dict[str, tuple[str, Callable[[Scene, Host], bool]]] = {
    "`need_validate` set": ("transitioner", is_to_validate),
    "`canonical_result` set, or results inconclusive; `need_validate` cleared, `transition_at` = now": (
        "validator",
        is_judged,
    ),
    "`error_mask` 2": ("transitioner", ended_by(2, "error", "error", max_error_results=1)),
    "`error_mask` 4": ("transitioner", ended_by(4, "inconclusive", "inconclusive", max_success_results=1)),
    "`error_mask` 8": ("transitioner", ended_by(8, "no reply", max_total_results=1)),
    "`error_mask` 1": ("transitioner", ended_by(1, "could not be sent")),
    "`error_mask` 16": ("whoever cancels its batch", is_withdrawn),
    "`assimilate_state` 0 → 1": ("transitioner", is_ready),
    "`assimilate_state` 1 → 2": ("assimilator", is_assimilated),
    "`file_delete_state` 0 → 1": ("transitioner", may_be_deleted),
    "`file_delete_state` 1 → 2 or 3": ("file deleter", is_deleted_or_not),
    "`file_delete_state` 3 → 2": ("file deleter", is_deleted_later),
    "into the archive": ("purge", is_archived),
}


@pytest.mark.parametrize(("step", "who"), step_lines())
def test_each_step_of_a_workunit_is_made_by_whom_the_list_says(
    step: str, who: str, alice: User, studio: Host, settings: Settings
) -> None:
    settings.JOBS_KEPT_DAYS = 30
    part, drive = STEPS[step]
    assert part == who
    assert drive(Scene(alice), studio)


def test_the_lists_have_a_line_for_everything_that_is_walked() -> None:
    assert set(LISTED) == set(DRIVERS)
    assert {step for step, _ in step_lines()} == set(STEPS)
