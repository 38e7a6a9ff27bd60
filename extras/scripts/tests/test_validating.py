"""Scripts that compare outputs, as a worker of the validator calls them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from pytest_django import Settings

from credit.models import App, AppVersion, Comparison, CreditSystem, Outcome, ValidateState, Workunit
from credit.validator import prepared, worker
from extras.scripts import calls, storing
from extras.scripts.models import Script
from extras.scripts.tests.conftest import ANSWER, BY_VALUE, PYTHON, Make
from portal.databases.clocks import database_now
from portal.models import Host
from tests.support.validator_runs import differences, done, report

pytestmark = [pytest.mark.django_db, pytest.mark.system, pytest.mark.usefixtures("bubblewrap")]

INIT, VALID, INVALID = ValidateState.INIT, ValidateState.VALID, ValidateState.INVALID
BY_EXIT_CODE = '#!/bin/sh\ncmp -s "$1" "$2"\n'


@pytest.fixture(autouse=True)
def storage(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def outputs(workunit: Workunit, *texts: str) -> None:
    """Give its results these outputs, in order."""
    for result, text in zip(workunit.results.order_by("pk"), texts, strict=True):
        path = default_storage.save(result.name, ContentFile(text.encode()))
        result.outputs = [{"name": f"{result.name}_0", "path": path, "nbytes": len(text), "md5": "0" * 32}]
        result.output_digest = text.encode().rjust(16)[:16]
        result.save()


def job(app: App, version: AppVersion, hosts: list[Host], *texts: str) -> Workunit:
    workunit = done(app, version, *hosts[: len(texts)], min_quorum=min(2, len(texts)))
    outputs(workunit, *texts)
    return workunit


def states(workunit: Workunit) -> list[int]:
    return list(workunit.results.order_by("pk").values_list("validate_state", flat=True))


def run(app: App, run_secs: float = 60) -> None:
    app.refresh_from_db()
    worker.run_until_idle(app, run_secs)


def test_a_python_script_decides_which_results_are_fit_and_agree(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    storing.use(make_script(), app)
    agreeing = job(app, version, hosts, "1.000", "1.001")
    unfit = job(app, version, hosts, "5", "nan", "5.0")
    other = job(app, version, hosts, "1", "2")
    run(app)
    assert (states(agreeing), states(other)) == ([VALID, VALID], [ValidateState.INCONCLUSIVE] * 2)
    assert states(unfit) == [VALID, INIT, VALID]
    assert unfit.results.order_by("pk")[1].outcome == Outcome.VALIDATE_ERROR
    assert differences() == []


def test_it_assigns_credit_where_the_apps_credit_is_assigned(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    App.objects.update(credit_system=CreditSystem.ASSIGNED, comparison=Comparison.CUSTOM, comparison_function="x")
    app.refresh_from_db()
    storing.use(make_script(), app)
    workunit = job(app, version, hosts, "1", "1")
    run(app)
    assert list(workunit.results.values_list("granted_credit", flat=True)) == [12.5, 12.5]
    assert differences() == []


def test_a_shell_script_for_boincs_validator_works_as_there(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    check = '#!/bin/sh\n[ "$2" -gt 0 ] && grep -q \'^[0-9]\' "$1"\n'
    script = make_script(
        BY_EXIT_CODE, protocol="words", words="files files2", check_source=check, check_words="files result_id"
    )
    script.full_clean()
    storing.use(script, app)
    equal = job(app, version, hosts, "1", "1")
    unfit = job(app, version, hosts, "1", "one", "1")
    run(app)
    assert (states(equal), states(unfit)) == ([VALID, VALID], [VALID, INIT, VALID])


def test_a_late_result_is_compared_with_the_canonical_one(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    storing.use(make_script(), app)
    workunit = job(app, version, hosts, "1", "1")
    run(app)
    report(workunit, version, hosts[2])
    report(workunit, version, hosts[3])
    outputs(workunit, "1", "1", "1.001", "3")
    Workunit.objects.update(need_validate=True)
    run(app)
    assert states(workunit) == [VALID, VALID, VALID, INVALID]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (f"{PYTHON}    answer = {{'later': 'the reference is away'}}\n{ANSWER}", "the reference is away"),
        (f"{PYTHON}    answer = 1 / 0\n{ANSWER}", "ZeroDivisionError"),
        ("#!/no/such/interpreter\n", "exit code 127"),
        ("#!/bin/sh\nsleep 100\n", "no answer after 1 s"),
        ("#!/usr/bin/env python3\nprint('hello')\n", "not a line of JSON"),
    ],
    ids=["later", "raises", "missing", "hangs", "chatters"],
)
def test_what_goes_wrong_with_it_is_no_results_fault_and_comes_again(
    source: str, fault: str, app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    script = make_script(source, max_secs=1)
    storing.use(script, app)
    workunit = job(app, version, hosts, "1", "1")
    run(app)
    workunit.refresh_from_db()
    assert states(workunit) == [INIT, INIT]
    assert fault in workunit.validate_fault
    assert workunit.validate_after is not None
    assert "script by-value" in workunit.validate_fault
    Script.objects.update(source=BY_VALUE)
    Workunit.objects.update(validate_after=None)
    run(app)
    assert states(workunit) == [VALID, VALID]


def test_a_broken_one_rests_after_three_failures_and_all_that_is_told(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    script = make_script("#!/no/such/interpreter\n")
    storing.use(script, app)
    jobs = [job(app, version, hosts, "1", "1") for _ in range(5)]
    run(app)
    run(app)
    script.refresh_from_db()
    assert Workunit.objects.exclude(validate_fault="").count() == calls.MAX_FAILURES
    assert "exit code 127" in script.last_fault
    assert script.rests_until is not None
    assert script.rests_until - database_now() > calls.REST - dt.timedelta(minutes=1)
    # Once fixed, it continues with those that it was not asked about, and after an hour with the others.
    Script.objects.update(source=BY_VALUE, rests_until=None)
    run(app)
    assert [states(each)[0] for each in jobs] == [INIT] * 3 + [VALID] * 2


def test_where_a_server_has_no_place_for_its_files_operators_are_told(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    settings.SCRIPT_DATA_DIR = str(tmp_path / "file")
    script = make_script()
    storing.use(script, app)
    workunit = job(app, version, hosts, "1", "1")
    run(app)
    script.refresh_from_db()
    assert script.last_fault.startswith("there is no place for its sandbox: ")
    assert script.rests_until is not None
    assert states(workunit) == [INIT, INIT]


def test_the_fault_of_one_that_writes_any_bytes_is_kept_and_others_go_on(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make
) -> None:
    script = make_script("#!/bin/sh\nprintf 'a\\000b\\377' >&2\nexit 1\n")
    storing.use(script, app)
    workunit = job(app, version, hosts, "1", "1")
    run(app)
    script.refresh_from_db()
    workunit.refresh_from_db()
    for fault in (script.last_fault, workunit.validate_fault):
        assert fault.endswith("wrote: ab\ufffd")


def test_a_slow_one_is_not_asked_about_a_workunit_until_the_worker_is_killed(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its answers would be lost with the worker, and requested again and again."""
    monkeypatch.setattr(prepared, "LONGEST_SECS", 0)
    storing.use(make_script(), app)
    workunit = job(app, version, hosts, "1", "1")
    run(app, run_secs=0)
    workunit.refresh_from_db()
    assert states(workunit) == [INIT, INIT]
    assert workunit.validate_fault.endswith("script:by-value takes too long for its results")
    assert workunit.validate_after is not None


def test_no_row_is_locked_while_it_runs(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    storing.use(make_script(), app)
    job(app, version, hosts, "1", "1")
    depths: list[int] = []
    ask = calls.ScriptSession.call

    def noted(*arguments: Any, **named: Any) -> Any:
        depths.append(len(connection.savepoint_ids))
        return ask(*arguments, **named)

    before = len(connection.savepoint_ids)
    monkeypatch.setattr(calls.ScriptSession, "call", noted)
    run(app)
    assert set(depths) == {before}


def test_what_changed_since_it_was_asked_waits_for_the_next_pass(
    app: App, version: AppVersion, hosts: list[Host], make_script: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    storing.use(make_script(), app)
    workunit = job(app, version, hosts, "1", "1")
    prepare: Callable[..., object] = prepared.prepare
    passes = 0

    def meanwhile(*arguments: object) -> object:
        nonlocal passes
        answers = prepare(*arguments)
        passes += 1
        if passes == 1:
            report(workunit, version, hosts[2])
            outputs(workunit, "1", "1", "7")
        return answers

    monkeypatch.setattr(worker, "prepare", meanwhile)
    run(app)
    assert passes > 1
    assert states(workunit) == [VALID, VALID, INVALID]
