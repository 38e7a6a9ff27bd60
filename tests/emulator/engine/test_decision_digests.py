"""The decisions of some runs under every policy, to the last bit: anyone who changes a rule sees which runs it changes.

`python -m tests.emulator.engine.test_decision_digests` writes the digests again.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from tests.support.random_scenarios import random_scenario

STORED: Final = Path(__file__).parents[2] / "data" / "emulator" / "decision_digests.json"
SEEDS: Final = range(6)
DAYS: Final = 2.0


def digests_of(policy: PolicyName) -> list[str]:
    """Of each run, of all columns of its decisions."""
    made = []
    for seed in SEEDS:
        scenario = random_scenario(seed)
        decisions = run(scenario, make_policy(policy, scenario, {}), DAYS, seed=seed, timeline=False).decisions
        made.append(sha256(repr(decisions).encode()).hexdigest()[:16])
    return made


@pytest.mark.parametrize("policy", PolicyName)
def test_decisions_are_those_that_are_stored(policy: PolicyName) -> None:
    assert digests_of(policy) == json.loads(STORED.read_text())[policy]


if __name__ == "__main__":
    STORED.write_text(json.dumps({policy: digests_of(policy) for policy in PolicyName}, indent=1) + "\n")
