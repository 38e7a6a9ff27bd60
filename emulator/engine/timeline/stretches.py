"""What could have run when: the facts from which the attainable shares are calculated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Supply:
    """Jobs that a project could have supplied: the devices that one occupies, its counted FLOPS, and how many may run
    at once.

    `kind` is an index into the computer's kinds of processor, `usage` counts instances of it, `cpus` the CPUs beside a
    GPU job. `app` numbers the project's applications, whose jobs `most_of_app` limits (infinity: no limit).
    """

    app: int
    kind: int
    usage: float
    cpus: float
    counted_flops: float
    most_of_app: float


@dataclass(frozen=True, slots=True)
class Claim:
    """An entitled project in a stretch. `is_dry`: its server has no jobs, or may not be asked, so only the client's
    present jobs can run. `most` limits its concurrent jobs. `start_flop`: per kind of processor, the counted FLOP left
    of its jobs that were present at the start of the run, without the CPUs beside GPU jobs.
    """

    project: int
    supplies: tuple[Supply, ...]
    most: float
    is_dry: bool
    start_flop: tuple[float, ...]


@dataclass(slots=True)
class Stretch:
    """Parts of the run with the same claims: the work buffer in seconds, and per kind of processor the counted FLOPS of
    an instance, and the seconds and the instance-seconds for which it was able to compute.

    `dry_spells`: for each claim the numbers of its project's spells without work in which the parts lie. The buffer may
    be full at the start of each of them. A spell that began with the run is not among them: then only the jobs from the
    start are available.
    """

    claims: tuple[Claim, ...]
    buffer_secs: float
    instance_flops: list[float]
    able_secs: list[float]
    instance_secs: list[float]
    dry_spells: tuple[set[int], ...]
