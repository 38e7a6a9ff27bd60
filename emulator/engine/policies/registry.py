"""Make a policy of this project by its name. External ones are in emulator.engine.policies.own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from emulator.engine.policies.debt_2005 import Debt2005
from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.policies.long_term_debt import LongTermDebt, SingleDebt
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.rec import Rec, RecLetter
from emulator.engine.scenario import Scenario, ScenarioError
from portal.languages.messages import Message

NO_GPUS: Final = Message("policy_without_gpus")


def policy_notes(name: str, scenario: Scenario) -> tuple[Message, ...]:
    """Notes to show beside the results of that policy: parts of the scenario that it ignores."""
    return (NO_GPUS,) if name == PolicyName.DEBT and len(scenario.host.processors) > 1 else ()


SIMULATING: Final = frozenset(PolicyName) - {PolicyName.DEBT}
"""The policies that start from the round-robin simulation."""

POLICY_PARAMETERS: Final = frozenset({"half_life_days", "eligibility_rule"})
"""The arguments of a policy besides the scenario."""


def make_policy(name: str, scenario: Scenario, parameters: Mapping[str, Any]) -> ArrayPolicy:
    """Makes a policy for one run of the scenario. ``parameters``: ``half_life_days`` of ``rec`` and ``rec-letter``;
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
    raise ScenarioError("policy", "none_of", value=name, names=list(PolicyName))
