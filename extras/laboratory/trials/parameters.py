"""The parameters of a population: the meaning, range and default of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extras.laboratory.trials.population import KINDS, PICKED_EXAGGERATION, TURN_JOBS, Cheat
from portal.languages.marking import gettext_noop
from portal.languages.messages import Message


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that describes the population: its range, and its default. ``words`` fill its label and its help."""

    label: str
    low: float
    high: float
    usual: float
    help: str = ""
    is_whole: bool = False
    words: Mapping[str, str | Message] = field(default_factory=dict)


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
        Message("cheat_exaggerate"),
        gettext_noop("For every job, from the first one on."),
    ),
    Cheat.LATE: (
        Message("cheat_late"),
        gettext_noop("From the 61st job of each version on."),
    ),
    Cheat.LATE_TIMES: (
        Message("cheat_late_times"),
        gettext_noop("From the 61st job of each version on."),
    ),
    Cheat.RAMP: (
        Message("cheat_ramp"),
        gettext_noop("A twentieth more from the 21st job of each version on, up to 50 times."),
    ),
    Cheat.LEAVE: (
        Message("cheat_leave"),
        gettext_noop("They leave for a new one before it has a factor."),
    ),
    Cheat.LEAVE_SLACK: (
        Message("cheat_leave_slack"),
        gettext_noop("Ten jobs with a hundredth of the run time, then a hundred honest ones, then a new record."),
    ),
    Cheat.ONE_TIME: (Message("cheat_one_time"), gettext_noop("For one job in fifty.")),
    Cheat.SLACK: (
        Message("cheat_slack"),
        gettext_noop(
            "They report a hundredth of the run time, so that their average is low and the tenth job is worth more."
        ),
    ),
    Cheat.COLLUDE: (
        Message("cheat_collude"),
        gettext_noop(
            "They get both replicas of a job, and report ten times their speed for it. Their single results are honest."
        ),
    ),
    Cheat.WRONG: (
        Message("cheat_wrong"),
        gettext_noop("The validator detects these, even if a job is run only once."),
    ),
    Cheat.CHERRY_PICK: (Message("cheat_cherry_pick"), gettext_noop("They report compute errors for them.")),
    Cheat.PICK_BY_202: (
        Message("cheat_pick_by_202"),
        gettext_noop("The project did not do so."),
    ),
    Cheat.PICK_BY_DOWNLOAD: (
        Message("cheat_pick_by_download"),
        gettext_noop("They report failed downloads for them."),
    ),
    Cheat.PICK_BY_UPLOAD: (
        Message("cheat_pick_by_upload"),
        gettext_noop("They report a success, or failed uploads, without outputs."),
    ),
    Cheat.PICK_BY_LOSS: (
        Message("cheat_pick_by_loss"),
        gettext_noop("As if the computer no longer had them."),
    ),
    Cheat.PICK_BY_OUTPUT: (
        Message("cheat_pick_by_output"),
        gettext_noop("The validator detects these, even if a job is run only once."),
    ),
    Cheat.PICK_FEW: (Message("cheat_pick_few"), gettext_noop("One long job in twelve.")),
    Cheat.PICK_IN_TURNS: (
        Message("cheat_pick_in_turns"),
        gettext_noop("For %(jobs)s jobs at a time; then they do %(jobs)s honestly, until they are off probation."),
    ),
    Cheat.PICK_AND_EXAGGERATE: (
        Message("cheat_pick_and_exaggerate"),
        gettext_noop("They report %(times)s times their speed, so that short jobs look like ordinary ones."),
    ),
    Cheat.HOLD_BACK: (
        Message("cheat_hold_back"),
        gettext_noop("While they are on probation. After that they let long jobs fail."),
    ),
    Cheat.HOLD_IN_TURNS: (
        Message("cheat_hold_in_turns"),
        gettext_noop("For %(jobs)s jobs at a time, until these time out; then they do %(jobs)s honestly."),
    ),
    Cheat.FAIL_FIRST: (
        Message("cheat_fail_first"),
        gettext_noop(
            "They do so at once, while on probation. Then they do short jobs, wait until probation ends, and let long "
            "jobs fail again."
        ),
    ),
}
"""What cheaters do, as a verb phrase (`extras.laboratory.messages`) and as a line."""
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
