"""Experiments: rules compared on a described population, with the same module as `manage.py credit_report`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from credit.engine.rules import RulesError, RuleSet
from extras.laboratory.management.commands import credit_report
from extras.laboratory.messages import CPU_TIME, GPU_TIME
from extras.laboratory.trials import goals as document
from extras.laboratory.trials.experiment import Experiment, ExperimentError, Variant, VariantGoals, measure, setup_of
from extras.laboratory.trials.figures import credit_per_flop, device_neutrality, drift, host_spread, wingman_variance
from extras.laboratory.trials.goals import ADAPTIVE, PAIRS, Goal
from extras.laboratory.trials.parameters import PARAMETERS
from extras.laboratory.trials.population import KINDS, Cheat, Computer, make_job
from extras.laboratory.trials.trial import Outcome, Setup, Trial
from portal.languages.messages import VERBATIM, Message

NEUTRAL = "device neutrality: difference between versions' mean grants"
COLLUDING = "gain of those who collude in pairs, per FLOP"


def goals_of(results: VariantGoals) -> dict[str, Goal]:
    return {goal.name: goal for goal in results.goals}


def test_the_usual_population_is_that_of_the_report() -> None:
    made = setup_of(Experiment([Variant()]), Variant(), 7)
    assert replace(made, hardware=Setup().hardware, kinds=KINDS) == Setup(seed=7)
    assert list(made.kinds) == list(KINDS)
    # About 4 GFLOPS: exp(22.1) = 3.96e9
    assert made.hardware.log_p_fpops == pytest.approx(22.1, abs=0.02)


def test_published_rules_meet_the_goals_on_the_usual_population() -> None:
    [results] = measure(Experiment([Variant(host_scale_check=True)], jobs=9000, nseeds=1))
    goals = goals_of(results)
    assert goals[NEUTRAL].is_met
    assert goals[str(CPU_TIME)].measured < 0.02
    assert goals[str(GPU_TIME)].measured < 0.03


def test_rule_sets_are_compared_on_the_same_population_and_picking_pays_without_the_check() -> None:
    variants = (Variant("published", host_scale_check=True), Variant("deployed"))
    population = {"cheat_pick": 0.1, "hidden_ratio": 10.0}
    with_check, without = measure(Experiment(variants, population, jobs=6000, nseeds=1))
    name = "gain of those who let long jobs fail, per FLOP"
    assert goals_of(with_check)[name].measured < 0.5
    # The long jobs take ten times the run time of the short ones: a mean of 5.5 over the short.
    assert goals_of(without)[name].measured > 2


def test_a_limit_of_an_app_changes_what_is_measured() -> None:
    results = measure(Experiment((Variant(), Variant(limits={"min_version_samples": 1_000_000})), jobs=6000, nseeds=1))
    scaled, unscaled = (goals_of(each)[NEUTRAL].measured for each in results)
    # Without scales GPU versions, at a tenth of their peak, claim several times as much.
    assert unscaled > 1 > scaled


def test_a_pair_that_colludes_gets_both_replicas_of_its_jobs() -> None:
    trial = Trial(Setup(hosts=10, first_cheats=[Cheat.COLLUDE, Cheat.COLLUDE]))
    one, other = trial.computers[:2]
    assert one.partner is other and other.partner is one
    for _ in range(50):
        first, second, *_ = (report.computer for report in make_job(trial.rng, trial.computers, KINDS, 2, 1e13).reports)
        if first in (one, other):
            assert second is first.partner


def test_a_pair_of_one_volunteer_does_not_get_both_replicas() -> None:
    # One result for each volunteer: the other one goes to somebody else.
    trial = Trial(Setup(hosts=10, first_cheats=[Cheat.COLLUDE, Cheat.COLLUDE]))
    trial.computers[1].user_id = trial.computers[0].user_id
    for _ in range(50):
        users = [report.computer.user_id for report in make_job(trial.rng, trial.computers, KINDS, 2, 1e13).reports]
        assert len(set(users)) == 2


def computers_of(*cheats: Cheat, hosts: int = 40, **parameters: float) -> list[Cheat]:
    """Return the cheat of each computer of a described population."""
    parameters_sent = {"hosts": hosts, **{f"cheat_{cheat}": 0.1 for cheat in cheats}, **parameters}
    experiment = Experiment([Variant()], parameters_sent)
    return [computer.cheat for computer in Trial(setup_of(experiment, Variant(), 1)).computers]


def test_as_many_computers_cheat_in_each_way_as_were_asked_for() -> None:
    ways = (Cheat.CHERRY_PICK, Cheat.EXAGGERATE, Cheat.SLACK, Cheat.COLLUDE)
    results = computers_of(*ways)
    assert {cheat: results.count(cheat) for cheat in ways} == dict.fromkeys(ways, 4)


def test_a_small_part_is_one_computer_and_of_those_who_collude_a_pair() -> None:
    results = computers_of(cheat_slack=0.001, cheat_collude=0.001)
    assert results.count(Cheat.SLACK) == 1
    assert results.count(Cheat.COLLUDE) == 2
    # 4.8 computers: two pairs
    assert computers_of(cheat_collude=0.12).count(Cheat.COLLUDE) == 4


def test_each_way_of_cheating_can_be_chosen() -> None:
    ways = [cheat for cheat in Cheat if cheat is not Cheat.NONE]
    assert {name for name in PARAMETERS if name.startswith("cheat_")} == {f"cheat_{way}" for way in ways}
    assert len(ways) == 22
    experiment = Experiment([Variant(replication=PAIRS)], {f"cheat_{way}": 0.02 for way in ways}, 6000, 1)
    [results] = measure(experiment)
    gains = [goal.name for goal in results.goals if goal.name.startswith("gain of those who")]
    assert len(set(gains)) == 22
    assert all(PARAMETERS[f"cheat_{way}"].help for way in ways)


def test_more_who_cheat_than_leave_honest_ones_are_refused() -> None:
    # Of ten computers at least one cheats in each way: eleven would.
    parameters_sent = {"hosts": 10, **{f"cheat_{way}": 0.01 for way in list(Cheat)[1:12]}}
    with pytest.raises(ExperimentError, match="cheats: 11 of 10 computers would cheat; the limit is 9"):
        Experiment([Variant()], parameters_sent)


def test_of_an_odd_number_of_computers_the_one_without_a_partner_counts_as_honest() -> None:
    trial = Trial(Setup(hosts=10, first_cheats=[Cheat.COLLUDE] * 3))
    assert [computer.cheat for computer in trial.computers].count(Cheat.COLLUDE) == 2


def test_what_pairs_gain_is_measured() -> None:
    experiment = Experiment([Variant("deployed", replication=PAIRS)], {"cheat_collude": 0.2}, jobs=4000, nseeds=1)
    assert COLLUDING in goals_of(measure(experiment)[0])


def test_a_wrong_benchmark_changes_what_is_reported_and_not_what_is_done() -> None:
    experiment = Experiment([Variant()], {"wrong_benchmark_part": 0.9, "wrong_benchmark_factor": 4.0})
    trial = Trial(setup_of(experiment, Variant(), 1))

    def speed(each: Computer) -> float:
        return each.p_fpops / each.benchmark

    wrong = [computer for computer in trial.computers if computer.benchmark == 4.0]
    assert len(wrong) > 40
    # About 4 GFLOPS in truth: their benchmarks report 16.
    assert 2e9 < sorted(map(speed, wrong))[len(wrong) // 2] < 8e9


def test_one_experiment_is_the_same_each_time_also_from_json() -> None:
    experiment = Experiment(
        (Variant(), Variant("letter", True, PAIRS, {"max_host_scale": 2.0})), {"hosts": 20}, 1500, 1
    )
    again = Experiment.from_json(json.loads(json.dumps(experiment.as_json())))
    assert measure(again) == measure(experiment)


def test_an_experiment_in_which_computers_are_still_new_is_short() -> None:
    # 60 computers do 300 jobs a day: 24,000 take 80 days, a third of which is 26.7; 12,000 take 40, and 13.3.
    assert not Experiment([Variant(host_scale_check=True)]).is_short
    assert Experiment([Variant(host_scale_check=True)], jobs=12_000).is_short
    assert not Experiment([Variant()], jobs=12_000).is_short


def test_progress_goes_from_nothing_to_all() -> None:
    parts: list[float] = []
    measure(Experiment((Variant(), Variant("deployed")), jobs=2000, nseeds=2), parts.append)
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    # Two variants, two populations, two projects, twice 1,000 jobs
    assert len(parts) == 16


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_out_of_its_range_is_refused_with_its_name_and_limit(name: str) -> None:
    each = PARAMETERS[name]
    assert each.low <= each.usual <= each.high
    for value in (each.low - 0.001, each.high * 1.01 + 1, float("nan")):
        with pytest.raises(ExperimentError, match=f"{name}: must be from {each.low:g} to {each.high:g}"):
            Experiment([Variant()], {name: value})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"variants": ()}, "variants: must be from 1 to 8"),
        ({"variants": (Variant("none"),)}, "rule_set"),
        ({"variants": (Variant(replication="none"),)}, "replication"),
        ({"jobs": 999}, "jobs: must be from 1000"),
        ({"nseeds": 101}, "nseeds: must be from 1 to 100"),
        ({"parameters": {"none": 1.0}}, "there is no such parameter"),
        (
            {"parameters": {"cheat_pick": 0.5, "cheat_slack": 0.5}},
            "cheats: 60 of 60 computers would cheat; the limit is 54",
        ),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        Experiment(**{"variants": (Variant(),), **fields})  # type: ignore[arg-type]  # of several kinds


def test_a_limit_out_of_range_is_refused() -> None:
    with pytest.raises(RulesError, match="max_host_scale must be from 1"):
        Experiment([Variant(limits={"max_host_scale": 0.5})])


def test_the_report_measures_the_documents_goals_with_the_same_module(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def steps(rules: object, seeds: Sequence[int]) -> list[object]:
        asked.append((rules, list(seeds)))
        return [
            lambda: [Goal(Message(VERBATIM, text="first"), 0.01, 0.02, 0.03)],
            lambda: [
                Goal(Message(VERBATIM, text="second"), 1.0, 2.0, 1.5),
                Goal(Message(VERBATIM, text="3"), 0, 0, None),
            ],
        ]

    monkeypatch.setattr(credit_report, "goal_steps", steps)
    groups = [Goal(Message(VERBATIM, text="groups"), 0.01, 0.01, 0.02)]
    monkeypatch.setattr(credit_report, "collusion_goals", lambda seeds: groups[: len(list(seeds)) - 1])
    out = StringIO()
    with pytest.raises(CommandError, match=r"missed: 1$"):
        call_command("credit_report", "--rules", "letter", "--seeds", "2", "--processes", "1", stdout=out)
    assert asked == [(Variant(RuleSet.LETTER).rules, [1, 2])]
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines == [
        ["goal", "mean", "worst", "bound"],
        ["first", "0.0100", "0.0200", "0.03", "met"],
        ["second", "1.0000", "2.0000", "1.50", "MISSED"],
        ["3", "0.0000", "0.0000"],
        ["groups", "0.0100", "0.0100", "0.02", "met"],
    ]
    out = StringIO()
    call_command("credit_report", "--collusion", "--seeds", "2", "--processes", "1", stdout=out)
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["goal", "groups"]
    out = StringIO()
    with pytest.raises(CommandError, match=r"missed: 1$"):
        call_command("credit_report", "--json", "--processes", "1", stdout=out)
    assert json.loads(out.getvalue())[0] == {
        "name": "first", "code": VERBATIM, "args": {"text": "first"},
        "measured": 0.01, "worst": 0.02, "bound": 0.03, "note": "", "is_met": True,
    }  # fmt: skip


def test_grants_of_nothing_differ_by_nothing() -> None:
    nothing = [Outcome(n, n % 2, n, n % 2, 0.0, 0.0, False, Cheat.NONE, 1.0, False) for n in range(400)]
    assert (device_neutrality(nothing), host_spread(nothing), drift(nothing)) == (0.0, 0.0, 0.0)
    assert wingman_variance([replace(each, number=1) for each in nothing]) == 0.0
    assert credit_per_flop(nothing) == 0.0


def test_a_population_in_which_nobody_is_granted_anything_is_measured() -> None:
    # Found by trying extreme populations: the deployed rules grant computers with their own programs nothing here.
    population = {
        "hosts": 11, "jobs_per_host_day": 200, "efficiency_spread": 1, "anonymous_part": 0.9,
        "efficiency_1": 0.03463798235058335, "cheat_pick_and_exaggerate": 0.1, "cheat_hold_back": 0.3,
    }  # fmt: skip
    [results] = measure(Experiment([Variant("deployed", replication=ADAPTIVE)], population, 1000, 1))
    assert all(math.isfinite(goal.measured) for goal in results.goals)


def test_many_jobs_that_are_held_back_cost_no_more_time_each(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(Setup(hosts=20, works=(0.2, 2.0), first_cheats=[Cheat.HOLD_BACK] * 10, host_scale_check=True))
    trial.run(500)
    held = len(trial._held)
    assert held > 50
    looked_at = []
    monkeypatch.setattr(trial, "_count", lambda record, ending: looked_at.append(record))
    trial._time_out()
    assert looked_at == []
    # Examined in the order of their ends, and only finished ones
    first_end = trial._held[0][0]
    assert first_end == min(each[0] for each in trial._held)
    trial.now = first_end
    trial._time_out()
    assert 0 < len(looked_at) < held


def test_the_documents_goals_are_measured_in_parts() -> None:
    # Neutrality; cheats by three ways, with the check and without; evasions and levels by three; honest ones; the lead.
    assert len(document.goal_steps(Variant().rules, [1])) == 1 + 3 * 2 + 3 + 3 + 1 + 1


def process(**order: object) -> subprocess.CompletedProcess[str]:
    experiment = Experiment([Variant()], {"hosts": 20}, 200_000, 100).as_json()
    parameters_sent = {"experiment": experiment, "secs_max": 60, "bytes_max": 1024**3, **order}
    command = [sys.executable, "-m", "extras.laboratory.trials.process"]
    return subprocess.run(
        command, input=json.dumps(parameters_sent), capture_output=True, text=True, cwd=settings.BASE_DIR, check=False
    )


@pytest.mark.system
def test_the_process_answers_with_what_was_found() -> None:
    experiment = Experiment([Variant()], {"hosts": 20}, 1000, 1)
    kind, _, rest = process(experiment=experiment.as_json()).stdout.splitlines()[-1].partition(" ")
    assert kind == "found"
    assert json.loads(rest) == [results.as_json() for results in measure(experiment)]


@pytest.mark.system
def test_the_process_ends_when_its_processor_time_is_over() -> None:
    # SIGXCPU
    assert process(secs_max=1).returncode == -24


@pytest.mark.system
def test_the_process_ends_when_its_memory_is_over() -> None:
    # What it has at its start is hardly less than this.
    assert '"code": "experiment_memory_limit", "args": {"mib": 60}' in process(bytes_max=60 * 1024**2).stdout
