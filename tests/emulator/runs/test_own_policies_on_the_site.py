"""Policies of installed packages on the site: only allowed ones, in a sandbox, and their faults in words."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from emulator.advice.stored import check_stored
from emulator.checks import check_sandbox
from emulator.engine.policies import own
from emulator.models import Run, RunState
from emulator.pages import own_policies
from emulator.pages.texts.answer import answer_of
from emulator.runs import answers, sandbox, worker
from emulator.runs.answers import Answer, check_answer
from tests.support.emulator_experiments import begin, carry_out, trial

pytestmark = pytest.mark.django_db

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "earliest_deadline_policy"
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Path:
    """A folder with a package that offers `mine`, a policy made of the example's source; the site allows it."""
    folder = tmp_path / "packages"
    info = folder / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{own.GROUP}]\nmine = mine:EarliestDeadline\n")
    (folder / "mine.py").write_text((EXAMPLE / "earliest_deadline_policy.py").read_text())
    monkeypatch.syspath_prepend(str(folder))
    settings.EMULATOR_POLICIES = ["mine", "not-installed"]
    # As pip would have put it beside the others, where the process finds it.
    plain = sandbox.command

    def command(kind: str, program: list[str]) -> list[str]:
        start = (
            f"import sys, runpy; sys.path.append({str(folder)!r}); "
            "runpy.run_module('emulator.runs.process', run_name='__main__')"
        )
        found = plain(kind, [program[0], "-c", start])
        return [*found[:1], "--ro-bind", str(folder), str(folder), *found[1:]] if kind == "bubblewrap" else found

    monkeypatch.setattr(sandbox, "command", command)
    return folder


def change(package: Path, method: str, body: str) -> None:
    """The policy's method does this instead."""
    file = package / "mine.py"
    text = file.read_text()
    assert f"    def {method}(" in text
    head = text.index("\n", text.index(f"    def {method}(")) + 1
    file.write_text(text[:head] + f"        {body}\n" + text[head:])


def run_mine(client: Client, **changes: Any) -> Run:
    experiment = begin(client)
    posted = client.post(reverse("experiment", args=[experiment.pk]), trial(experiment, policies=["mine"], **changes))
    assert posted.status_code == 302, posted.content.decode()
    carry_out()
    return Run.objects.get()


def test_none_is_offered_unless_the_operator_allows_it(signed_in: Client, package: Path, settings: Any) -> None:
    assert own_policies.offered() == ["mine"]
    settings.EMULATOR_POLICIES = []
    assert own_policies.offered() == []
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    assert signed_in.post(page, trial(experiment, policies=["mine"])).status_code == 400
    assert signed_in.post(page, trial(experiment, policies=["/tmp/mine.py:Mine"])).status_code == 400


def test_one_that_is_no_longer_allowed_does_not_run(signed_in: Client, package: Path, settings: Any) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, policies=["mine"]))
    settings.EMULATOR_POLICIES = []
    carry_out()
    assert Run.objects.get().fault == "The policy mine is not allowed on this site."


@needs_bwrap
def test_it_runs_in_the_sandbox_and_is_compared(signed_in: Client, package: Path) -> None:
    experiment = begin(signed_in)
    fields = trial(experiment, policies=["rec", "mine"], nseeds="2")
    signed_in.post(reverse("experiment", args=[experiment.pk]), fields)
    carry_out()
    assert [(run.state, run.fault) for run in Run.objects.all()] == [(RunState.DONE, "")] * 4
    page = signed_in.get(reverse("experiment", args=[experiment.pk])).content.decode()
    assert "Differences" in page and "<td>Recent estimated credit</td>" in page


TRIES = {
    "reads the site's files": f"open({str(worker.__file__)!r}.replace('emulator', 'portal', 1))",
    "reads the settings": f"open({str(Path(worker.__file__).parents[2] / 'manage.py')!r})",
    "reads the system's accounts": "open('/etc/passwd')",
    "writes a file": "open('/usr/x', 'w')",
    "reaches the network": "__import__('socket').create_connection(('127.0.0.1', 9), 2)",
    "sees other processes": "__import__('os').kill(1, 9) if len(__import__('os').listdir('/proc')) else None",
}


@needs_bwrap
@pytest.mark.parametrize("tried", TRIES)
def test_what_a_policy_cannot_do_in_the_sandbox(tried: str, signed_in: Client, package: Path) -> None:
    change(package, "begin", TRIES[tried])
    run = run_mine(signed_in)
    assert run.state == RunState.FAILED
    assert run.fault.startswith("The policy mine failed in begin: ") and "Error" in run.fault


@pytest.mark.parametrize("kind", ["limits", pytest.param("bubblewrap", marks=needs_bwrap)])
def test_it_sees_no_settings(
    kind: str, signed_in: Client, package: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMULATOR_POLICY_SANDBOX = kind
    monkeypatch.setenv("SECRET_KEY", "a secret")
    change(package, "begin", "raise ValueError(' '.join(sorted(__import__('os').environ)))")
    names = run_mine(signed_in).fault.rpartition(": ")[2].rstrip(".").split()
    # PWD is set by the sandbox itself.
    assert {"LANG", "PYTHONMALLOC"} <= set(names) <= {*sandbox.environment(), "PWD", "LC_CTYPE"}


@pytest.mark.parametrize("kind", ["limits", pytest.param("bubblewrap", marks=needs_bwrap)])
def test_what_it_prints_does_not_get_into_the_answer(
    kind: str, signed_in: Client, package: Path, settings: Any
) -> None:
    settings.EMULATOR_POLICY_SANDBOX = kind
    change(package, "begin", "print('progress 9', flush=True); __import__('os').write(2, b'x' * 100000)")
    run = run_mine(signed_in)
    assert (run.state, run.fault) == (RunState.DONE, "")


@pytest.mark.parametrize(
    ("method", "body", "said"),
    [
        ("choose", "raise ValueError('no')", "The policy mine failed in choose: ValueError: no."),
        ("choose", "return 7", "The policy mine returned something other than a Choice from choose."),
        ("standing", "return float('nan')", "The policy mine returned something other than a finite number"),
        ("choose", "__import__('os')._exit(0)", "The policy mine ended its run without a result."),
        ("choose", "__import__('sys').exit(3)", "The policy mine failed in choose: SystemExit: 3."),
        ("choose", "x = [0] * 10**9", "The policy mine failed in choose: MemoryError."),
    ],
)
def test_its_faults_fail_the_run_and_name_it(
    method: str, body: str, said: str, signed_in: Client, package: Path, settings: Any
) -> None:
    settings.EMULATOR_POLICY_SANDBOX = "limits"
    change(package, method, body)
    run = run_mine(signed_in)
    assert run.state == RunState.FAILED and said in run.fault


@pytest.mark.parametrize("body", ["while True: pass", "__import__('time').sleep(99)"])
def test_one_that_hangs_is_ended(body: str, signed_in: Client, package: Path, settings: Any) -> None:
    settings.EMULATOR_POLICY_SANDBOX = "limits"
    settings.EMULATOR_RUN_SECS_MAX = 2
    change(package, "choose", body)
    run = run_mine(signed_in)
    assert run.fault == "The policy mine took more than 2 s of processor time, or waited for something."


def test_without_the_program_of_the_sandbox_nothing_runs(
    signed_in: Client, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    run = run_mine(signed_in)
    assert run.state == RunState.FAILED and "fault of this site" in run.fault


FIGURES: dict[str, float | None] = {
    **dict.fromkeys(
        ("wasted", "idle", "share_violation", "share_violation_normalised", "monotony", "rpcs_per_job"), 0.5
    ),
    # A run may lack these two alone.
    **dict.fromkeys(("share_violation_least", "share_violation_avoidable"), None),
}
PROJECT = {
    **dict.fromkeys(("share", "got_fraction", "used_flop", "wasted_flop"), 0.5),
    **dict.fromkeys(("jobs", "met", "late", "failed", "sent", "rpcs"), 1),
    "name": "A",
    "instance_secs": [1.0],
}
RESULT = {"figures_of_merit": FIGURES, "projects": [PROJECT], "cpu_secs": 1.0}
MEASURES = {"idle": 0.1, "late": 0.0, "short": 0.0, "rpcs_per_job": 1.0}
TRIAL: dict[str, Any] = {
    "change": {"setting": "buffer", "before": [0.1, 0.5], "after": [1.0, 1.0], "project": ""},
    "measures": MEASURES,
}
LATE = {"project": "A", "job": 3, "name": "", "late_secs": 60.0, "is_finished": True}
SHORT = {"project": "A", "share": 0.5, "got": 0.2, "cause": "no work", "kind": ""}
IDLE = {"kind": "CPU", "idle_secs": 10.0, "able_secs": 100.0, "cause": ""}
FOUND = {"late": [LATE], "nlate": 1, "njobs": 2, "short": [SHORT], "idle": [IDLE]}
OUTCOME = {"days": 2.0, "before": MEASURES, "trials": [TRIAL], "advice": [{"figure": "idle", "trial": TRIAL}]}
ANSWER = {"findings": FOUND, "outcome": OUTCOME}


@pytest.mark.parametrize(
    "forged",
    [
        None,
        [],
        {},
        {**RESULT, "more": 1},
        {**RESULT, "cpu_secs": "1"},
        {**RESULT, "figures_of_merit": {**FIGURES, "idle": float("nan")}},
        {**RESULT, "figures_of_merit": {**FIGURES, "idle": None}},
        {**RESULT, "figures_of_merit": {**FIGURES, "share_violation_least": "0"}},
        {**RESULT, "figures_of_merit": {**FIGURES, "<b>": 1}},
        {**RESULT, "projects": []},
        {**RESULT, "projects": [{**PROJECT, "name": "x" * 300}]},
        {**RESULT, "projects": [{**PROJECT, "jobs": "many"}]},
        {**RESULT, "projects": [{**PROJECT, "instance_secs": [None]}]},
    ],
)
def test_an_answer_that_is_no_result_is_refused(forged: Any) -> None:
    check_answer(Answer(RESULT, b"", ""), has_timeline=False)
    with pytest.raises(ValueError, match=r"."):
        check_answer(Answer(forged, b"", ""), has_timeline=False)


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), b"nonsense"])
def test_a_timeline_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="timeline"):
        check_answer(Answer({**RESULT, "answer": ANSWER}, data, ""), has_timeline=True)


def test_a_timeline_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    np.savez_compressed(out, texts=np.zeros(5000, np.uint8))
    monkeypatch.setattr(answers, "TIMELINE_BYTES_MAX", 4000)
    with pytest.raises(ValueError, match="too large"):
        check_answer(Answer({**RESULT, "answer": ANSWER}, out.getvalue(), ""), has_timeline=True)


def test_a_missing_sandbox_is_told_when_the_site_is_checked(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    settings.EMULATOR_POLICIES = ["mine"]
    (found,) = check_sandbox(None)
    assert found.id == "cobblestone.W025" and "bwrap" in found.msg
    settings.EMULATOR_POLICY_SANDBOX = "limits"
    assert not check_sandbox(None)
    settings.EMULATOR_POLICY_SANDBOX, settings.EMULATOR_POLICIES = "bubblewrap", []
    assert not check_sandbox(None)


def test_an_answer_in_words_is_one_that_the_page_can_tell() -> None:
    for stored in (ANSWER, {**ANSWER, "outcome": None}, {**ANSWER, "outcome": None, "are_trials_skipped": True}):
        check_stored(stored)
        assert answer_of(stored) is not None


@pytest.mark.parametrize(
    "forged",
    [
        {},
        [],
        {**ANSWER, "more": 1},
        {**ANSWER, "findings": {**FOUND, "late": [{**LATE, "name": "x" * 300}]}},
        {**ANSWER, "findings": {**FOUND, "late": [LATE] * 1000}},
        {**ANSWER, "findings": {**FOUND, "nlate": "1"}},
        {**ANSWER, "findings": {**FOUND, "nlate": True}},
        {**ANSWER, "findings": {**FOUND, "njobs": -1}},
        {**ANSWER, "findings": {**FOUND, "short": [{**SHORT, "cause": "magic"}]}},
        {**ANSWER, "findings": {**FOUND, "short": [{**SHORT, "cause": "offline"}]}},
        {**ANSWER, "findings": {**FOUND, "short": [{**SHORT, "got": float("nan")}]}},
        {**ANSWER, "findings": {**FOUND, "idle": [{**IDLE, "able_secs": 0.0}]}},
        {**ANSWER, "outcome": {**OUTCOME, "before": {}}},
        {**ANSWER, "outcome": {**OUTCOME, "advice": [{"figure": "<b>", "trial": TRIAL}]}},
        {**ANSWER, "outcome": {**OUTCOME, "trials": [{**TRIAL, "change": {**TRIAL["change"], "after": []}}]}},
        {**ANSWER, "are_trials_skipped": 1},
    ],
)
def test_an_answer_in_words_that_is_none_is_refused(forged: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_stored(forged)


def test_the_answer_is_told_in_words_for_a_policy_from_outside(signed_in: Client, package: Path) -> None:
    run = run_mine(signed_in)
    assert run.state == RunState.DONE
    assert run.answer["findings"]["njobs"] == sum(row["jobs"] for row in run.projects)
    page = signed_in.get(f"/emulator/{run.experiment_id}/").content.decode()
    assert "The answer" in page
