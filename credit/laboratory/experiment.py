"""An experiment: rules side by side, on a population that one describes or on those of the document's goals. Pure.

``manage.py credit_report`` and the pages of the laboratory both call `measure`. From Python::

    from credit.laboratory.experiment import Experiment, Variant, measure

    sets = (Variant("published", host_scale_check=True), Variant("deployed"))
    for found in measure(Experiment(sets, {"cheat_pick": 0.05, "hidden_ratio": 10})):
        for goal in found.goals:
            print(found.label, goal.name, goal.measured, goal.worst, goal.bound)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from credit.engine.facts import ProcessorType
from credit.engine.rules import Rules, RuleSet
from credit.laboratory.figures import credit_per_flop, device_neutrality, drift, host_spread, wingman_variance
from credit.laboratory.goals import SINGLE, WAYS, Goal, goal_steps
from credit.laboratory.population import KINDS, Cheat, Hardware
from credit.laboratory.trial import Outcome, Setup, Trial

MAX_VARIANTS: Final = 8
MAX_SEEDS: Final = 100
MIN_JOBS: Final = 1000
MAX_JOBS: Final = 200_000
USUAL_JOBS: Final = 24_000
SETTLING_DAYS: Final = 25
"""New computers are granted less for so long where ``host_scale_check`` is on (docs/explanation/credit.md)."""
CHUNK_JOBS: Final = 1000
"""So many jobs are done between two reports of progress."""
LEAST_RESULTS: Final = 100
"""Of a version, to be compared with others."""
LEAST_HOST_RESULTS: Final = 20
MAX_CHEATS: Final = 0.9
"""Of all computers: there have to be honest ones to compare with."""


class ExperimentError(ValueError):
    """An experiment that cannot be; names the field and its limit."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that describes the population: its range, and what is usual."""

    label: str
    low: float
    high: float
    usual: float
    help: str = ""
    is_whole: bool = False


_PROGRAMS: Final = ("CPU, Linux", "CPU, Windows", "CUDA, Linux", "CUDA, Windows", "OpenCL, Windows", "4 CPUs, Linux")
_CHEATS: Final = {
    Cheat.CHERRY_PICK: ("let long jobs fail", "They have an effect where run times differ more than estimates."),
    Cheat.HOLD_BACK: ("hold long jobs back until they time out", ""),
    Cheat.PICK_AND_EXAGGERATE: ("let long jobs fail, and exaggerate", ""),
    Cheat.EXAGGERATE: ("report ten times their speed", ""),
    Cheat.ONE_TIME: ("report an absurd run time now and then", "One job in fifty."),
    Cheat.SLACK: ("report next to nothing for nine of ten jobs", ""),
    Cheat.COLLUDE: ("collude in pairs", "They get both replicas of a job, and report ten times their speed for it."),
    Cheat.WRONG: ("return wrong outputs for half of their jobs", ""),
}
PARAMETERS: Final[dict[str, Parameter]] = {
    "hosts": Parameter("Computers", 10, 500, 60, is_whole=True),
    "jobs_per_host_day": Parameter("Jobs of a computer in a day", 0.5, 200, 5),
    "cpu_gflops": Parameter("Benchmark of a usual CPU (GFLOPS)", 0.1, 1000, 4),
    "speed_spread": Parameter("Spread of the speeds", 0, 1.5, 0.35, "The standard deviation of their logarithms."),
    "efficiency_spread": Parameter("Spread of the computers' efficiencies", 0, 1, 0.15, "As above."),
    "gpu_part": Parameter("Part of the computers with a GPU", 0, 1, 0.33),
    "wrong_benchmark_part": Parameter("Part of the computers with a wrong benchmark", 0, 0.9, 0),
    "wrong_benchmark_factor": Parameter("Its value over the true one", 0.01, 100, 3),
    "anonymous_part": Parameter("Part of the computers with a program of their own", 0, 0.9, 0),
    "failing_part": Parameter("Part of their jobs that honest computers fail", 0, 0.5, 0),
    "size_spread": Parameter(
        "Spread of the estimates of jobs", 0, 1.5, 0.5, "The standard deviation of their logarithms."
    ),
    "hidden_ratio": Parameter(
        "Run time of long jobs over that of short ones, with the same estimate",
        1,
        100,
        1,
        "Half of the jobs are long. Jobs that take more than 1.5 times their estimate are picked: from a ratio of 3.1.",
    ),
    "other_efficiency": Parameter(
        "Efficiency at another project, over that here",
        0.05,
        1,
        0.5,
        "The other project has programs for CPUs only. The credit of CPU time there is compared with that here.",
    ),
    **{
        f"efficiency_{place}": Parameter(f"Efficiency: {name}", 0.001, 1, kind.efficiency)
        for place, (name, kind) in enumerate(zip(_PROGRAMS, KINDS, strict=True))
    },
    **{
        f"cheat_{cheat.value}": Parameter(f"Part of the computers that {words}", 0, 0.5, 0, note)
        for cheat, (words, note) in _CHEATS.items()
    },
}


@dataclass(frozen=True, slots=True)
class Variant:
    """Rules that are compared with others: a rule set with its limits, and how often a job is computed (``WAYS``)."""

    rule_set: str = RuleSet.PUBLISHED
    host_scale_check: bool = False
    replication: str = SINGLE
    limits: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def label(self) -> str:
        parts = [str(self.rule_set), self.replication, "host_scale_check" if self.host_scale_check else ""]
        parts += [f"{name} {value:g}" for name, value in self.limits.items() if value is not None]
        return ", ".join(part for part in parts if part)

    @property
    def rules(self) -> Rules:
        """Raises RulesError for a limit out of range."""
        return Rules.of(self.rule_set).with_limits(**self.limits)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Variants, each on the same populations. Raises ExperimentError, or RulesError for a limit.

    ``parameters``: those of ``PARAMETERS`` that are not as usual. ``jobs`` of each population; its first third is left
    out, as then the statistics are not known yet. ``is_document``: the populations and goals of the credit document
    instead; ``parameters``, ``jobs`` and the variants' replication and check do nothing then.
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
                raise ExperimentError(name, "there is no such parameter")
            _within(name, value, PARAMETERS[name].low, PARAMETERS[name].high)
        if sum(self.value(f"cheat_{cheat}") for cheat in _CHEATS) > MAX_CHEATS:
            raise ExperimentError("cheats", f"together they may be at most {MAX_CHEATS:g} of the computers")
        for variant in self.variants:
            if variant.rule_set not in list(RuleSet):
                raise ExperimentError("rule_set", f"must be one of {', '.join(RuleSet)}")
            if variant.replication not in WAYS:
                raise ExperimentError("replication", f"must be one of {', '.join(WAYS)}")
            _ = variant.rules

    def value(self, name: str) -> float:
        return self.parameters.get(name, PARAMETERS[name].usual)

    @property
    def total_jobs(self) -> int:
        """Simulated jobs of all variants and seeds, here and at the other project."""
        return 2 * self.jobs * self.nseeds * len(self.variants)

    @property
    def days(self) -> float:
        """How long the population works on its jobs; the first third is left out."""
        return self.jobs / (self.value("hosts") * self.value("jobs_per_host_day"))

    @property
    def is_short(self) -> bool:
        """Whether computers are still new after the part that is left out, so that the check takes credit from them."""
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
    def from_json(cls, said: Mapping[str, Any]) -> Experiment:
        """From what `as_json` gave."""
        return cls(**{**said, "variants": tuple(Variant(**variant) for variant in said["variants"])})


def _within(name: str, value: float, low: float, high: float) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise ExperimentError(name, f"must be from {low:g} to {high:g}, not {value:g}")


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured of a variant."""

    label: str
    goals: Sequence[Goal]

    def as_json(self) -> dict[str, Any]:
        return {"label": self.label, "goals": [goal_json(goal) for goal in self.goals]}


def goal_json(goal: Goal) -> dict[str, Any]:
    """The goal with its verdict, as `credit_report --json` has it."""
    return {**asdict(goal), "is_met": goal.is_met}


def measure(experiment: Experiment, report: Callable[[float], None] = lambda _: None) -> list[Found]:
    """Measure each variant on each population; ``report`` is told how far it is, from 0 to 1."""
    found = []
    number = len(experiment.variants)
    for place, variant in enumerate(experiment.variants):

        def done(part: float, place: int = place) -> None:
            report((place + part) / number)

        measured = _document if experiment.is_document else _described
        found.append(Found(variant.label, measured(experiment, variant, done)))
    return found


def _document(experiment: Experiment, variant: Variant, report: Callable[[float], None]) -> list[Goal]:
    steps = goal_steps(variant.rules, range(1, experiment.nseeds + 1))
    goals: list[Goal] = []
    for place, step in enumerate(steps):
        goals += step()
        report((place + 1) / len(steps))
    return goals


def setup_of(experiment: Experiment, variant: Variant, seed: int) -> Setup:
    """The trial of a variant on one population."""
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
        cheats={cheat: part for cheat in _CHEATS if (part := value(f"cheat_{cheat}"))},
        # Their mean is what the estimate says.
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


def _elsewhere(setup: Setup, efficiency: float) -> Setup:
    """Another project: programs for CPUs only, less efficient ones."""
    kinds = [replace(kind, efficiency=kind.efficiency * efficiency) for kind in setup.kinds if not kind.gpu_usage]
    return replace(setup, kinds=kinds)


def _described(experiment: Experiment, variant: Variant, report: Callable[[float], None]) -> list[Goal]:
    values: dict[str, list[float]] = {}
    bounds: dict[str, float | None] = {}
    nruns = 2 * experiment.nseeds
    for seed in range(1, experiment.nseeds + 1):
        setup = setup_of(experiment, variant, seed)
        runs = []
        for place, each in enumerate((setup, _elsewhere(setup, experiment.value("other_efficiency")))):

            def done(part: float, before: int = 2 * (seed - 1) + place) -> None:
                report((before + part) / nruns)

            runs.append(_run(each, experiment.jobs, done))
        for name, value, bound in _figures(setup, *runs):
            values.setdefault(name, []).append(value)
            bounds[name] = bound
    return [Goal(name, fmean(found), max(found), bounds[name]) for name, found in values.items()]


def _run(setup: Setup, jobs: int, report: Callable[[float], None]) -> list[Outcome]:
    """The outcomes after the first third of the jobs."""
    trial = Trial(setup)
    for done in range(0, jobs, CHUNK_JOBS):
        trial.run(min(CHUNK_JOBS, jobs - done))
        report(min(1.0, (done + CHUNK_JOBS) / jobs))
    return [outcome for outcome in trial.outcomes if outcome.number > jobs / 3]


def _figures(
    setup: Setup, outcomes: Sequence[Outcome], elsewhere: Sequence[Outcome]
) -> Iterator[tuple[str, float, float | None]]:
    """Each goal's name, value and bound; those that too few results tell of are left out."""
    # Of equal jobs: those that took more than estimated should bring more.
    honest = [replace(each, granted=each.granted / each.work) for each in outcomes if each.cheat is Cheat.NONE]
    versions = Counter(each.kind_index for each in honest if each.kind_index is not None)
    if sum(number >= LEAST_RESULTS for number in versions.values()) > 1:
        yield "device neutrality: versions' mean grants apart", device_neutrality(honest, LEAST_RESULTS), 0.03
    hosts = Counter(each.host for each in honest)
    if sum(number >= LEAST_HOST_RESULTS for number in hosts.values()) > 1:
        yield "equal jobs on different hosts: mean deviation", host_spread(honest, LEAST_HOST_RESULTS), 0.05
    if len({each.number for each in honest}) > 1:
        yield "drift of the mean grant per 1,000 jobs", drift(honest), 0.02
    rates = [_cpu_credit(setup.kinds, outcomes), _cpu_credit(_elsewhere(setup, 1).kinds, elsewhere)]
    if all(rates):
        apart = abs(rates[0] - rates[1]) / fmean(rates)
        yield "project neutrality: credit of CPU time here and at another project apart", apart, None
    if setup.nreplicas > 1:
        yield "replicas' claims for one job apart", wingman_variance(outcomes), None
    for cheat in setup.cheats:
        yield from _cheat_figures(setup, cheat, outcomes)


def _cpu_credit(kinds: Sequence[Any], outcomes: Sequence[Outcome]) -> float:
    """Credit for CPU time: 1 is that of the benchmark's FLOPs; 0 if there are no such results."""
    cpus = {place for place, kind in enumerate(kinds) if kind.processor_type == ProcessorType.CPU}
    rows = [each for each in outcomes if each.kind_index in cpus and each.cheat is Cheat.NONE]
    return sum(each.granted for each in rows) / sum(each.peak_work for each in rows) if rows else 0.0


def _cheat_figures(
    setup: Setup, cheat: Cheat, outcomes: Sequence[Outcome]
) -> Iterator[tuple[str, float, float | None]]:
    cheats = [each for each in outcomes if each.cheat is cheat]
    if not cheats or not any(each.cheat is Cheat.NONE for each in outcomes):
        return
    # No bound: those of the document are for one cheat among many computers that are equally efficient.
    gain = credit_per_flop(outcomes, cheat) / credit_per_flop(outcomes) - 1
    yield f"gain of those who {_CHEATS[cheat][0]}, per FLOP", gain, None
    absurd = [each.granted / each.default for each in cheats if each.is_absurd]
    if cheat is Cheat.ONE_TIME and absurd:
        yield "one-time cheat: greatest grant over the default", max(absurd), 1.0 if setup.nreplicas == 1 else None
