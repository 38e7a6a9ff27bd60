"""The effect of each setting of an app and of a version, for operators; with its range if it has one.

Settings that replace a limit of the rules say so in the model itself.
"""

from __future__ import annotations

from typing import Final

APP_TEXTS: Final = {
    "credit_system": "How a job's credit is computed. Statistics are kept whatever you choose, so you can change it.",
    "rule_set": (
        "The credit document leaves ways to gain credit without work; the first set closes them, the second has them. "
        "“As BOINC's own server computes” is for projects that move here and must not see a jump in credit."
    ),
    "host_scale_check": (
        "Guards against computers that pick the jobs that pay best. A computer's factor is limited to 1 while more "
        "than one in twenty of its recent jobs ended without a valid result, or while too little is known about it. "
        "Works best with two results of each job, or with single results from reliable computers only."
    ),
    "version_average": (
        "Represents a version when computers are compared. The median keeps a few computers that cheat from "
        "moving it; it needs computers with enough jobs each."
    ),
    "replica_rule": "What all replicas of a job are granted, if their claims differ.",
    "actual_flops_scale": "What the FLOPs that the app counted are multiplied with. From 1e-06 to 1e+06.",
    "benchmark_scale": (
        "What benchmark × CPU time is multiplied with where the app counted nothing. From 1e-06 to 1e+06."
    ),
    "fixed_credit": "Credits for each job, whatever its size. From 0 to 1e+15; empty: by the FLOPs estimated.",
    "fixed_credit_per_flop": (
        "Credits for each FLOP that a job is estimated at; not used if a fixed credit per job is given. From 0 to 1; a "
        "day of a 1 GFLOPS processor is worth 200 credits, so one FLOP 2.3e-12."
    ),
    "comparison": "When the outputs of two replicas count as the same.",
    "comparison_tolerance": (
        "Two numbers agree if they differ by at most so much of the larger one. From 0 to 1; only for “numbers equal "
        "within a tolerance”."
    ),
    "comparison_absolute_tolerance": (
        "Two numbers agree as well if they differ by at most this: for numbers near zero. From 0 to 1e+300."
    ),
    "comparison_function": (
        "A Python function of two results that says whether they agree; only for “a Python function”. The setting "
        "APP_FUNCTIONS registers functions."
    ),
    "trickle_function": (
        "A registered Python function; none: messages are kept and nothing else. "
        "scheduler.rpc.trickles.grant_partial_credit grants credit while a job runs."
    ),
    "max_jobs_per_day_init": (
        "Multiplied with a computer's processors of the type. A crash takes one away, a success doubles the rest. "
        "From 1 to 100,000."
    ),
    "max_jobs_in_progress": (
        "Of this app, on a computer, for each of its processors; beside the site's limit over all apps "
        "(MAX_JOBS_IN_PROGRESS). From 1 to 10,000; empty: the site's limit alone."
    ),
    "max_gpu_jobs_in_progress": (
        "The same for each GPU (MAX_GPU_JOBS_IN_PROGRESS). From 0 to 10,000; empty: the site's limit alone."
    ),
    "max_jobs_per_rpc": (
        "Of this app, sent to a computer at once; beside the site's limit over all apps (MAX_JOBS_PER_RPC). From 1 to "
        "500; empty: the site's limit alone."
    ),
    "one_result_per_user": "So no volunteer's results can confirm each other. Off only for tests with few computers.",
    "is_deprecated": (
        "Computers get no more jobs of it, and within an hour the waiting ones end as “could not be sent”."
    ),
    "is_non_cpu_intensive": "Its jobs run beside others, one on each computer.",
}
APP_LABELS: Final = {"host_scale_check": "Apply host-scale probation (host_scale_check)"}
VERSION_LABELS: Final = {"is_deprecated": "Withdrawn"}
"""Of settings that the forms do not call by their columns' names."""
VERSION_TEXTS: Final = {
    "is_deprecated": (
        "It is sent no more. It keeps its factor, for jobs that are still out and for the next version; by the rules "
        "to the letter it loses it."
    ),
    "avg_ncpus": "Processors that a job keeps busy on average. Credit is computed from it. From 0 to 1,024.",
    "gpu_usage": "GPUs that a job keeps busy; may be a fraction. 0 for a CPU version, else above 0 and at most 64.",
    "min_gpu_ram_bytes": "Computers whose GPU has less memory do not get it. 0: any.",
    "cross_project_scale": (
        "S(V), for apps that have GPU versions only: the factor that such versions have at other projects. There it "
        "wins over what is computed here; beside CPU versions it is not used. “Factor” below is the one in force. From "
        "1e-06 to 1e+06; empty: none."
    ),
}
