"""The effect of each setting of an app and of a version, for operators; with its range if it has one.

Settings that replace a limit of the rules say so in the model itself.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

APP_TEXTS: Final = {
    "credit_system": _(
        "How the credit for a job is calculated. Statistics are kept whatever you choose, so you can change this at "
        "any time."
    ),
    "rule_set": _(
        "The credit document leaves loopholes for gaining credit without work. The first set closes them; the second "
        "follows the document exactly. The third, “as BOINC’s own server calculates”, is for projects that move here "
        "and must not see a jump in credit."
    ),
    "host_scale_check": _(
        "Guards against computers that pick the jobs that pay best. A computer’s factor is limited to 1 while more "
        "than one in twenty of its recent jobs ended without a valid result, or while too little is known about it. "
        "Works best with two results of each job, or with single results from reliable computers only."
    ),
    "version_average": _(
        "Represents a version when computers are compared. The median cannot be moved by a few cheating computers, but "
        "it needs computers with enough jobs each."
    ),
    "replica_rule": _("The credit granted to all replicas of a job if their claims differ."),
    "actual_flops_scale": _("The FLOPs counted by the app are multiplied by this factor. From 1e-06 to 1e+06."),
    "benchmark_scale": _(
        "Benchmark × CPU time is multiplied by this factor if the app counted no FLOPs. From 1e-06 to 1e+06."
    ),
    "fixed_credit": _(
        "Credit for each job, whatever its size. From 0 to 1e+15. If empty, credit depends on the estimated FLOPs."
    ),
    "fixed_credit_per_flop": _(
        "Credit for each estimated FLOP of a job. Not used if a fixed credit per job is given. From 0 to 1. One day of "
        "a 1 GFLOPS processor is worth 200 credits, so one FLOP is worth 2.3e-12."
    ),
    "max_credited_secs": _(
        "Only used for “run time × peak FLOPS, up to a limit”: longer run times count as this one. From 1 to 1e+09."
    ),
    "comparison": _("When the outputs of two replicas count as equal."),
    "comparison_tolerance": _(
        "Two numbers agree if they differ by at most this fraction of the larger one. From 0 to 1. Only used for "
        "“numbers equal within a tolerance”."
    ),
    "comparison_absolute_tolerance": _(
        "Two numbers also agree if they differ by at most this amount. Meant for numbers near zero. From 0 to 1e+300."
    ),
    "comparison_function": _(
        "A Python function of two results that decides whether they agree. Only used for “a Python function”. "
        "Functions are registered in the setting APP_FUNCTIONS."
    ),
    "trickle_function": _(
        "A registered Python function. If there is none, messages are only kept. "
        "scheduler.rpc.trickles.grant_partial_credit grants credit while a job runs."
    ),
    "max_jobs_per_day_init": _(
        "Multiplied by the number of a computer’s processors of the type. A crash lowers the limit by one, a success "
        "doubles it. From 1 to 100\u202f000."
    ),
    "max_jobs_in_progress": _(
        "Jobs of this app on a computer, for each of its processors. The site’s limit over all apps "
        "(MAX_JOBS_IN_PROGRESS) also applies. From 1 to 10\u202f000. If empty, only the site’s limit applies."
    ),
    "max_gpu_jobs_in_progress": _(
        "The same for each GPU (MAX_GPU_JOBS_IN_PROGRESS). From 0 to 10\u202f000. If empty, only the site’s limit "
        "applies."
    ),
    "max_jobs_per_rpc": _(
        "Jobs of this app sent to a computer at once. The site’s limit over all apps (MAX_JOBS_PER_RPC) also applies. "
        "From 1 to 500. If empty, only the site’s limit applies."
    ),
    "one_result_per_user": _(
        "Prevents a volunteer’s own results from confirming each other. Switch it off only for tests with few "
        "computers."
    ),
    "is_deprecated": _(
        "Computers get no more jobs of this app. Within an hour, its unsent jobs end as “could not be sent”."
    ),
    "is_non_cpu_intensive": _("Its jobs run alongside others, one on each computer."),
}
APP_LABELS: Final = {"host_scale_check": _("Apply host-scale probation (host_scale_check)")}
VERSION_LABELS: Final = {"is_deprecated": _("Withdrawn")}
"""Of settings that the forms do not call by their columns' names."""
VERSION_TEXTS: Final = {
    "is_deprecated": _(
        "The version is no longer sent. It keeps its factor for jobs in progress and for the next version. Under the "
        "rules “exactly as in the credit document” it loses its factor."
    ),
    "avg_ncpus": _(
        "Processors that a job keeps busy on average. Credit is calculated from this. From 0 to 1\u202f024."
    ),
    "gpu_usage": _(
        "GPUs that a job keeps busy; may be a fraction. 0 for a CPU version, otherwise above 0 and at most 64."
    ),
    "min_gpu_ram_bytes": _("Computers whose GPU has less memory do not get this version. 0 means any amount."),
    "cross_project_scale": _(
        "S(V), for apps that have GPU versions only: the factor that such versions have at other projects. It then "
        "replaces the factor calculated here; if the app has CPU versions, it is not used. “Factor” below is the one "
        "in force. From 1e-06 to 1e+06. If empty, there is none."
    ),
}
