"""The words of a preview are generated from its figures when it is shown, in the reader's language."""

from __future__ import annotations

from math import nan

import pytest
from django.utils.translation import override

from credit.engine.averages import Average
from credit.engine.facts import HostVersionFacts
from credit.engine.rules import Rules
from credit.previews import texts
from credit.previews.figures import side
from credit.previews.run import ReplayedDecision
from tests.support.credit_engine_facts import app, decide, record, result, version

RESULT = {
    "total": {"before": 100.0, "after": 50.0, "days": 2.0},
    "window": {"nworkunits": 12},
    "waiting": {"before": 0, "after": 1},
}


def test_the_summary_is_in_the_readers_language() -> None:
    with override("de"):
        assert texts.summary(RESULT) == [
            "Die letzten 12 gutgeschriebenen Workunits: 50,0 % weniger Credits, 25 Credits weniger pro Tag.",
            "1 einzelnes Ergebnis mehr würde auf ein zweites warten.",
        ]


def test_kinds_of_computers_are_named_and_versions_stay_as_they_are() -> None:
    with override("de"):
        assert texts.group_name("NVIDIA GPU + another GPU") == "NVIDIA GPU + eine andere GPU"
        assert texts.group_name("1.00 (cuda), x86_64-pc-linux-gnu") == "1.00 (cuda), x86_64-pc-linux-gnu"


def told(host: HostVersionFacts, run_time: float = 1000.0, *, check: bool, max_host_scale: float = 10.0) -> str:
    """What a preview says of a job of this computer under these settings, and nothing of one that would wait."""
    facts = app(Rules.published().with_limits(max_host_scale=max_host_scale), host_scale_check=check)
    decision = decide(facts, result(host, version(500, 30.0, 0.5), run_time))
    decided = ReplayedDecision(1.0, decision.grant.credit, decision.grant.code, decision.claims[0], facts)
    task = {"fpops_est": 1e12, "partial_credit": 0.0, "elapsed_secs": run_time}
    now, changed = texts.steps({"task": task, "sides": [side(decided), side(ReplayedDecision())]})
    assert [step.sentence for step in changed] == ["It would wait for a second result to confirm it."]
    return " ".join(step.sentence for step in now)


@pytest.mark.parametrize("most", [5.0, 10.0])
def test_a_factor_at_the_limit_of_the_settings_names_that_limit(most: float) -> None:
    # The version's average, 30, over the computer's, 1
    assert f"then limited to {most:g}, the maximum for this app" in told(
        record(50, 1.0), check=False, max_host_scale=most
    )


@pytest.mark.parametrize("check", [False, True])
def test_a_claim_on_probation_says_that_it_does_not_affect_the_credit_of_others(check: bool) -> None:
    host = record(50, 20.0, failing_share=0.5, clean_pfc=Average(20, 20.0))
    assert ("its claims do not affect the credit of others" in told(host, check=check)) is check
    assert ("on probation again" in told(record(50, 1.0), nan, check=check)) is check
