"""Policies from outside: the documented example, and what happens to a policy that breaks a rule."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies import own
from emulator.engine.policies.guarded import GuardedPolicy
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.own import installed, make_own_policy
from emulator.engine.policies.registry import make_policy
from emulator.engine.policy import PolicyError
from emulator.engine.run import run
from emulator.engine.scenario import Scenario
from emulator.engine.state import NEVER
from emulator.engine.timeline.reasons import Reason
from emulator.files.presets import preset

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "earliest_deadline_policy"
FILE = f"{EXAMPLE / 'earliest_deadline_policy.py'}:EarliestDeadline"


@pytest.fixture
def scenario() -> Scenario:
    return preset("document-gpu-and-cpu").scenario


def example(scenario: Scenario) -> Any:
    """The example's policy, unguarded."""
    return own._of_file(FILE)(scenario, {})


@pytest.mark.parametrize("name", ["s1_two_equal_cpu", "s3_tight_deadlines", "document-gpu-and-cpu", "n10_projects"])
def test_the_example_keeps_every_rule_and_the_processors_busy(name: str) -> None:
    scenario = preset(name).scenario
    result = run(scenario, make_own_policy(FILE, scenario, {}), 5, 1)
    assert result.policy == "EarliestDeadline"
    assert result.figures.idle < 0.02
    assert sum(project.jobs for project in result.projects) > 0


def test_the_guard_changes_nothing(scenario: Scenario) -> None:
    guarded = run(scenario, GuardedPolicy(example(scenario), "x"), 5, 1)
    assert guarded.figures == run(scenario, example(scenario), 5, 1).figures


def test_the_guard_accepts_what_this_projects_own_policies_do() -> None:
    for name in PolicyName:
        for key in ("s4_shares_60_30_10", "document-gpu-and-cpu", "s3_tight_deadlines"):
            scenario = preset(key).scenario
            policy = make_policy(name, scenario, {})
            assert run(scenario, GuardedPolicy(policy, name), 0.5, 1).days == 0.5


def fail(*_: Any) -> Any:
    raise KeyError("no such\nthing")


def all_jobs(policy: Any) -> Choice:
    jobs = policy.client.jobs()
    return Choice(jobs, [Reason.OWN_CHOICE] * len(jobs), NEVER)


def choice(policy: Any, jobs: list[Any]) -> Choice:
    return Choice(jobs, [Reason.OWN_CHOICE] * len(jobs), NEVER)


def first(policy: Any) -> Any:
    return policy.client.jobs()[0]


def asked(policy: Any, **changes: Any) -> Fetch:
    """A request that would be in order, changed."""
    fields = {"project": policy.client.projects[0], "secs": [1.0, 1.0], "instances": [0.0, 0.0]}
    return Fetch(WorkRequest(**{**fields, "reason": Reason.OWN_REQUEST, **changes}), NEVER)


# What no type checker would let a policy return, but an untyped one can.
SOON: Any = "soon"
NO_JOBS: Any = None
UNKNOWN_REASONS: Any = ["why"]
NAME: Any = "A"

BROKEN: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "raises": ("choose", fail, "failed in fail: KeyError: 'no such"),
    "raises in fetch": ("fetch", fail, "failed in fail: KeyError"),
    "no choice": ("choose", lambda policy: None, "other than a Choice"),
    "recheck is NaN": ("choose", lambda policy: Choice([], [], float("nan")), "recheck_secs is not a number"),
    "recheck is text": ("fetch", lambda policy: Fetch(None, SOON), "recheck_secs is not a number"),
    "jobs are None": ("choose", lambda policy: Choice(NO_JOBS, [], NEVER), "not a list"),
    "reasons too few": ("choose", lambda policy: Choice(policy.client.jobs()[:1], [], 1.0), "one reason for each job"),
    "no reason": ("choose", lambda policy: Choice(policy.client.jobs()[:1], UNKNOWN_REASONS, 1.0), "not in Reason"),
    "no job": ("choose", lambda policy: choice(policy, ["A"]), "not a job"),
    "twice": ("choose", lambda policy: choice(policy, [first(policy)] * 2), "twice"),
    "too many": ("choose", all_jobs, "chose too many jobs for 1 × "),
    "no fetch": ("fetch", lambda policy: None, "other than a Fetch"),
    "request is text": ("fetch", lambda policy: Fetch(NAME, 1.0), "other than a WorkRequest"),
    "unknown project": ("fetch", lambda policy: asked(policy, project=SimpleNamespace()), "does not have"),
    "negative": ("fetch", lambda policy: asked(policy, secs=[-1.0, 0.0]), "secs that are negative"),
    "NaN": ("fetch", lambda policy: asked(policy, secs=[float("nan"), 0.0]), "not numbers"),
    "infinite": ("fetch", lambda policy: asked(policy, instances=[float("inf"), 0.0]), "instances that are"),
    "1e304": ("fetch", lambda policy: asked(policy, secs=[1e304, 0.0]), "too large"),
    "too short": ("fetch", lambda policy: asked(policy, secs=[1.0]), "one number for each kind"),
    "delays": ("fetch", lambda policy: asked(policy, delays_secs=[-1.0, 0.0]), "delays_secs that are negative"),
    "reason": ("fetch", lambda policy: asked(policy, reason="why"), "not in Reason"),
    "standing": ("standing", lambda policy: float("nan"), "finite number from standing"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_policy_that_breaks_a_rule_fails_its_run_with_a_sentence(broken: str, scenario: Scenario) -> None:
    method, answer, said = BROKEN[broken]
    policy = example(scenario)
    calls = [0]
    present = getattr(policy, method)

    def broken_method(*arguments: Any) -> Any:
        # At first it does right, so that there are jobs.
        calls[0] += 1
        if method != "standing" and calls[0] <= 3:
            return present(*arguments)
        return answer(policy)

    broken_method.__name__ = "fail"
    setattr(policy, method, broken_method)
    with pytest.raises(PolicyError) as error:
        run(scenario, GuardedPolicy(policy, "mine"), 5, 1)
    assert str(error.value).startswith("The policy mine ") and str(error.value).endswith(".")
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_job_that_is_done_cannot_run(scenario: Scenario) -> None:
    policy = example(scenario)
    done: list[Any] = []
    policy.job_ended = lambda job, now: done.append(job)
    choose = policy.choose
    policy.choose = lambda now: choice(policy, done[:1]) if done else choose(now)
    with pytest.raises(PolicyError, match="which the client does not have"):
        run(scenario, GuardedPolicy(policy, "mine"), 5, 1)


def test_a_project_that_may_not_be_asked_is_not(scenario: Scenario) -> None:
    policy = example(scenario)
    policy.fetch = lambda now: asked(policy)
    closed = replace(scenario.projects[0], no_new_tasks=True)
    scenario = replace(scenario, projects=(closed, *scenario.projects[1:]))
    with pytest.raises(PolicyError, match="may not be asked now"):
        run(scenario, GuardedPolicy(policy, "mine"), 5, 1)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = (", "could not be loaded from .*: SyntaxError"),
        ("import no_such_module", "could not be loaded from .*: ModuleNotFoundError"),
        ("class Other: pass", "could not be loaded from .*: AttributeError"),
        ("class Mine: pass", "could not be made: TypeError"),
        ("class Mine:\n  def __init__(self, *_): pass", "has no method begin"),
        ("def Mine(*_): raise ValueError('no')", "could not be made: ValueError: no"),
        ("class Mine:\n  policy_api_version = 2", "was written for version 2 of the interface; this is 1"),
    ],
)
def test_what_cannot_be_used_is_said(source: str, said: str, tmp_path: Path, scenario: Scenario) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(PolicyError, match=f"^The policy Mine {said}"):
        make_own_policy(f"{file}:Mine", scenario, {})


def test_a_file_that_is_not_there_is_named(scenario: Scenario) -> None:
    with pytest.raises(PolicyError, match=r"There is no file nowhere\.py"):
        make_own_policy("nowhere.py:Mine", scenario, {})


def install(folder: Path, names: dict[str, str]) -> None:
    """A package's metadata as installers write them, with these entry points."""
    info = folder / "some_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-policies\nVersion: 1.0\n")
    points = "".join(f"{name} = {value}\n" for name, value in names.items())
    (info / "entry_points.txt").write_text(f"[{own.GROUP}]\n{points}")


def test_an_installed_package_offers_policies_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: Scenario
) -> None:
    target = "earliest_deadline_policy:EarliestDeadline"
    install(tmp_path, {"earliest-deadline": target, "rec": target, "Bad Name": target, "broken": "no_module:X"})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "earliest_deadline_policy", raising=False)
    try:
        # Names of this project's policies, and odd ones, are passed over; nothing is loaded yet.
        assert list(installed()) == ["broken", "earliest-deadline"]
        assert "earliest_deadline_policy" not in sys.modules
        result = run(scenario, make_own_policy("earliest-deadline", scenario, {}), 2, 1)
        assert result.policy == "earliest-deadline"
        with pytest.raises(PolicyError, match="The policy broken could not be loaded: ModuleNotFoundError"):
            make_own_policy("broken", scenario, {})
    finally:
        sys.modules.pop("earliest_deadline_policy", None)
    with pytest.raises(PolicyError, match="There is no policy 'unknown'"):
        make_own_policy("unknown", scenario, {})
