"""An experiment: rules compared on a described population, or on those of the document's goals. Pure.

``manage.py credit_report`` and the pages of the laboratory both call `measure`. From Python::

    from extras.laboratory.trials.experiment import Experiment, Variant, measure

    sets = (Variant("published", host_scale_check=True), Variant("deployed"))
    for result in measure(Experiment(sets, {"cheat_pick": 0.05, "hidden_ratio": 10})):
        for goal in result.goals:
            print(result.label, goal.name, goal.measured, goal.worst, goal.bound)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from credit.engine.rules import Rules, RuleSet
from extras.laboratory.messages import CPU_TIME, DRIFT, GPU_TIME, HOSTS, REPLICAS, VERSIONS
from extras.laboratory.trials.figures import (
    credit_per_flop,
    device_neutrality,
    drift,
    gpu_neutrality,
    host_spread,
    project_neutrality,
    wingman_variance,
)
from extras.laboratory.trials.goals import SINGLE, WAYS, Goal, elsewhere, goal_steps
from extras.laboratory.trials.parameters import CHEATS, PARAMETERS
from extras.laboratory.trials.population import KINDS, Cheat, Hardware, cheating
from extras.laboratory.trials.trial import Outcome, Setup, Trial
from portal.languages.messages import Message, MessageError

MAX_VARIANTS: Final = 8
MAX_SEEDS: Final = 100
MIN_JOBS: Final = 1000
MAX_JOBS: Final = 200_000
USUAL_JOBS: Final = 24_000
SETTLING_DAYS: Final = 25
"""New computers are granted less for this long where ``host_scale_check`` is on (docs/explanation/credit.md)."""
CHUNK_JOBS: Final = 1000
"""The number of jobs between two progress reports."""
LEAST_RESULTS: Final = 100
"""The fewest jobs of a version that is compared with others."""
LEAST_HOST_RESULTS: Final = 20
MAX_CHEATS: Final = 0.9
"""The largest fraction of cheaters: there have to be honest computers to compare with."""


class ExperimentError(MessageError):
    """An impossible experiment; ``name`` is the field, which the sentence names with its limit."""

    def __init__(self, name: str, message: Message) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Variant:
    """Rules to compare: a rule set with its limits, and how often a job is computed (``WAYS``)."""

    rule_set: str = RuleSet.PUBLISHED
    host_scale_check: bool = False
    replication: str = SINGLE
    limits: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def label(self) -> Message:
        check = ["host_scale_check"] if self.host_scale_check else []
        limits = [f"{name} {value:g}" for name, value in self.limits.items() if value is not None]
        return Message("experiment_variant", parts=[str(self.rule_set), Message(self.replication), *check, *limits])

    @property
    def rules(self) -> Rules:
        """Return the rules. Raises RulesError for a limit out of range."""
        return Rules.of(self.rule_set).with_limits(**self.limits)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Variants, each on the same populations. Raises ExperimentError, or RulesError for a limit.

    ``parameters``: those of ``PARAMETERS`` that differ from the default. ``jobs``: of each population; its first third
    is discarded, as the statistics are still unknown. ``is_document``: the populations and goals of the credit document
    instead; ``parameters``, ``jobs`` and the variants' replication and check then have no effect.
    """

    variants: Sequence[Variant]
    parameters: Mapping[str, float] = field(default_factory=dict)
    jobs: int = USUAL_JOBS
    nseeds: int = 2
    is_document: bool = False

    def __post_init__(self) -> None:
        _within("variants", len(self.variants), 1, MAX_VARIANTS)
        _within("nseeds", self.nseeds, 1, MAX_SEEDS)
        _within("jobs", self.jobs, MIN_JOBS, MAX_JOBS)
        for name, value in self.parameters.items():
            if name not in PARAMETERS:
                raise ExperimentError(name, Message("experiment_no_parameter", name=name))
            _within(name, value, PARAMETERS[name].low, PARAMETERS[name].high)
        ncheats, hosts = len(self.first_cheats), round(self.value("hosts"))
        if ncheats > MAX_CHEATS * hosts:
            most = math.floor(MAX_CHEATS * hosts)
            raise ExperimentError("cheats", Message("experiment_cheats", number=ncheats, hosts=hosts, most=most))
        for variant in self.variants:
            if variant.rule_set not in list(RuleSet):
                raise _not_one_of("rule_set", list(RuleSet))
            if variant.replication not in WAYS:
                raise _not_one_of("replication", list(WAYS))
            _ = variant.rules

    def value(self, name: str) -> float:
        return self.parameters.get(name, PARAMETERS[name].usual)

    @property
    def first_cheats(self) -> tuple[Cheat, ...]:
        """Return how the cheating computers cheat."""
        parts = {cheat: part for cheat in CHEATS if (part := self.value(f"cheat_{cheat}"))}
        return tuple(cheating(parts, round(self.value("hosts"))))

    @property
    def total_jobs(self) -> int:
        """Simulated jobs of all variants and seeds, here and at the other project."""
        return 2 * self.jobs * self.nseeds * len(self.variants)

    @property
    def days(self) -> float:
        """How long the population works on its jobs; the first third is discarded."""
        return self.jobs / (self.value("hosts") * self.value("jobs_per_host_day"))

    @property
    def is_short(self) -> bool:
        """Whether computers are still new after the discarded part, so that the check takes credit from them."""
        has_check = any(variant.host_scale_check for variant in self.variants)
        return has_check and not self.is_document and self.days / 3 < SETTLING_DAYS

    def as_json(self) -> dict[str, Any]:
        return {
            "variants": [{**asdict(variant), "rule_set": str(variant.rule_set)} for variant in self.variants],
            "parameters": dict(self.parameters),
            "jobs": self.jobs,
            "nseeds": self.nseeds,
            "is_document": self.is_document,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Experiment:
        """Build it from the output of `as_json`."""
        return cls(**{**data, "variants": tuple(Variant(**variant) for variant in data["variants"])})


def _within(name: str, value: float, low: float, high: float) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise ExperimentError(name, out_of_range(name, low, high, f"{value:g}"))


def out_of_range(name: str, low: float, high: float, value: str) -> Message:
    return Message("experiment_range", name=name, low=f"{low:g}", high=f"{high:g}", value=value)


def _not_one_of(name: str, choices: Sequence[str]) -> ExperimentError:
    return ExperimentError(name, Message("experiment_choice", name=name, choices=[*choices]))


@dataclass(frozen=True, slots=True)
class VariantGoals:
    """The measurements of a variant."""

    label: Message
    goals: Sequence[Goal]

    def as_json(self) -> dict[str, Any]:
        label = {"label": str(self.label), **self.label.to_json()}
        return {**label, "goals": [goal_json(goal) for goal in self.goals]}


def goal_json(goal: Goal) -> dict[str, Any]:
    """Return the goal with its verdict, as `credit_report --json` has it: its name in English, and as a message's
    JSON.
    """
    figures = {"measured": goal.measured, "worst": goal.worst, "bound": goal.bound, "note": goal.note}
    return {"name": goal.name, **goal.message.to_json(), **figures, "is_met": goal.is_met}


def measure(experiment: Experiment, report: Callable[[float], None] = lambda _: None) -> list[VariantGoals]:
    """Measure each variant on each population; ``report`` receives the progress, from 0 to 1."""
    variants = []
    number = len(experiment.variants)
    for place, variant in enumerate(experiment.variants):

        def done(part: float, place: int = place) -> None:
            report((place + part) / number)

        measured = _document if experiment.is_document else _described
        variants.append(VariantGoals(variant.label, measured(experiment, variant, done)))
    return variants


def _document(experiment: Experiment, variant: Variant, report: Callable[[float], None]) -> list[Goal]:
    steps = goal_steps(variant.rules, range(1, experiment.nseeds + 1))
    goals: list[Goal] = []
    for place, step in enumerate(steps):
        goals += step()
        report((place + 1) / len(steps))
    return goals


def setup_of(experiment: Experiment, variant: Variant, seed: int) -> Setup:
    """Build the trial of a variant on one population."""
    value = experiment.value
    ratio = value("hidden_ratio")
    return replace(
        WAYS[variant.replication],
        seed=seed,
        hosts=round(value("hosts")),
        kinds=[replace(kind, efficiency=value(f"efficiency_{place}")) for place, kind in enumerate(KINDS)],
        rules=variant.rules,
        host_scale_check=variant.host_scale_check,
        anonymous_part=value("anonymous_part"),
        first_cheats=experiment.first_cheats,
        # Their mean equals the estimate.
        works=(2 / (1 + ratio), 2 * ratio / (1 + ratio)) if ratio > 1 else (1.0,),
        failing_part=value("failing_part"),
        jobs_per_host_day=value("jobs_per_host_day"),
        size_spread=value("size_spread"),
        hardware=Hardware(
            log_p_fpops=math.log(value("cpu_gflops") * 1e9),
            speed_spread=value("speed_spread"),
            efficiency_spread=value("efficiency_spread"),
            gpu_part=value("gpu_part"),
            wrong_benchmarks=(value("wrong_benchmark_part"), value("wrong_benchmark_factor")),
        ),
    )


def _described(experiment: Experiment, variant: Variant, report: Callable[[float], None]) -> list[Goal]:
    values: dict[Message, list[float]] = {}
    bounds: dict[Message, float | None] = {}
    nruns = 2 * experiment.nseeds
    for seed in range(1, experiment.nseeds + 1):
        setup = setup_of(experiment, variant, seed)
        runs = []
        for place, project in enumerate((setup, elsewhere(setup, experiment.value("other_efficiency")))):

            def done(part: float, before: int = 2 * (seed - 1) + place) -> None:
                report((before + part) / nruns)

            runs.append(_run(project, experiment.jobs, done))
        for name, value, bound in _figures(setup, *runs):
            values.setdefault(name, []).append(value)
            bounds[name] = bound
    return [Goal(name, fmean(values_of), max(values_of), bounds[name]) for name, values_of in values.items()]


def _run(setup: Setup, jobs: int, report: Callable[[float], None]) -> list[Outcome]:
    """Return the outcomes after the first third of the jobs."""
    trial = Trial(setup)
    for done in range(0, jobs, CHUNK_JOBS):
        trial.run(min(CHUNK_JOBS, jobs - done))
        report(min(1.0, (done + CHUNK_JOBS) / jobs))
    return [outcome for outcome in trial.outcomes if outcome.number > jobs / 3]


def _figures(
    setup: Setup, outcomes: Sequence[Outcome], outcomes_elsewhere: Sequence[Outcome]
) -> Iterator[tuple[Message, float, float | None]]:
    """Return each goal's name, value and bound; those with too few results are left out."""
    honest = [outcome for outcome in outcomes if outcome.cheat is Cheat.NONE]
    versions = Counter(outcome.kind_index for outcome in honest if outcome.kind_index is not None)
    if sum(number >= LEAST_RESULTS for number in versions.values()) > 1:
        yield VERSIONS, device_neutrality(honest, LEAST_RESULTS), 0.03
    hosts = Counter(outcome.host for outcome in honest)
    if sum(number >= LEAST_HOST_RESULTS for number in hosts.values()) > 1:
        yield HOSTS, host_spread(honest, LEAST_HOST_RESULTS), 0.05
    if len({outcome.number for outcome in honest}) > 1:
        yield DRIFT, drift(honest), 0.02
    apart = project_neutrality(setup.kinds, outcomes, elsewhere(setup, 1).kinds, outcomes_elsewhere)
    if apart is not None:
        yield CPU_TIME, apart, None
    off = gpu_neutrality(setup.kinds, outcomes)
    if off is not None:
        yield GPU_TIME, off, None
    if setup.nreplicas > 1:
        yield REPLICAS, wingman_variance(outcomes), None
    for cheat in dict.fromkeys(setup.first_cheats):
        yield from _cheat_figures(setup, cheat, outcomes)


def _cheat_figures(
    setup: Setup, cheat: Cheat, outcomes: Sequence[Outcome]
) -> Iterator[tuple[Message, float, float | None]]:
    cheats = [outcome for outcome in outcomes if outcome.cheat is cheat]
    honest = credit_per_flop(outcomes) if any(outcome.cheat is Cheat.NONE for outcome in outcomes) else 0.0
    if not cheats or not honest:
        return
    # No bound: those of the document are for one cheat among many equally efficient computers.
    yield Message("goal_gain", cheat=CHEATS[cheat][0]), credit_per_flop(outcomes, cheat) / honest - 1, None
    absurd = [outcome.granted / outcome.default for outcome in cheats if outcome.is_absurd]
    if cheat is Cheat.ONE_TIME and absurd:
        yield Message("goal_one_time"), max(absurd), 1.0 if setup.nreplicas == 1 else None
