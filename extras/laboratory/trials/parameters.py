"""The parameters of a population: what each means, its range, and what is usual. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extras.laboratory.trials.population import KINDS, PICKED_EXAGGERATION, TURN_JOBS, Cheat
from portal.languages.marking import gettext_noop


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that describes the population: its range, and what is usual. ``words`` fill its label and its help."""

    label: str
    low: float
    high: float
    usual: float
    help: str = ""
    is_whole: bool = False
    words: Mapping[str, str] = field(default_factory=dict)


_PROGRAMS: Final = (
    "CPU, Linux",
    "CPU, Windows",
    "CUDA, Linux",
    "CUDA, Windows",
    "OpenCL, Windows",
    gettext_noop("4 CPUs, Linux"),
)
CHEATS: Final = {
    Cheat.EXAGGERATE: (
        gettext_noop("report ten times their speed"),
        gettext_noop("For every job, from the first one on."),
    ),
    Cheat.LATE: (
        gettext_noop("exaggerate their speed tenfold after a while"),
        gettext_noop("From the 61st job of each version on."),
    ),
    Cheat.LATE_TIMES: (
        gettext_noop("exaggerate their run times tenfold after a while"),
        gettext_noop("From the 61st job of each version on."),
    ),
    Cheat.RAMP: (
        gettext_noop("report a little more speed with each job"),
        gettext_noop("A twentieth more from the 21st job of each version on, up to 50 times."),
    ),
    Cheat.LEAVE: (
        gettext_noop("exaggerate their speed tenfold, each time under a new record"),
        gettext_noop("They leave for a new one before it has a factor."),
    ),
    Cheat.LEAVE_SLACK: (
        gettext_noop("report next to nothing for the first jobs of each new record"),
        gettext_noop("Ten jobs with a hundredth of the run time, then a hundred honest ones, then a new record."),
    ),
    Cheat.ONE_TIME: (gettext_noop("report an absurd run time now and then"), gettext_noop("For one job in fifty.")),
    Cheat.SLACK: (
        gettext_noop("report next to nothing for nine of ten jobs"),
        gettext_noop(
            "They report a hundredth of the run time, so that their average is low and the tenth job is worth more."
        ),
    ),
    Cheat.COLLUDE: (
        gettext_noop("collude in pairs"),
        gettext_noop(
            "They get both replicas of a job, and report ten times their speed for it. Their single results are honest."
        ),
    ),
    Cheat.WRONG: (
        gettext_noop("return wrong outputs for half of their jobs"),
        gettext_noop("The validator detects these, even if a job is run only once."),
    ),
    Cheat.CHERRY_PICK: (gettext_noop("let long jobs fail"), gettext_noop("They report compute errors for them.")),
    Cheat.PICK_BY_202: (
        gettext_noop("say that the project aborted long jobs"),
        gettext_noop("The project did not do so."),
    ),
    Cheat.PICK_BY_DOWNLOAD: (
        gettext_noop("let downloads for long jobs fail"),
        gettext_noop("They report failed downloads for them."),
    ),
    Cheat.PICK_BY_UPLOAD: (
        gettext_noop("upload nothing for long jobs"),
        gettext_noop("They report a success, or failed uploads, without outputs."),
    ),
    Cheat.PICK_BY_LOSS: (
        gettext_noop("leave long jobs out of their reports"),
        gettext_noop("As if the computer no longer had them."),
    ),
    Cheat.PICK_BY_OUTPUT: (
        gettext_noop("make up the outputs of long jobs"),
        gettext_noop("The validator detects these, even if a job is run only once."),
    ),
    Cheat.PICK_FEW: (gettext_noop("let few long jobs fail"), gettext_noop("One long job in twelve.")),
    Cheat.PICK_IN_TURNS: (
        gettext_noop("let long jobs fail in turns"),
        gettext_noop("For %(jobs)s jobs at a time; then they do %(jobs)s honestly, until they are off probation."),
    ),
    Cheat.PICK_AND_EXAGGERATE: (
        gettext_noop("let long jobs fail, and exaggerate"),
        gettext_noop("They report %(times)s times their speed, so that short jobs look like ordinary ones."),
    ),
    Cheat.HOLD_BACK: (
        gettext_noop("hold long jobs back until they time out"),
        gettext_noop("While they are on probation. After that they let long jobs fail."),
    ),
    Cheat.HOLD_IN_TURNS: (
        gettext_noop("hold long jobs back in turns"),
        gettext_noop("For %(jobs)s jobs at a time, until these time out; then they do %(jobs)s honestly."),
    ),
    Cheat.FAIL_FIRST: (
        gettext_noop("let long jobs fail first, and wait"),
        gettext_noop(
            "They do so at once, while on probation. Then they do short jobs, wait until probation ends, and let long "
            "jobs fail again."
        ),
    ),
}
"""What those who cheat do, in a verb phrase and in a line."""
_CHEAT_NUMBERS: Final = {"jobs": str(TURN_JOBS), "times": f"{PICKED_EXAGGERATION:g}"}
PARAMETERS: Final[dict[str, Parameter]] = {
    "hosts": Parameter(gettext_noop("Computers"), 10, 500, 60, is_whole=True),
    "jobs_per_host_day": Parameter(gettext_noop("Jobs per computer and day"), 0.5, 200, 5),
    "cpu_gflops": Parameter(gettext_noop("Benchmark of a typical CPU (GFLOPS)"), 0.1, 1000, 4),
    "speed_spread": Parameter(
        gettext_noop("Spread of speeds"), 0, 1.5, 0.35, gettext_noop("The standard deviation of their logarithms.")
    ),
    "efficiency_spread": Parameter(
        gettext_noop("Spread of the computers’ efficiencies"), 0, 1, 0.15, gettext_noop("As for speeds.")
    ),
    "gpu_part": Parameter(gettext_noop("Share of computers with a GPU"), 0, 1, 0.33),
    "wrong_benchmark_part": Parameter(gettext_noop("Share of computers with a wrong benchmark"), 0, 0.9, 0),
    "wrong_benchmark_factor": Parameter(gettext_noop("Wrong benchmark divided by the true one"), 0.01, 100, 3),
    "anonymous_part": Parameter(gettext_noop("Share of computers with their owner’s own program"), 0, 0.9, 0),
    "failing_part": Parameter(gettext_noop("Share of jobs that fail on honest computers"), 0, 0.5, 0),
    "size_spread": Parameter(
        gettext_noop("Spread of job estimates"),
        0,
        1.5,
        0.5,
        gettext_noop("The standard deviation of their logarithms."),
    ),
    "hidden_ratio": Parameter(
        gettext_noop("Run time of long jobs divided by that of short ones, with the same estimate"),
        1,
        100,
        1,
        gettext_noop(
            "Half of the jobs are long. Jobs that take more than 1.5 times their estimate are picked, which happens "
            "from a ratio of 3.1."
        ),
    ),
    "other_efficiency": Parameter(
        gettext_noop("Efficiency at another project divided by that here"),
        0.05,
        1,
        0.5,
        gettext_noop(
            "The other project only has CPU programs. The credit for CPU time there is compared with that here."
        ),
    ),
    **{
        f"efficiency_{place}": Parameter(
            gettext_noop("Efficiency: %(program)s"), 0.001, 1, kind.efficiency, words={"program": name}
        )
        for place, (name, kind) in enumerate(zip(_PROGRAMS, KINDS, strict=True))
    },
    **{
        f"cheat_{cheat.value}": Parameter(
            gettext_noop("Share of computers that %(cheat)s"), 0, 0.5, 0, note, words={**_CHEAT_NUMBERS, "cheat": words}
        )
        for cheat, (words, note) in CHEATS.items()
    },
}
