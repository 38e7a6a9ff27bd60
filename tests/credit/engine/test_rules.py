"""The rule sets, and the limits that an app may set."""

from __future__ import annotations

from math import inf, nan

import pytest

from credit.engine.rules import LIMITS, Rules, RulesError, RuleSet

RULES = Rules.published()
DEPLOYED = Rules.deployed()


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("rules", [RULES, DEPLOYED], ids=["published", "deployed"])
def test_an_app_may_set_each_limit_within_its_range(rules: Rules, name: str) -> None:
    low, high = LIMITS[name]
    assert getattr(rules.with_limits(**{name: low}), name) == low
    assert getattr(rules.with_limits(**{name: high}), name) == high
    for wrong in (low / 2, high * 2, nan, inf, -inf, -1.0):
        with pytest.raises(RulesError, match=f"{name} must be from {low:g} to {high:g}".replace("+", r"\+")):
            rules.with_limits(**{name: wrong})


def test_a_limit_that_an_app_leaves_empty_is_the_rule_sets() -> None:
    assert RULES.with_limits(max_host_scale=None) == RULES


def test_an_unknown_limit_is_refused() -> None:
    with pytest.raises(TypeError, match="initial_error_rate is not a limit"):
        RULES.with_limits(initial_error_rate=0.5)


def test_own_limits_reach_the_averages() -> None:
    rules = RULES.with_limits(host_avg_samples=3, host_avg_weight=0.5, version_avg_limit=7)
    assert (rules.host_average.even_samples, rules.host_average.weight, rules.version_average.limit) == (3, 0.5, 7)
    assert DEPLOYED.with_limits(host_avg_samples=3).host_average.even_samples == 2


def test_rule_sets_are_found_by_name() -> None:
    assert Rules.of("published") == RULES
    assert Rules.of("deployed") == DEPLOYED
    assert Rules.of("letter") == Rules.letter()
    assert {rules.rule_set for rules in map(Rules.of, RuleSet)} == set(RuleSet)
    with pytest.raises(ValueError, match="other"):
        Rules.of("other")
