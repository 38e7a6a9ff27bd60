"""Processing comes out as the operator set it: the arithmetic of boosts, and a thousand computers for two months."""

from __future__ import annotations

import pytest

from accounting.engine.choice.balance import GAIN, Week, rebalance, sum_up
from accounting.engine.choice.facts import CPU, ProjectFacts
from tests.support.choice_population import LINUX, MAC, WINDOWS, Population, people, versions

EVERYWHERE = (LINUX, WINDOWS, MAC)
PULSARS, CANCER, CLIMATE, NUMBERS, DRUGS, PARTICLES, SETI, VIRUSES = 3, 14, 35, 32, 10, 7, 2, 64


def test_a_computer_that_came_in_the_week_counts_as_if_it_had_been_there_all_along() -> None:
    # 30 credits in 3 of 7 days: 70 a week
    assert sum_up([Week(1, 10, 30, 3), Week(2, 10, 70, 7), Week(2, 11, 35, 7)]) == {10: 140, 11: 35}
    # What was done in less than a day is not blown up further.
    assert sum_up([Week(1, 10, 10, 0.01)]) == {10: 70}


def test_one_computer_counts_for_at_most_twenty_of_the_middle() -> None:
    weeks = [Week(host, 10, 100, 7) for host in range(5)]
    weeks += [Week(9, 11, 3000, 7), Week(9, 12, 1000, 7)]
    # Median 100, so 2,000 of its 4,000 count, in proportion.
    assert sum_up(weeks) == {10: 500, 11: 1500, 12: 500}


def test_without_work_there_is_nothing_to_balance() -> None:
    assert sum_up([]) == sum_up([Week(1, 10, 0, 7)]) == {}
    standing = rebalance({1: 300, 2: 100, 3: 0}, {}, {1: 2.0})
    assert {id_: tuple(each) for id_, each in standing.items()} == {1: (0.75, 0, 2), 2: (0.25, 0, 1)}


def test_a_project_behind_its_share_is_boosted_and_one_ahead_held_back() -> None:
    standing = rebalance({1: 100, 2: 100}, {1: 10, 2: 30}, {})
    assert (standing[1].target, standing[1].got) == (0.5, 0.25)
    # Before the mean is taken out: 2^GAIN for the one, (2/3)^GAIN for the other.
    assert standing[1].boost / standing[2].boost == pytest.approx(3**GAIN)
    assert standing[1].boost * standing[2].boost == pytest.approx(1)


def test_in_balance_all_stays_as_it_is() -> None:
    boosts = {1: 2.0, 2: 0.5}
    standing = rebalance({1: 100, 2: 100}, {1: 7, 2: 7}, boosts)
    assert {id_: each.boost for id_, each in standing.items()} == pytest.approx(boosts)


def test_what_cannot_be_reached_is_not_chased_without_end() -> None:
    boosts: dict[int, float] = {}
    for _ in range(200):
        boosts = {id_: each.boost for id_, each in rebalance({1: 100, 2: 100}, {2: 1}, boosts).items()}
    assert boosts[1] == pytest.approx(8) and boosts[2] >= 1 / 8.001


@pytest.mark.long
def test_a_thousand_computers_bring_every_project_its_share() -> None:
    """Within 5 %, over four weeks, on CPUs and GPUs: with platforms, likes, vetoes, computers that come and go."""
    projects = [
        ProjectFacts(1, 100, keywords={PULSARS: 1}, versions=versions(EVERYWHERE, (CPU, "NVIDIA", "ATI"))),
        ProjectFacts(2, 100, keywords={CANCER: 0.5, DRUGS: 0.5}, versions=versions((WINDOWS, LINUX), (CPU,))),
        ProjectFacts(3, 50, keywords={CLIMATE: 1}, versions=versions((WINDOWS, LINUX), (CPU,))),
        ProjectFacts(4, 200, keywords={NUMBERS: 1}, versions=versions(EVERYWHERE, (CPU, "NVIDIA", "ATI"))),
        ProjectFacts(5, 100, keywords={DRUGS: 1}, versions=versions(EVERYWHERE, ("NVIDIA",))),
        ProjectFacts(6, 50, keywords={PARTICLES: 1}, versions=versions(EVERYWHERE, (CPU,))),
        ProjectFacts(7, 100, keywords={SETI: 1}, versions=versions(EVERYWHERE, (CPU, "ATI"))),
        ProjectFacts(8, 75, keywords={VIRUSES: 1}, versions=versions((WINDOWS, LINUX), (CPU,))),
    ]
    population = Population(projects, people(1000, 60, likes=(1, 6, 9, 15, 29), seed=1))
    population.live(60)
    for number in (0, 1):
        assert population.parts(number, 28) == pytest.approx(population.targets(number), rel=0.05)
