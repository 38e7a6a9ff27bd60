"""The loop, its batcher and the clients' use cases under seeded faults of a simulated database, and with sown bugs.

Each seed is another order of replies, errors, lost connections, failovers, time-outs and ends of web processes.
After it each request has had one answer, what was confirmed is stored once, and nothing is left over.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from accounting.projects import signing_key
from tests.support.simulated.bugs import BUGS, Bug, sown
from tests.support.simulated.run import Plan, outcome

NSEEDS = int(os.environ.get("SIMULATION_SEEDS", "96"))
"""`make faults` has 10,000."""
PARTS = 4
MOST_SEEDS = 100
"""This many are enough to find each of the sown bugs."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulation")


@pytest.fixture(autouse=True)
def signing_keys(keys: Path, settings: Settings) -> None:
    settings.AM_SIGNING_KEY = keys / "private"
    settings.AM_SIGNING_KEY_PUBLIC = keys / "public"
    signing_key.make_if_missing()


def plan(seed: int, *, guards: bool = True) -> Plan:
    """Three kinds: requests that are given up, a database that answers too late, and one that answers in time."""
    return Plan(seed, hurries=seed % 3 == 0, stalls=seed % 3 != 2, guards=guards)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_was_confirmed_is_stored_once_whatever_fails(part: int) -> None:
    done = [outcome(plan(seed)) for seed in range(part, NSEEDS, PARTS)]
    assert {seed: its.wrong for seed, its in zip(range(part, NSEEDS, PARTS), done, strict=True) if its.wrong} == {}
    # The faults reach the requests, and most requests are answered all the same.
    assert sum(its.nfaults for its in done) > 5 * len(done)
    assert sum(its.nconfirmed for its in done) > 30 * len(done)
    assert sum(its.nrefused for its in done) > len(done)


def test_a_run_depends_on_its_seed_alone() -> None:
    assert outcome(Plan(1)).trace == outcome(Plan(1)).trace != outcome(Plan(2)).trace


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_processes_answer_changes_no_books(seed: int) -> None:
    several = [outcome(Plan(seed, order=order)) for order in range(3)]
    assert [its.wrong for its in several] == [[], [], []]
    assert several[0].books == several[1].books == several[2].books
    assert several[0].trace != several[1].trace


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_sown_bug_is_found(bug: Bug) -> None:
    with sown(bug):
        assert any(outcome(plan(seed)).wrong for seed in range(MOST_SEEDS))


def test_a_database_without_its_guards_is_noticed() -> None:
    wrong = [each for seed in range(12) for each in outcome(plan(seed, guards=False)).wrong]
    assert any("on its days" in each for each in wrong)  # written twice
    assert any("was sent 2 times" in each for each in wrong)
