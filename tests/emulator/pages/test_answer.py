"""The facts of a run in sentences."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from django.utils.translation import override

from emulator.advice.findings import Cause, Findings, IdleKind, LateJob, ShortProject
from emulator.advice.trials import Advice, Measures, Setting, SettingChange, Trial, TrialResults
from emulator.pages.texts.answer import _WHY_IDLE, _WHY_SHORT, answer_of
from emulator.pages.texts.durations import duration

GOOD = Findings((), 0, 12, (), ())
BEFORE = Measures(idle=0.2, late=0.0, short=0.0, rpcs_per_job=0.5)
TRIAL = Trial(SettingChange(Setting.BUFFER, (0.1, 0.5), (1.0, 1.0)), Measures(0.01, 0.0, 0.002, 0.25))


def stored(findings: Findings, outcome: TrialResults | None = None, **more: Any) -> dict[str, Any]:
    return {"findings": asdict(findings), "outcome": asdict(outcome) if outcome else None, **more}


def test_a_run_without_an_answer_shows_none() -> None:
    assert answer_of({}) is None


def test_a_good_run_needs_no_change() -> None:
    answer = answer_of(stored(GOOD, TrialResults(30, BEFORE, (), ())))
    assert answer is not None and answer.good.startswith("Nothing needs changing. All 12 tasks")
    assert not (answer.late or answer.problems or answer.advice or answer.no_advice or answer.trials)


def test_late_tasks_are_named_with_how_late_they_are() -> None:
    late = (LateJob("Alpha", 3, "wu_7_0", 5.5 * 3600, True), LateJob("Beta", 41, "", 3 * 86400.0, False))
    answer = answer_of(stored(Findings(late, 2, 9, (), ())))
    assert answer is not None and answer.late == "2 of 9 tasks are late."
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in answer.late_tasks] == [
        "wu_7_0 of Alpha is finished 5.5 h after its deadline.",
        "task 41 of Beta is not finished at the end, 3 days after its deadline.",
    ]


def test_advice_says_both_figures_of_all() -> None:
    idle = IdleKind("intel_gpu", 20.0, 100.0, Cause.OFFLINE)
    outcome = TrialResults(30, BEFORE, (TRIAL,), (Advice("idle", TRIAL),))
    answer = answer_of(stored(Findings((), 0, 9, (), (idle,)), outcome))
    assert answer is not None and "The Intel GPU is idle for 20" in answer.problems[0]
    (advice,) = [text.replace("\N{NARROW NO-BREAK SPACE}", " ") for text in answer.advice]
    assert advice == (
        "Store at least 1 and up to 1 more days of work (now 0.1 and 0.5). Idle: 1 % instead of 20 %; "
        "Late tasks: 0 % instead of 0 %; Work missing from shares: 0.2 % instead of 0 %."
    )
    assert [row.change for row in answer.trials] == ["As it is", advice.partition(". Idle")[0]]


@pytest.mark.parametrize(
    ("outcome", "more", "said"),
    [
        (TrialResults(30, BEFORE, (TRIAL,), ()), {}, "1 change was tried."),
        (TrialResults(30, BEFORE, (), ()), {}, "No setting of the client would change that."),
        (None, {"are_trials_skipped": True}, "No changes were tried"),
        (None, {}, ""),  # another run of the experiment tries them
    ],
)
def test_without_advice_it_says_why(outcome: TrialResults | None, more: dict[str, bool], said: str) -> None:
    short = ShortProject("Alpha", "NVIDIA", 0.5, 0.1, Cause.NO_NEW_TASKS)
    answer = answer_of(stored(Findings((), 0, 9, (short,), ()), outcome, **more))
    assert answer is not None and answer.no_advice.startswith(said) and bool(answer.no_advice) == bool(said)
    first = "Alpha gets 10\u202f% of the work of the NVIDIA GPU. Its share of it is 50\u202f%."
    assert answer.problems[0].startswith(first)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (SettingChange(Setting.SHARE, (20,), (80,), "Alpha"), "Set the share of Alpha to 80 (now 20)"),
        (SettingChange(Setting.MAX_CONCURRENT, (0,), (3,), "Alpha"), "Let at most 3 tasks of Alpha run at once"),
        (SettingChange(Setting.MAX_CONCURRENT, (2,), (0,), "Alpha"), "Remove the limit of 2 tasks of Alpha at once"),
    ],
)
def test_each_change_has_words(change: SettingChange, said: str) -> None:
    outcome = TrialResults(30, BEFORE, (Trial(change, BEFORE),), ())
    answer = answer_of(stored(Findings((), 1, 9, (), ()), outcome))
    assert answer is not None and answer.trials[1].change == said


def test_each_cause_has_words_in_german_too() -> None:
    assert set(_WHY_SHORT) | {Cause.OFFLINE, Cause.SUSPENDED, Cause.NO_PROGRAM} == set(Cause)
    assert set(_WHY_IDLE) | {Cause.UNKNOWN} == set(Cause)
    for text in (*_WHY_SHORT.values(), *_WHY_IDLE.values()):
        with override("de"):
            german = str(text)
        with override("en"):
            assert german != str(text)


@pytest.mark.parametrize(
    ("secs", "text"),
    [
        (25.0, "25 s"),
        (840.0, "14 min"),
        (17_999.9, "5 h"),
        (18_200.0, "5.1 h"),
        (86_400 * 1.999, "2 days"),
        (86_400 * 2.999, "3 days"),
    ],
)
def test_a_length_of_time_has_no_digit_that_says_nothing(secs: float, text: str) -> None:
    assert duration(secs).replace("\u00a0", " ") == text
