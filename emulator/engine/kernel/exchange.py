"""Transfers the state of a run between its objects (emulator.engine.state) and its table, both ways.

The table is filled when a run starts, and again after each event of the scenario, which is applied to the objects.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from emulator.engine.client import Client
from emulator.engine.decisions import WorkRequest
from emulator.engine.events.contact import Contact
from emulator.engine.kernel.compiled import IS_COMPILED
from emulator.engine.kernel.jobs import buffered_secs, update_contested
from emulator.engine.kernel.loop import Pause, advance, step_rows
from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.quirks import Quirks
from emulator.engine.server import MAX_JOBS_PER_RPC
from emulator.engine.state import Job, ProjectState
from emulator.engine.table import (
    APP,
    BLOCKS,
    DECISIONS,
    ENTRY,
    JOB,
    KIND,
    MISSES,
    OFFER,
    PAIR,
    PROJECT,
    RECORD_COLUMNS,
    RECORDS,
    RPCS,
    RUN,
    Table,
    rows,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.recorder import NO_LANES
from emulator.engine.uncompiled import Rows, column, plain

if TYPE_CHECKING:
    import random

    from emulator.engine.state import AppState


def _names(words: str) -> list[str]:
    return words.split()


JOB_FIELDS: Final = _names(
    "usage cpus counted_flops pace size_secs estimate_secs bias left before_secs rate left_at_error settled_secs "
    "arrived_secs deadline_secs slice_end_secs end_secs changed_flop id kind started running done by_deadline"
)
JOB_FLAGS: Final = frozenset({"started", "running", "done", "by_deadline"})
PROJECT_FIELDS: Final = _names(
    "share rpc_allowed_secs report_at_secs job_secs job_flop busy_flops used_flop wasted_flop gap_cubes "
    "gap_from_secs failures running unfinished sent met late failed rpcs held master_fetches"
)
PROJECT_FLAGS: Final = ("attached", "suspended", "no_new_tasks", "has_work", "forced_down")
PAIR_FIELDS: Final = ("waiting_secs", "busy", "instance_secs", "backoff_until_secs", "backoff_interval_secs")
CLIENT_FIELDS: Final = _names(
    "version arrivals moves cpu_rate safe_until_secs uneven any_suspended limited buffer_min_secs buffer_total_secs "
    "period_secs host_flops report_at_once ram_bytes"
)
KIND_FIELDS: Final = ("longest_secs", "max_usage", "min_usage", "work", "work_rate", "work_at", "beside")
ROWS: Final = 16_384


class Exchange:
    """One run's client, contacts and policy, and their table."""

    def __init__(self, client: Client, contact: Contact, policy: ArrayPolicy) -> None:
        self._client = client
        self._contact = contact
        self._policy = policy
        self._uncompiled = not IS_COMPILED
        self._apps: list[AppState] = []
        self._lanes = sum(lanes.count for lanes in client.lanes)
        self.table = self._new_table(sum(project.unfinished + len(project.ready) for project in client.all_projects))
        self._load_log()

    def _new_table(self, jobs: int) -> Table:
        client = self._client
        kinds, projects = len(client.kinds), len(client.all_projects)
        size = jobs + MAX_JOBS_PER_RPC + ROWS + self._lanes
        moments = [(at, 0.0, 0.0, 0.0) for project in client.all_projects for at in project.server.moments]
        downtimes = [
            (float(project.index), downtime.from_secs, downtime.length_secs, downtime.every_secs)
            for project in client.all_projects
            for downtime in project.project.downtimes
        ]

        def made(dtype: np.dtype[np.void], *shape: int) -> Any:
            return rows(dtype, *shape, uncompiled=self._uncompiled)

        return Table(
            run=made(RUN, 1),
            jobs=made(JOB, size),
            projects=made(PROJECT, projects),
            pairs=made(PAIR, projects, kinds),
            kinds=made(KIND, kinds),
            apps=made(APP, 0),
            offers=made(OFFER, 0),
            lists=made(ENTRY, size),
            times=np.array(moments + downtimes, dtype=np.float64).reshape(-1, 4),
            streams=self._generators() if self._uncompiled else _streams(self._generators()),
            records=np.zeros((RECORDS, ROWS, RECORD_COLUMNS)),
        )

    def _generators(self) -> list[random.Random]:
        """The generators of all streams."""
        projects = self._client.all_projects
        generators = [project.draws for project in projects]
        generators += [project.server.generator for project in projects]
        generators += [project.error_draws for project in projects]
        return [*generators, self._contact.waits]

    def _load_log(self) -> None:
        run, log = self.table.run[0], self._client.log
        run["log_from"], run["log_to"] = log.from_secs, log.to_secs
        run["sim_at"] = run["judged_at"] = -1.0
        run["checked_version"] = run["full_at_moves"] = -1
        run["awaited"] = -1
        run["lanes"] = self._lanes
        run["first_downtime"] = sum(len(project.server.moments) for project in self._client.all_projects)
        for name in Quirks.__slots__:
            run[name] = getattr(self._client.quirks, name)
        run["uses_backoffs"] = self._policy.uses_backoffs

    # From the objects.

    def load(self) -> None:
        """Fills the table from the objects. State that only the loop knows stays."""
        self._load_apps()
        self._load_jobs()
        for project in self._client.all_projects:
            self._load_project(project)
        for kind in range(len(self._client.kinds)):
            self._load_kind(kind)
        self._load_run()
        update_contested(self.table)
        self._policy.load(self.table)

    def _load_apps(self) -> None:
        self._apps = [app for project in self._client.all_projects for app in project.apps]
        apps = rows(APP, len(self._apps), uncompiled=self._uncompiled)
        offers = []
        for project in self._client.all_projects:
            for state in project.apps:
                number, app = self._apps.index(state), state.app
                row = apps[number]
                row["project"], row["weight"], row["latency_secs"] = project.index, app.weight, app.latency_bound_secs
                quirks = self._client.quirks
                size, estimate = (app.estimate, app.size) if quirks.estimate_sampled else (app.size, app.estimate)
                row["size_flop"], row["size_deviation"] = size.mean, size.std_dev
                row["estimate_flop"], row["estimate_deviation"] = estimate.mean, estimate.std_dev
                row["estimate_factor"] = 2.0 if quirks.doubled_elapsed and project.project.uses_dcf else 1.0
                row["max_concurrent"] = state.most_at_once
                row["error_rate"], row["ram_bytes"] = app.error_rate, app.working_set_bytes
                offers += [(number, offer) for offer in state.offers]
        made = rows(OFFER, len(offers), uncompiled=self._uncompiled)
        for row, (number, offer) in zip(made, offers, strict=True):
            row["app"] = number
            for name in ("kind", "flops", "usage", "cpus", "counted_flops", "pace", "barred"):
                row[name] = getattr(offer, name)
        self.table = self.table._replace(apps=apps, offers=made)

    def _load_jobs(self) -> None:
        client = self._client
        ready = [job for project in client.all_projects for job in project.ready]
        present = [*client.jobs(), *ready]
        self._make_room_for(len(present))
        t = self.table
        row_of = {}
        numbers = {app: number for number, app in enumerate(self._apps)}
        waits = {int(row["id"]) for row in t.jobs[: t.run[0]["jobs"]] if row["waits_for_ram"]}
        for number, job in enumerate(sorted(present, key=lambda job: job.id)):
            row = t.jobs[number]
            row_of[job.id] = number
            for name in JOB_FIELDS:
                row[name] = getattr(job, name)
            row["project"], row["app"], row["gone"] = job.project.index, numbers[job.app], False
            row["waits_for_ram"] = job.id in waits
            row["barred"] = client.barred(job.project, job.app, job.kind)
        begun = [job for project in client.projects for of_kind in project.begun for job in of_kind]
        run = t.run[0]
        run["jobs"], run["done"], run["judged_at"] = len(present), 0, -1.0
        for name, jobs in (("running", client.running), ("begun", begun), ("ready", ready)):
            for entry, job in zip(t.lists[: len(jobs)], jobs, strict=True):
                entry[name] = row_of[job.id]
            run[name] = len(jobs)
        t.lists[: self._lanes]["lane_owner"] = 0
        if client.recorder is not None:
            for job in client.running:
                self._load_lanes(job, t.jobs[row_of[job.id]])

    def _load_lanes(self, job: Job, row: Any) -> None:
        t = self.table
        row["lane"] = row["part_lane"] = -1
        if job.lanes is NO_LANES:
            return
        row["lane"] = job.lanes[0] if job.usage == 1.0 else -2
        whole = int(job.usage + 1e-9)
        for lane in job.lanes[:whole]:
            t.lists[lane]["lane_owner"] = job.id + 1
        for lane in job.lanes[whole:]:
            row["part_lane"] = lane
            t.lists[lane]["lane_owner"] = -1
            t.lists[lane]["lane_load"] = self._client.lanes[job.kind].load(lane)

    def _load_project(self, project: ProjectState) -> None:
        row = self.table.projects[project.index]
        for name in (*PROJECT_FIELDS, *PROJECT_FLAGS):
            row[name] = getattr(project, name)
        row["request_delay_secs"] = project.project.request_delay_secs
        row["error_delay_secs"] = project.project.error_delay_secs
        row["reply_delay_secs"] = project.project.reply_delay_secs
        row["max_concurrent"] = project.project.max_concurrent
        row["workload_check"] = project.project.workload_check
        row["ready"] = len(project.ready)
        row["first_ready_secs"] = project.ready[0].end_secs if project.ready else 0.0
        server = project.server
        row["server_up"], row["server_until_secs"] = server.up, server.until_secs
        row["server_up_secs"], row["server_down_secs"] = server.mean_secs
        row["first_trace"] = sum(len(other.server.moments) for other in self._client.all_projects[: project.index])
        row["traces"], row["trace_secs"] = len(server.moments), server.trace_secs
        row["trace_place"], row["trace_begin_secs"] = server.trace_place, server.trace_begin_secs
        for kind in range(len(self._client.kinds)):
            pair = self.table.pairs[project.index, kind]
            for name in PAIR_FIELDS:
                pair[name] = getattr(project, name)[kind]
            pair["waiting"], pair["begun"] = len(project.waiting[kind]), len(project.begun[kind])
            pair["jobs"] = pair["waiting"] + pair["begun"]
            pair["can_supply"], pair["most_used"] = project.can_supply[kind], project.most_used[kind]

    def _load_kind(self, kind: int) -> None:
        client, row = self._client, self.table.kinds[kind]
        row["active"], row["present"] = client.kind_active[kind], client.present[kind]
        row["supplied"] = any(project.can_supply[kind] for project in client.projects)
        row["first_lane"], row["lanes"] = client.lanes[kind].first, client.lanes[kind].count
        row["instances"], row["counted_flops"] = client.instances[kind], client.instance_flops[kind]
        row["up_fraction"] = client.up_fraction[kind]
        for name in KIND_FIELDS:
            row[name] = getattr(client, name)[kind]

    def _load_run(self) -> None:
        client, contact, run = self._client, self._contact, self.table.run[0]
        for name in CLIENT_FIELDS:
            run[name] = getattr(client, name)
        run["records"] = client.recorder is not None
        run["next_id"] = client.server.next_id
        run["free_secs"], run["report_at_secs"] = contact.free_secs, contact.report_at_secs
        if contact.asked is None:
            run["awaited"] = -1
        run["answered"], run["sent"], run["report_delay_secs"] = contact.rpcs, contact.sent, contact.report_delay_secs

    # Back to the objects.

    def store(self) -> None:
        """Updates the objects to the state of the table."""
        self.flush()
        client, contact, run = self._client, self._contact, self.table.run[0]
        for name in ("version", "arrivals", "moves"):
            setattr(client, name, int(run[name]))
        for name in ("cpu_rate", "safe_until_secs", "now"):
            setattr(client, name, float(run[name]))
        client.uneven = bool(run["uneven"])
        client.slice_steps = int(run["steps"])
        client.server.next_id = int(run["next_id"])
        contact.free_secs, contact.report_at_secs = float(run["free_secs"]), float(run["report_at_secs"])
        contact.rpcs, contact.sent = int(run["answered"]), int(run["sent"])
        awaited = int(run["awaited"])
        contact.asked = None if awaited < 0 else (client.all_projects[awaited], self._awaited_request())
        if not self._uncompiled:
            for generator, words in zip(self._generators(), self.table.streams, strict=True):
                generator.setstate((3, tuple(int(word) for word in words), None))
        for project in client.all_projects:
            self._store_project(project)
        self._store_jobs()
        for kind, row in enumerate(self.table.kinds):
            for name in KIND_FIELDS:
                getattr(client, name)[kind] = float(row[name])
        self._policy.store(self.table)

    def _awaited_request(self) -> WorkRequest | None:
        """The request to the project whose reply is pending."""
        run, kinds = self.table.run[0], self.table.kinds
        if not run["was_asked"]:
            return None
        secs, instances, delays = (kinds[name].tolist() for name in ("asked_secs", "asked_instances", "delay_secs"))
        return WorkRequest(self._client.all_projects[int(run["awaited"])], secs, instances, Reason.NONE, delays)

    def _store_project(self, project: ProjectState) -> None:
        t, index = self.table, project.index
        row = t.projects[index]
        for name in PROJECT_FIELDS:
            setattr(project, name, plain(row[name]))
        for kind in range(len(self._client.kinds)):
            for name in PAIR_FIELDS:
                getattr(project, name)[kind] = float(t.pairs[index, kind][name])
        server = project.server
        server.up, server.until_secs = bool(row["server_up"]), float(row["server_until_secs"])
        server.trace_place, server.trace_begin_secs = int(row["trace_place"]), float(row["trace_begin_secs"])
        project.ready = []
        project.waiting = [deque() for _ in self._client.kinds]
        project.begun = [[] for _ in self._client.kinds]

    def _store_jobs(self) -> None:
        client, t = self._client, self.table
        run = t.run[0]
        jobs = {j: self._job(t.jobs[j]) for j in range(run["jobs"]) if not t.jobs[j]["gone"]}
        for job in jobs.values():
            if not job.started and not job.done:
                job.project.waiting[job.kind].append(job)
        for j in column(t.lists, "begun", run["begun"]):
            jobs[j].project.begun[jobs[j].kind].append(jobs[j])
        for j in column(t.lists, "ready", run["ready"]):
            jobs[j].project.ready.append(jobs[j])
        client.running = [jobs[j] for j in column(t.lists, "running", run["running"])]
        self._store_lanes({j: jobs[j] for j in column(t.lists, "running", run["running"])})

    def _job(self, row: Any) -> Job:
        job = Job.__new__(Job)
        for name in JOB_FIELDS:
            setattr(job, name, bool(row[name]) if name in JOB_FLAGS else plain(row[name]))
        job.project, job.app = self._client.all_projects[row["project"]], self._apps[row["app"]]
        job.lanes = ()
        return job

    def _store_lanes(self, running: dict[int, Job]) -> None:
        client, t = self._client, self.table
        owners = column(t.lists, "lane_owner", self._lanes)
        for j, job in running.items():
            row = t.jobs[j]
            if client.recorder is None or row["lane"] == -1:
                job.lanes = NO_LANES
                continue
            lanes = [int(lane) for lane in np.flatnonzero(owners == job.id + 1)]
            job.lanes = (*lanes, int(row["part_lane"])) if row["part_lane"] >= 0 else tuple(lanes)
        for lanes_of in client.lanes:
            own = range(lanes_of.first, lanes_of.first + lanes_of.count)
            lanes_of.restore(
                [lane for lane in own if not owners[lane]],
                {lane: float(t.lists[lane]["lane_load"]) for lane in own if owners[lane] == -1},
            )

    def flush(self) -> None:
        """Moves the rows of the log and of the timeline out of the table."""
        t, run, client = self.table, self.table.run[0], self._client
        client.log.add_rows(t.records[DECISIONS, : run["decisions"], :7], int(run["dropped"]))
        run["decisions"] = run["dropped"] = 0
        if client.recorder is not None:
            client.recorder.add_rows(
                t.records[BLOCKS, : run["blocks"]],
                t.records[RPCS, : run["rpcs"], :6],
                t.records[MISSES, : run["misses"], :4],
            )
            run["blocks"] = run["rpcs"] = run["misses"] = 0

    def advance(self) -> Pause:
        """Runs the loop until there is something to do here."""
        return Pause(advance(self.table))

    def load_state(self, reachable: bool, stop_reasons: list[Reason]) -> None:
        """Sets what the computer can do from now on."""
        run, client = self.table.run[0], self._client
        run["reachable"], run["ram_bytes"] = reachable, client.ram_bytes
        for kind, row in enumerate(self.table.kinds):
            row["active"], row["stop_reason"] = client.kind_active[kind], stop_reasons[kind]

    def buffered(self, now: float) -> list[float]:
        """Per kind, the estimated instance-seconds of all unfinished jobs; and updates the policy."""
        self._policy.store(self.table)
        return [float(secs) for secs in buffered_secs(self.table, now)]

    def make_room(self) -> None:
        """Gives all arrays room for the next steps."""
        self.flush()
        t = self.table
        step = int(step_rows(t))
        self._make_room_for(int(t.run[0]["jobs"]))
        t = self.table
        if t.records.shape[1] < 2 * step:
            records = np.zeros((RECORDS, 4 * step, RECORD_COLUMNS))
            records[:, : t.records.shape[1]] = t.records
            t = t._replace(records=records)
        self.table = t

    def _make_room_for(self, jobs: int) -> None:
        t = self.table
        if len(t.jobs) < jobs + MAX_JOBS_PER_RPC + ROWS // 2:
            size = jobs + MAX_JOBS_PER_RPC + ROWS + self._lanes
            self.table = t._replace(
                jobs=_larger(t.jobs, size),
                lists=_larger(t.lists, size),
            )


def _larger(array: Any, size: int) -> Any:
    if isinstance(array, Rows):
        return array.larger(size)
    made = np.zeros((size, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


def _streams(generators: list[random.Random]) -> Any:
    return np.array([generator.getstate()[1] for generator in generators], dtype=np.uint32)
