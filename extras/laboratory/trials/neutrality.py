"""Limited project neutrality over three projects, one of them for GPUs only: before and after it takes factors. Pure.

Credit document, "Goals of the new system" and "Cross-project version normalization". The same kinds of computers, all
with a GPU, work for each project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from credit.engine.cross_project import ExportedVersion, Factor, average_factors
from credit.engine.facts import ProcessorType
from credit.engine.rules import credit_of
from extras.laboratory.trials.figures import time_credit
from extras.laboratory.trials.population import LINUX, USUAL_FPOPS, WINDOWS, Hardware, VersionKind
from extras.laboratory.trials.trial import Outcome, Setup, Trial

JOBS: Final = 3000
"""Jobs of each project before anything is measured; then the same number are measured."""
HOSTS: Final = 60
_HOUR_SECS: Final = 3600.0


def _kinds(cpu: float, nvidia: float, ati: float, mt: float = 0.0) -> list[VersionKind]:
    """Build programs by the fraction of their processors' peak that they achieve; 0: there is none."""
    kinds = []
    for platform in (LINUX, WINDOWS):
        kinds += [
            VersionKind(platform, efficiency=cpu),
            VersionKind(platform, ProcessorType.NVIDIA, "cuda", nvidia, 0.1),
            VersionKind(platform, ProcessorType.ATI, "opencl_ati", ati, 0.1),
            VersionKind(platform, plan_class="mt", efficiency=mt, avg_ncpus=4),
        ]
    return [kind for kind in kinds if kind.efficiency]


WITH_BOTH: Final = {
    "for CPUs and GPUs": _kinds(cpu=0.5, nvidia=0.11, ati=0.07),
    "with threads, too": _kinds(cpu=0.4, nvidia=0.12, ati=0.05, mt=0.3),
}
GPUS_ONLY: Final = "for GPUs only"
_ONLY_KINDS: Final = _kinds(cpu=0, nvidia=0.1, ati=0.08)


@dataclass(frozen=True, slots=True)
class Neutrality:
    """Credit per host-hour (an hour on all processors of a computer that the project has programs for).

    ``others``: of the projects with both, by name. ``before`` and ``after``: of the one for GPUs only.
    """

    factors: list[Factor]
    others: Mapping[str, float]
    before: float
    after: float

    def ratio(self, credit: float) -> float:
        """Divide by the mean of the others: 1 is neutral."""
        return credit / fmean(self.others.values())


def measure_neutrality(seed: int, njobs: int = JOBS) -> Neutrality:
    """Simulate two projects first; the third one takes the averages of their factors."""
    setup = Setup(seed=seed, hosts=HOSTS, hardware=Hardware(gpu_part=1.0))
    others, exports = {}, []
    for name, kinds in WITH_BOTH.items():
        trial, outcomes = _worked(replace(setup, kinds=kinds), njobs)
        others[name] = _host_hour(trial, outcomes)
        exports.append(_exported(trial, outcomes))
    factors = average_factors(exports, 0.0)
    alone = replace(setup, kinds=_ONLY_KINDS)
    received = {factor.plan_class: factor.scale for factor in factors if factor.plan_class}
    before, after = (_host_hour(*_worked(replace(alone, received_scales=scales), njobs)) for scales in ({}, received))
    return Neutrality(factors, others, before, after)


def _worked(setup: Setup, njobs: int) -> tuple[Trial, list[Outcome]]:
    trial = Trial(setup)
    trial.run(njobs)
    return trial, trial.run(njobs)


def _host_hour(trial: Trial, outcomes: Sequence[Outcome]) -> float:
    """Average over computers."""
    cpu, gpu = (time_credit(trial.setup.kinds, outcomes, is_gpu=is_gpu)[0] for is_gpu in (False, True))
    peaks = [(computer.ncpus * computer.p_fpops, computer.gpu_flops) for computer in trial.computers]
    return fmean(credit_of((cpu * cpus + gpu * gpus) * _HOUR_SECS) for cpus, gpus in peaks)


def _exported(trial: Trial, outcomes: Sequence[Outcome]) -> list[ExportedVersion]:
    """Return the versions as the project would export them; their credit per day comes from the outcomes."""
    days = len(outcomes) / (trial.setup.jobs_per_host_day * trial.setup.hosts)
    exported = []
    for place, (kind, version) in enumerate(zip(trial.setup.kinds, trial.versions, strict=True)):
        granted = sum(outcome.granted for outcome in outcomes if outcome.kind_index == place)
        exported.append(
            ExportedVersion(
                app_name="app",
                platform=kind.platform,
                version_num=version.version_num,
                plan_class=kind.plan_class,
                processor_type=kind.processor_type,
                pfc_n=version.pfc.n,
                pfc_scale=version.pfc_scale or 0.0,
                expavg_credit=granted * credit_of(USUAL_FPOPS) / days,
                expavg_time=0.0,
                is_received=version.is_scale_received,
            )
        )
    return exported
