"""Policies by the names that people use for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.engine.policies.debt_2005 import Debt2005
from emulator.engine.policies.long_term_debt import LongTermDebt
from emulator.engine.policies.rec import HALF_LIFE_DAYS, Rec
from emulator.engine.policies.single_debt import SingleDebt
from emulator.engine.policy import Policy
from emulator.engine.scenario import Scenario, ScenarioError

NAMES = ("rec", "ltd", "ltd-single", "debt")


def make_policy(name: str, scenario: Scenario, parameters: Mapping[str, Any]) -> Policy:
    """A policy for one run of the scenario. ``parameters``: ``half_life_days`` of ``rec``; ``eligibility_rule``
    of ``ltd``, False to let a project that is backed off collect debt.

    Raises ScenarioError for a name that is none of `NAMES`.
    """
    if name == "rec":
        return Rec(float(parameters.get("half_life_days", HALF_LIFE_DAYS)))
    if name == "ltd":
        return LongTermDebt(scenario, eligibility_rule=bool(parameters.get("eligibility_rule", True)))
    if name == "ltd-single":
        return SingleDebt(scenario)
    if name == "debt":
        return Debt2005(scenario)
    raise ScenarioError("policy", f"{name!r} is none of {', '.join(NAMES)}")
