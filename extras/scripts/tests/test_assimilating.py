"""Scripts that receive the outputs of finished workunits."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from pytest_django import Settings

from credit.models import App, AssimilateState, Batch, Workunit
from extras.scripts import storing
from extras.scripts.models import Script
from extras.scripts.tests.conftest import ANSWER, PYTHON, Make
from portal.models import Host, User
from scheduler.lifecycle import assimilator
from scheduler.models import KeptOutput, RetryEntry
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON
from tests.support.finished_jobs import DEFAULTS, finish

pytestmark = [pytest.mark.django_db, pytest.mark.system, pytest.mark.usefixtures("bubblewrap", "project_folders")]

COLLECT = (
    f"{PYTHON}"
    "    result = asked['result']\n"
    "    with open('/data/all', 'a') as data:\n"
    "        word = open(result['files'][0]['path']).read().strip() if result else ' '.join(asked['errors'])\n"
    "        data.write(f\"{asked['workunit']['name']} {word}\\n\")\n"
    "    answer = {'answer': True, 'keep': bool(result)}\n"
    f"{ANSWER}"
)


@pytest.fixture
def data(settings: Settings, open_folder: Path) -> Path:
    settings.SCRIPT_DATA_DIR = str(open_folder)
    return open_folder


@pytest.fixture
def batch(app: App, submitter: User, hosts: list[Host]) -> Batch:
    jobs = [{"name": "one"}, {"name": "two"}]
    defaults = {**DEFAULTS, "min_quorum": 1, "target_nresults": 1}
    batch, _ = submit(app, defaults, jobs, owner=submitter, name="", request_id="", now=NOON)
    finish(batch, hosts[0])
    return batch


def run(app: App) -> int:
    app.refresh_from_db()
    return assimilator.run_slow(app, NOON, inf)


def collect(make_script: Make, app: App, source: str = COLLECT, **fields: object) -> Script:
    script = make_script(source, "collect", kind="assimilate", **fields)
    script.full_clean()
    storing.use(script, app)
    return script


def test_a_python_script_collects_outputs_and_has_them_kept(
    app: App, batch: Batch, make_script: Make, data: Path
) -> None:
    collect(make_script, app)
    names = sorted(batch.workunits.values_list("name", flat=True))
    assert [found.pk for found in assimilator.apps_with_slow_functions()] == [app.pk]
    # Other apps' workunits continue without it.
    assert assimilator.run(NOON) == 0
    assert run(app) == 2
    assert sorted((data / "collect" / "all").read_text().splitlines()) == [f"{name} 42" for name in names]
    assert KeptOutput.objects.filter(batch=batch).count() == 2
    assert set(batch.workunits.values_list("assimilate_state", flat=True)) == {AssimilateState.DONE}
    assert assimilator.apps_with_slow_functions() == []


def test_it_is_told_of_jobs_that_failed(app: App, batch: Batch, make_script: Make, data: Path) -> None:
    collect(make_script, app)
    Workunit.objects.update(canonical_result=None, error_mask=2 + 8)
    assert run(app) == 2
    assert "TOO_MANY_ERROR_RESULTS TOO_MANY_TOTAL_RESULTS" in (data / "collect" / "all").read_text()
    assert not KeptOutput.objects.exists()


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_shell_script_for_boincs_assimilator_gets_its_words(
    has_failed: bool, app: App, batch: Batch, make_script: Make, data: Path
) -> None:
    source = '#!/bin/sh\necho "$@" >> /data/words\n'
    collect(make_script, app, source, protocol="words", words="wu_id batch_id files2")
    Workunit.objects.exclude(pk=batch.workunits.earliest("pk").pk).update(assimilate_state=AssimilateState.DONE)
    if has_failed:
        Workunit.objects.update(canonical_result=None, error_mask=2)
    assert run(app) == 1
    workunit = batch.workunits.earliest("pk")
    result = workunit.results.get()
    expected = f"{workunit.pk} {batch.pk} /work/in/{result.pk}/{result.name}_0 out"
    if has_failed:
        expected = f"--error 2 {workunit.name} {workunit.pk} {batch.pk}"
    assert (data / "collect" / "words").read_text().strip() == expected


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (f"{PYTHON}    answer = {{'answer': False}}\n{ANSWER}", "did not take it"),
        (f"{PYTHON}    answer = {{'later': 'no room'}}\n{ANSWER}", "no room"),
        ("#!/bin/sh\nexit 5\n", "exit code 5"),
    ],
)
def test_what_it_does_not_take_comes_again(source: str, fault: str, app: App, batch: Batch, make_script: Make) -> None:
    collect(make_script, app, source)
    assert run(app) == 0
    assert set(batch.workunits.values_list("assimilate_state", flat=True)) == {AssimilateState.READY}
    assert all(fault in entry.fault for entry in RetryEntry.objects.all())
    assert RetryEntry.objects.count() == 2
