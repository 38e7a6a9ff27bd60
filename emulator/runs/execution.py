"""Run one order: a scenario, a policy, days and a seed. Both the page's process and `manage.py emulate` use it.

An order is JSON: `scenario`, `days`, `policy`, `has_quirks`, `parameters`, `seed`, `timeline`. No Django.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import inf
from typing import Any

from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.own import make_own_policy
from emulator.engine.policies.registry import make_policy
from emulator.engine.policy import Policy
from emulator.engine.quirks import BOINC, Quirks
from emulator.engine.replay import NO_SIMULATION, DecisionKey, ReplayError, moment
from emulator.engine.run import Emulation
from emulator.engine.scenario import Scenario
from emulator.engine.timeline.results import Result
from emulator.files.scenario_json import from_json, to_json
from emulator.runs.sweeps import with_parameters
from emulator.runs.variants import Variant


def order_of(scenario: Scenario, variant: Variant, days: float, seed: int, *, timeline: bool) -> dict[str, Any]:
    """Return the order of one run of a variant. Raises ScenarioError for impossible parameters."""
    return {
        "scenario": to_json(with_parameters(scenario, variant.parameters)),
        "days": days,
        "policy": variant.policy,
        "has_quirks": variant.has_quirks,
        "parameters": variant.parameters,
        "seed": seed,
        "timeline": timeline,
    }


def execute(order: Mapping[str, Any], began: Callable[[Emulation], None] = lambda run: None) -> Result:
    """Run it. `began` is called with the run before it starts. Raises ScenarioError and PolicyError."""
    run = run_of(order, from_json(order["scenario"]), order["days"], timeline=order["timeline"])
    began(run)
    return run.result()


def replay(
    order: Mapping[str, Any], key: DecisionKey, began: Callable[[Emulation], None] = lambda run: None
) -> dict[str, Any]:
    """Return its policy's knowledge at that decision, as JSON (emulator.engine.replay.Moment). Raises ReplayError."""
    scenario = from_json(order["scenario"])
    policy = policy_of(order["policy"], scenario, order["parameters"])
    if not isinstance(policy, ArrayPolicy):
        raise ReplayError(NO_SIMULATION)
    quirks = BOINC if order["has_quirks"] else Quirks()
    run = Emulation(scenario, policy, order["days"], order["seed"], quirks, timeline=False)
    began(run)
    return asdict(moment(run, policy, key))


def run_of(order: Mapping[str, Any], scenario: Scenario, days: float, *, timeline: bool) -> Emulation:
    """Return the order's policy and seed on a scenario. Raises ScenarioError and PolicyError."""
    quirks = BOINC if order["has_quirks"] else Quirks()
    policy = policy_of(order["policy"], scenario, order["parameters"])
    return Emulation(scenario, policy, days, order["seed"], quirks, timeline=timeline)


def policy_of(name: str, scenario: Scenario, parameters: Mapping[str, Any]) -> Policy:
    """Return one of this project's policies, or an external one. Raises ScenarioError and PolicyError."""
    if name in set(PolicyName):
        return make_policy(name, scenario, parameters)
    return make_own_policy(name, scenario, parameters)


def answer_of(result: Result, secs_left: float = inf) -> dict[str, Any]:
    """Return all figures of merit, and all data of each project in their order, as JSON. `secs_left`: the time limit
    for the calculated figures.
    """
    # SciPy takes a while to load, and the worker that creates orders does not need it.
    from emulator.runs.attainable import figures_of_merit

    projects = [{name: getattr(row, name) for name in type(row).__slots__} for row in result.projects]
    return {"figures_of_merit": figures_of_merit(result, secs_left), "projects": projects}
