"""Rows for the run's log and timeline, as DecisionLog and Recorder make them."""

from __future__ import annotations

from emulator.engine.kernel.compiled import compiled
from emulator.engine.table import BLOCKS, DECISIONS, MISSES, RPCS, Table


@compiled
def log(t: Table, now: float, kind: int, reason: int, project: int, job: int, processor: int, amount: float) -> None:
    """Logs one decision. `job` is a number, -1 for none."""
    run = t.run[0]
    if not run.log_from <= now <= run.log_to:
        run.dropped += 1
        return
    row = t.records[DECISIONS, run.decisions]
    row[0], row[1], row[2], row[3], row[4], row[5], row[6] = now, kind, reason, project, job, processor, amount
    run.decisions += 1


@compiled
def _block(t: Table, j: int, start: float, end: float, lane: int, usage: float, kind: int) -> None:
    job = t.jobs[j]
    row = t.records[BLOCKS, t.run[0].blocks]
    row[0], row[1], row[2], row[3], row[4] = start, end, lane, job.project, job.id
    row[5], row[6], row[7] = usage, job.by_deadline, kind
    t.run[0].blocks += 1


@compiled
def record_blocks(t: Table, j: int, start: float, end: float) -> None:
    """Records a stretch in which a job ran unchanged."""
    job = t.jobs[j]
    part_run = job.rate / job.pace
    kind = t.kinds[job.kind]
    if job.lane != -2:
        _block(t, j, start, end, job.lane, job.usage * part_run, job.kind)
    else:
        left = job.usage
        for lane in range(kind.first_lane, kind.first_lane + kind.lanes):
            if t.lists[lane].lane_owner == job.id + 1:
                part = min(left, 1.0)
                left -= part
                _block(t, j, start, end, lane, part * part_run, job.kind)
        if job.part_lane >= 0:
            part = min(left, 1.0)
            left -= part
            _block(t, j, start, end, job.part_lane, part * part_run, job.kind)
    if job.kind and job.cpus:
        _block(t, j, start, end, -1, job.cpus, 0)


@compiled
def record_rpc(t: Table, now: float, project: int, asked: float, got: int, reported: int, answered: int) -> None:
    """Records one RPC."""
    if t.run[0].records:
        row = t.records[RPCS, t.run[0].rpcs]
        row[0], row[1], row[2], row[3], row[4], row[5] = now, project, asked, got, reported, answered
        t.run[0].rpcs += 1


@compiled
def record_miss(t: Table, now: float, j: int) -> None:
    """Records a late job."""
    if t.run[0].records:
        job = t.jobs[j]
        row = t.records[MISSES, t.run[0].misses]
        row[0], row[1], row[2], row[3] = now, job.project, job.id, now - job.deadline_secs
        t.run[0].misses += 1


@compiled
def take_lanes(t: Table, j: int) -> None:
    """Gives a job its lanes (Lanes.allocate): `lane` -1 for none, -2 for several or a part."""
    job = t.jobs[j]
    kind = t.kinds[job.kind]
    first, end = kind.first_lane, kind.first_lane + kind.lanes
    job.lane = -1
    job.part_lane = -1
    if job.usage == 1.0:
        for lane in range(first, end):
            if t.lists[lane].lane_owner == 0:
                t.lists[lane].lane_owner = job.id + 1
                job.lane = lane
                return
        return
    whole = int(job.usage + 1e-9)
    rest = job.usage - whole
    free = 0
    for lane in range(first, end):
        if t.lists[lane].lane_owner == 0:
            free += 1
    if free < whole:
        return
    if rest > 1e-9:
        for lane in range(first, end):
            if t.lists[lane].lane_owner == -1 and t.lists[lane].lane_load + rest <= 1.0 + 1e-9:
                job.part_lane = lane
                break
        if job.part_lane < 0 and free == whole:
            return
    for lane in range(first, end):
        if t.lists[lane].lane_owner != 0:
            continue
        if whole > 0:
            t.lists[lane].lane_owner = job.id + 1
            whole -= 1
        elif rest > 1e-9 and job.part_lane < 0:
            job.part_lane = lane
            t.lists[lane].lane_owner = -1
            t.lists[lane].lane_load = 0.0
    if rest > 1e-9:
        t.lists[job.part_lane].lane_load += rest
    job.lane = -2


@compiled
def release_lanes(t: Table, j: int) -> None:
    """Frees the lanes of a job."""
    job = t.jobs[j]
    if job.lane >= 0:
        t.lists[job.lane].lane_owner = 0
    elif job.lane == -2:
        kind = t.kinds[job.kind]
        for lane in range(kind.first_lane, kind.first_lane + kind.lanes):
            if t.lists[lane].lane_owner == job.id + 1:
                t.lists[lane].lane_owner = 0
        if job.part_lane >= 0:
            t.lists[job.part_lane].lane_load -= job.usage - int(job.usage + 1e-9)
            if t.lists[job.part_lane].lane_load < 1e-9:
                t.lists[job.part_lane].lane_owner = 0
    job.lane = -1
    job.part_lane = -1
