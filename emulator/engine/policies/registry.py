"""Makes a policy by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.engine.policies.debt_2005 import Debt2005
from emulator.engine.policies.long_term_debt import LongTermDebt
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.rec import Rec, RecLetter
from emulator.engine.policies.single_debt import SingleDebt
from emulator.engine.policy import Policy
from emulator.engine.scenario import Scenario, ScenarioError


def make_policy(name: str, scenario: Scenario, parameters: Mapping[str, Any]) -> Policy:
    """A policy for one run of the scenario. ``parameters``: ``half_life_days`` of ``rec`` and ``rec-letter``;
    ``eligibility_rule`` of ``ltd``, False to let a project that is backed off collect debt.

    Raises ScenarioError for a name that is not in PolicyName.
    """
    if name in (PolicyName.REC, PolicyName.REC_LETTER):
        half_life_days = parameters.get("half_life_days")
        policy = Rec if name == PolicyName.REC else RecLetter
        return policy(None if half_life_days is None else float(half_life_days))
    if name == PolicyName.LTD:
        return LongTermDebt(scenario, eligibility_rule=bool(parameters.get("eligibility_rule", True)))
    if name == PolicyName.LTD_SINGLE:
        return SingleDebt(scenario)
    if name == PolicyName.DEBT:
        return Debt2005(scenario)
    raise ScenarioError("policy", f"{name!r} is none of {', '.join(PolicyName)}")
