"""The laboratory's sentences that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import Message, declare

MESSAGES: Final = declare(
    {
        # Why an experiment has no results (worker.py, trials/process.py)
        "experiment_site_fault": _("The experiment failed because of a fault of this site. The operators can see why."),
        "experiment_time_limit": _(
            "It took more than %(secs)s s of processor time, or %(clock_secs)s s by the clock. Try fewer jobs, "
            "populations or rules."
        ),
        "experiment_memory_limit": _("It needs more than %(mib)s MiB of memory. Try fewer jobs."),
        # Why an experiment is impossible (trials/experiment.py)
        "experiment_range": _("%(name)s: must be from %(low)s to %(high)s, not %(value)s"),
        "experiment_choice": _("%(name)s: must be one of %(choices)s"),
        "experiment_no_parameter": _("%(name)s: there is no such parameter"),
        "experiment_cheats": _("cheats: %(number)s of %(hosts)s computers would cheat; the limit is %(most)s"),
        "experiment_variants": _("variants: the choices make %(number)s; the limit is %(most)s. Choose fewer."),
        # The compared rules, and how often they have a job computed (trials/goals.py)
        "experiment_variant": "%(parts)s",
        "way_single": _("single results"),
        "way_adaptive": _("adaptive replication"),
        "way_pairs": _("two replicas"),
        # Goals (trials/goals.py, trials/collusion.py)
        "goal_versions": _("device neutrality: difference between versions' mean grants"),
        "goal_hosts": _("equal jobs on different hosts: mean deviation"),
        "goal_drift": _("drift of the mean grant per 1,000 jobs"),
        "goal_versions_pairs": _("device neutrality, two replicas"),
        "goal_replicas": _("difference between replicas' claims for one job"),
        "goal_cpu_time": _("project neutrality: difference between credit for CPU time here and at another project"),
        "goal_gpu_time": _("project neutrality: deviation of credit for GPU time from the efficiency of its programs"),
        "goal_gain": _("gain of those who %(cheat)s, per FLOP"),
        "goal_exaggerating": _("exaggerating tenfold: deviation from honest hosts after %(number)s jobs (%(way)s)"),
        "goal_exaggerating_first": _("exaggerating tenfold, gain in the first %(number)s jobs (%(way)s)"),
        "goal_one_time": _("one-time cheat: greatest grant over the default"),
        "goal_one_time_way": _("one-time cheat: greatest grant over the default (%(way)s)"),
        "goal_way_gain": _("%(cheat)s: gain (%(way)s)"),
        "goal_picking": _("picking by %(cheat)s: gain (%(way)s)"),
        "goal_picking_failing": _("picking by %(cheat)s, others fail %(percent)s%%: gain (%(way)s)"),
        "goal_honest": _("honest computers that never fail: loss by host_scale_check (%(way)s)"),
        "goal_honest_failing": _(
            "honest computers that fail %(percent)s%% of their jobs: loss by host_scale_check (%(way)s)"
        ),
        "goal_lead": _("new honest computers, jobs %(sizes)s: loss by the bound on leads"),
        "goal_lead_usual": _("new honest computers, jobs %(sizes)s: below usual jobs"),
        "goal_group": _("%(group)s who collude among %(hosts)s: gain per FLOP"),
        "goal_group_idle": _(
            "%(group)s who collude among %(hosts)s and compute nothing: part of an honest computer's credit"
        ),
        "goal_honest_pairs": _("honest pairs among %(hosts)s that a third has to confirm, a day"),
        # For goals where the title of a chart supplies the rest
        "goal_cpu_time_short": _("difference between credit for CPU time here and at another project"),
        "goal_gpu_time_short": _("deviation of credit for GPU time from the efficiency of its programs"),
        "goal_one_time_short": _("greatest grant over the default"),
        "goal_one_time_way_short": _("greatest grant over the default (%(way)s)"),
        # Sizes of jobs
        "sizes_estimated": _("as estimated"),
        "sizes_half": _("of half or one and a half times the estimate"),
        "sizes_far": _("of 0.2 or 2 times the estimate"),
        # Ways of cheating
        "cheat_exaggerate": _("report ten times their speed"),
        "cheat_late": _("exaggerate their speed tenfold after a while"),
        "cheat_late_times": _("exaggerate their run times tenfold after a while"),
        "cheat_ramp": _("report a little more speed with each job"),
        "cheat_leave": _("exaggerate their speed tenfold, each time under a new record"),
        "cheat_leave_slack": _("report next to nothing for the first jobs of each new record"),
        "cheat_one_time": _("report an absurd run time now and then"),
        "cheat_slack": _("report next to nothing for nine of ten jobs"),
        "cheat_collude": _("collude in pairs"),
        "cheat_wrong": _("return wrong outputs for half of their jobs"),
        "cheat_cherry_pick": _("let long jobs fail"),
        "cheat_pick_by_202": _("say that the project aborted long jobs"),
        "cheat_pick_by_download": _("let downloads for long jobs fail"),
        "cheat_pick_by_upload": _("upload nothing for long jobs"),
        "cheat_pick_by_loss": _("leave long jobs out of their reports"),
        "cheat_pick_by_output": _("make up the outputs of long jobs"),
        "cheat_pick_few": _("let a few long jobs fail"),
        "cheat_pick_in_turns": _("let long jobs fail in turns"),
        "cheat_pick_and_exaggerate": _("let long jobs fail, and exaggerate"),
        "cheat_hold_back": _("hold long jobs back until they time out"),
        "cheat_hold_in_turns": _("hold long jobs back in turns"),
        "cheat_fail_first": _("let long jobs fail first, and wait"),
        "level_late": _("exaggerating tenfold after 60 honest jobs"),
        "level_late_times": _("ten times the run time after 60 honest jobs"),
        "level_ramp": _("exaggerating 5 % more with each job"),
        "level_leave": _("exaggerating tenfold, and leaving for a new record each time"),
        "level_leave_slack": _("next to nothing for ten jobs of a record, then leaving for a new one"),
        "picking_short": _("picking short jobs"),
        "slack_often": _("next to nothing on nine of ten jobs"),
        "picking_hidden": _("picking jobs of hidden size"),
        "picking_errors": _("compute errors"),
        "picking_by_202": _("202 that nobody asked for"),
        "picking_by_download": _("failed downloads"),
        "picking_by_upload": _("nothing uploaded"),
        "picking_by_loss": _("left out"),
        "picking_by_output": _("wrong outputs"),
        "picking_in_turns": _("compute errors, in turns"),
        "picking_hold_back": _("holding them back, then compute errors"),
        "picking_hold_in_turns": _("holding them back, in turns"),
        "picking_fail_first": _("compute errors first, then waiting"),
        "picking_few": _("a few compute errors"),
        "picking_and_exaggerate": _("compute errors, exaggerating"),
    }
)

VERSIONS: Final = Message("goal_versions")
HOSTS: Final = Message("goal_hosts")
DRIFT: Final = Message("goal_drift")
REPLICAS: Final = Message("goal_replicas")
CPU_TIME: Final = Message("goal_cpu_time")
GPU_TIME: Final = Message("goal_gpu_time")
