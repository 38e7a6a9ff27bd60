"""How fast a version will run on a host: the FLOPS from which run times are estimated.

Credit document, "App plan functions" and "Statistics maintained by the server".
"""

from __future__ import annotations

from math import inf

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.rules import Rules

GPU_AS_CPUS = 10
"""Deployed: before anything is measured, a GPU counts as ten CPUs."""


def projected_flops(
    et: AverageWithVariance | None, version_pfc: Average | None, peak_flops: float, is_gpu: bool, rules: Rules
) -> float:
    """FLOPS to divide ``fpops_est`` by, to estimate a run time: the host's own, the version's, or a guess.

    ``et``: the host's average of elapsed seconds / fpops_est; ``version_pfc``: the version's of PFC / fpops_est;
    ``peak_flops`` of the devices that the job is to be given. Never above the peak.
    """
    if et is not None and et.n >= rules.min_host_samples and et.avg:
        flops = 1 / et.avg
    elif version_pfc is not None and version_pfc.n >= rules.min_version_samples and version_pfc.avg:
        flops = peak_flops / version_pfc.avg
    else:
        flops = peak_flops * (rules.gpu_efficiency if is_gpu else rules.cpu_efficiency)
    return min(flops, peak_flops)


def deployed_projected_flops(
    et: AverageWithVariance | None,
    version_pfc: Average | None,
    peak_flops: float,
    p_fpops: float,
    ncpus: float,
    ngpus: float,
    rules: Rules,
    plan_flops: float | None = None,
) -> float:
    """The same as BOINC's server estimates it; ``plan_flops`` is what the plan class says.

    None: nothing, which is benchmark × (CPUs + 10 × GPUs). At most 250 times that.
    """
    benchmark = p_fpops * (ncpus + GPU_AS_CPUS * ngpus)
    plan = benchmark if plan_flops is None else plan_flops
    extra = rules.extra_samples_in_estimate
    if et is not None and et.n >= rules.min_host_samples + extra and et.avg:
        flops = 1 / et.avg
    elif version_pfc is not None and version_pfc.n >= rules.min_version_samples + extra and version_pfc.avg:
        flops = peak_flops / version_pfc.avg
    else:
        flops = benchmark
    return min(flops, plan * (rules.max_plan_factor or inf))
