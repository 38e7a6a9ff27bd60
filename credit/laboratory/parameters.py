"""The parameters of a population: what each means, its range, and what is usual. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credit.laboratory.population import KINDS, PICKED_EXAGGERATION, TURN_JOBS, Cheat


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
CHEATS: Final = {
    Cheat.EXAGGERATE: ("report ten times their speed", "For every job, from the first one on."),
    Cheat.ONE_TIME: ("report an absurd run time now and then", "For one job in fifty."),
    Cheat.SLACK: (
        "report next to nothing for nine of ten jobs",
        "A hundredth of the run time, so that their average is low and the tenth job is worth more.",
    ),
    Cheat.COLLUDE: (
        "collude in pairs",
        "They get both replicas of a job, and report ten times their speed for it. Their single results are honest.",
    ),
    Cheat.WRONG: (
        "return wrong outputs for half of their jobs",
        "The validator finds these, also where a job is computed once.",
    ),
    Cheat.CHERRY_PICK: ("let long jobs fail", "They report compute errors for them."),
    Cheat.PICK_BY_202: ("say that the project aborted long jobs", "It did not."),
    Cheat.PICK_BY_DOWNLOAD: ("let downloads for long jobs fail", "They report failed downloads for them."),
    Cheat.PICK_BY_UPLOAD: (
        "upload nothing for long jobs",
        "They report a success, or failed uploads, without outputs.",
    ),
    Cheat.PICK_BY_LOSS: ("leave long jobs out of their reports", "As if the computer did not have them any more."),
    Cheat.PICK_BY_OUTPUT: (
        "make up the outputs of long jobs",
        "The validator finds these, also where a job is computed once.",
    ),
    Cheat.PICK_FEW: ("let few long jobs fail", "One long job in twelve."),
    Cheat.PICK_IN_TURNS: (
        "let long jobs fail in turns",
        f"In {TURN_JOBS} jobs; then they do {TURN_JOBS} honestly, until they are off probation.",
    ),
    Cheat.PICK_AND_EXAGGERATE: (
        "let long jobs fail, and exaggerate",
        f"They report {PICKED_EXAGGERATION:g} times their speed, so that short jobs look like the usual ones.",
    ),
    Cheat.HOLD_BACK: (
        "hold long jobs back until they time out",
        "While they are on probation. After that they let long jobs fail.",
    ),
    Cheat.HOLD_IN_TURNS: (
        "hold long jobs back in turns",
        f"In {TURN_JOBS} jobs, until these time out; then they do {TURN_JOBS} honestly.",
    ),
    Cheat.FAIL_FIRST: (
        "let long jobs fail first, and wait",
        "On probation, and at once. Then they do short ones, wait until probation ends, and let long jobs fail again.",
    ),
}
"""What those who cheat do, in a verb phrase and in a line."""
PARAMETERS: Final[dict[str, Parameter]] = {
    "hosts": Parameter("Computers", 10, 500, 60, is_whole=True),
    "jobs_per_host_day": Parameter("Jobs of a computer in a day", 0.5, 200, 5),
    "cpu_gflops": Parameter("Benchmark of a usual CPU (GFLOPS)", 0.1, 1000, 4),
    "speed_spread": Parameter("Spread of the speeds", 0, 1.5, 0.35, "The standard deviation of their logarithms."),
    "efficiency_spread": Parameter("Spread of the computers' efficiencies", 0, 1, 0.15, "As of the speeds."),
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
        for cheat, (words, note) in CHEATS.items()
    },
}
