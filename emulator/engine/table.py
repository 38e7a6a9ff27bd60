"""The state of a run in arrays: what the compiled loop (emulator.engine.kernel) works on.

One row of `jobs` is a job, one of `projects` a project, one of `kinds` a kind of processor, one of `pairs` a project
and a kind. The fields of a row are those of Job, ProjectState and Client (emulator.engine.state and .client) with the
same names, units and meaning; only what differs from them is explained here. Jobs lie in order of arrival; a list of
jobs is one field of `lists`, and its number of entries a field of `run`.

All numbers are 64 bits wide. Every array that grows with the run has room for one more step of the loop, which checks
it before each step (`kernel.loop.has_room`): compiled code does not check indexes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from emulator.engine.quirks import Quirks
from emulator.engine.uncompiled import Rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def row_type(ints: str, floats: str) -> np.dtype[np.void]:
    """Returns the type of a row with these fields."""
    return np.dtype([(name, np.int64) for name in ints.split()] + [(name, np.float64) for name in floats.split()])


# `taken`: it is among the jobs chosen now. `gone`: its server has it, and the row is free. `lane`: of one instance, or
# -1; a job of several is the owner of their lanes, and `part_lane` is the one that it shares, or -1. `sim_end_secs`: of
# the last simulation that looked at deadlines. `barred`: devices that it may not use, as bits.
JOB: Final = row_type(
    "id project kind app started running done gone by_deadline taken lane part_lane waits_for_ram barred",
    "usage cpus counted_flops pace size_secs estimate_secs bias left before_secs rate left_at_error settled_secs "
    "arrived_secs deadline_secs slice_end_secs end_secs changed_flop sim_end_secs",
)
# `tier`: projects of a smaller one come first, whatever their ranks. `rank`, `inverse`, `done_flop`: of policies.rec.
# `share_fraction`: of policies.long_term_debt. `ready`: how many jobs wait to be reported, `first_ready_secs` when the
# first was finished. `server_*`, `trace_*`: of UpDown. `runnable_fraction`, `done_secs`: of policies.debt_2005. `order`
# has nothing to do with its row: it is the list of projects that may be asked for work, the first to be asked first.
PROJECT: Final = row_type(
    "attached suspended no_new_tasks held has_work forced_down tier failures running unfinished ready "
    "sent met late failed rpcs server_up order max_concurrent workload_check master_fetches first_trace traces "
    "trace_place",
    "share rank inverse done_flop share_fraction rpc_allowed_secs report_at_secs job_secs job_flop busy_flops "
    "used_flop wasted_flop request_delay_secs error_delay_secs first_ready_secs gap_cubes gap_from_secs "
    "server_until_secs server_up_secs server_down_secs reply_delay_secs "
    "runnable_fraction done_secs trace_begin_secs trace_secs",
)
# `jobs`: waiting and begun. `debt`: of policies.long_term_debt and .debt_2005.
PAIR: Final = row_type(
    "jobs waiting begun can_supply",
    "waiting_secs busy instance_secs backoff_until_secs backoff_interval_secs debt most_used",
)
# `free`: while jobs are chosen. `saturated_secs`, `shortfall_secs`, `idle`: of the last simulation. `asked_*` and
# `delay_secs`: of the request that is made. `lanes` lanes from `first_lane` on. `stop_reason`: why jobs stop when it is
# not active. `supplied`: some project has jobs for it. `missed`: how many would miss their deadlines, the entries of
# `lists` from `first_missed` on. `cut`: limits leave nothing of what was to be asked for.
KIND: Final = row_type(
    "active present supplied first_lane lanes stop_reason first_missed missed cut",
    "instances counted_flops up_fraction work work_rate work_at longest_secs max_usage min_usage beside free "
    "saturated_secs shortfall_secs idle asked_secs asked_instances delay_secs",
)
# `weight` and what its jobs are drawn from, in FLOP.
APP: Final = row_type(
    "project max_concurrent",
    "weight size_flop size_deviation estimate_flop estimate_deviation estimate_factor latency_secs error_rate "
    "ram_bytes",
)
OFFER: Final = row_type("app kind refused barred", "flops usage cpus counted_flops pace")
# The loop: `phase` is where it goes on (kernel.loop), `changed` whether something happened in this step. Counts:
# `jobs` rows in use, and entries of the lists. `sim_*`: of when the last simulation is, `judged_*` the last judgement.
# `pending`: the time of the next look is a bound, and the exact one is found from the snapshot when it is reached.
# `awaited`: the project whose reply has not come yet, or -1, and whether it `was_asked` for work (`asked_*` of kinds).
RUN: Final = row_type(
    "phase changed policy by_letter adapts adapted records reachable report_at_once uneven contested any_suspended "
    "any_without_share eligibility_rule version arrivals moves next_id full_at_moves checked_version sim_version "
    "judged_version jobs done running begun ready chosen margins decisions dropped blocks rpcs misses answered sent "
    "steps events pending snapshot lanes first_downtime limited uses_backoffs awaited was_asked tasks "
    + " ".join(Quirks.__slots__),
    "now duration_secs choose_at fetch_at state_at event_at rpc_at sample_at free_secs report_at_secs accrued_secs "
    "growth decay cpu_rate safe_until_secs first_end buffer_min_secs buffer_total_secs period_secs host_flops "
    "ram_bytes ram_used report_delay_secs sim_at judged_at pending_at pending_soonest log_from log_to "
    "next_period_secs period_from_secs pay_off_secs initial_secs recheck_secs",
)


# `running`: in order of their starts. `begun`: have run and are not finished, in order of their first starts. `ready`:
# finished and not reported, in order of their ends. `chosen` and the `reasons`. `margin_jobs` would just not miss their
# deadlines, by `margin_secs`. `task_*`: of policies.debt_2005. `missed`: jobs that would miss their deadlines, by kind
# and deadline. `lane_owner`: 0, the number of the job that has that lane and 1, or -1 if jobs share it; then
# `lane_load` is their part.
ENTRY: Final = row_type(
    "running begun ready chosen reasons margin_jobs task_jobs task_reasons missed lane_owner",
    "task_pay_off task_work margin_secs lane_load",
)
# Which rows are where in `records`, with the columns of DecisionLog.add, Recorder.block, .rpc and .miss; and what a
# forecast starts from that may be made later.
DECISIONS: Final = 0
BLOCKS: Final = 1
RPCS: Final = 2
MISSES: Final = 3
SNAPSHOT: Final = 4
RECORDS: Final = 5
RECORD_COLUMNS: Final = 8


class Table(NamedTuple):
    """All arrays of one run. There are few of them: a call that is not inlined copies 7 to 11 words of each."""

    run: Any  # one row
    jobs: Any
    projects: Any
    pairs: Any  # by project and kind
    kinds: Any
    apps: Any
    offers: Any
    lists: Any
    times: Floats  # when servers change their state: `traces` from `first_trace` on, and again. Then downtimes: by row
    # project, from, length, every
    streams: Any  # of random numbers: by project those for jobs, for its server, for errors; and one for waits
    records: Any


def rows(dtype: np.dtype[np.void], *shape: int, uncompiled: bool) -> Any:
    """Returns rows of zeros."""
    return Rows(dtype, shape) if uncompiled else np.zeros(shape, dtype)
