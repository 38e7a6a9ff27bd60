"""Put simulated jobs and their reports into the database in bulk, on a clock that is passed in.

For demos, tests and benchmarks. It leaves the same data for the validator as the scheduler and the transitioner:
workunits, their reported results, and records of the computers that were sent jobs.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from django.contrib.auth.hashers import make_password
from django.db import connection, models, transaction
from psycopg.types.json import Jsonb

from credit.models import App, AppVersion, Outcome, Platform, Result, ServerState, Workunit
from credit.statistics.feeder import feed
from credit.validator.passes import run_pass
from extras.laboratory.trials import sql
from extras.laboratory.trials.population import (
    BOUND_FACTOR,
    KINDS,
    MAX_TURNAROUND_SECS,
    USUAL_FPOPS,
    Cheats,
    Computer,
    Job,
    Report,
    VersionKind,
    make_computer,
    make_job,
    make_report,
    pair,
)
from portal.models import Host, User

HOSTS_PER_USER: Final = 2
MAX_COMPUTERS: Final = 100_000
MAX_JOBS: Final = 1_000_000
DELAY_BOUND: Final = dt.timedelta(days=7)
MAX_RESULTS: Final = 20
"""After this many results, a workunit whose results disagree is given up."""


@dataclass(slots=True)
class SimulatedProject:
    """An app with its versions, and the computers that work for it. ``versions`` correspond to ``kinds``."""

    app: App
    kinds: Sequence[VersionKind]
    versions: list[AppVersion]
    computers: list[Computer]
    rng: Random
    nreplicas: int = 2
    usual_fpops: float = USUAL_FPOPS
    njobs: int = field(default=0)

    def report(self, njobs: int, begin: dt.datetime, end: dt.datetime) -> int:
        """Send and report this many jobs between two moments, ready to be validated; return the number of results."""
        if not 0 <= njobs <= MAX_JOBS:
            raise ValueError(f"njobs must be from 0 to {MAX_JOBS}, not {njobs}")
        jobs = [make_job(self.rng, self.computers, self.kinds, self.nreplicas, self.usual_fpops) for _ in range(njobs)]
        with transaction.atomic():
            return _insert(self, jobs, begin, end)

    def add_replicas(self, now: dt.datetime) -> int:
        """Add one more result for each workunit whose results disagree, as the transitioner would; return how many."""
        undecided = Workunit.objects.filter(
            app=self.app, canonical_result=None, need_validate=False, transition_at__lte=now, name__startswith="sim_"
        )
        workunits = list(undecided.annotate(nresults=models.Count("results")).filter(nresults__lt=MAX_RESULTS))
        ids = iter(_next_ids(Result, len(workunits)))
        rows = []
        for workunit in workunits:
            computer = self.rng.choice(self.computers)
            report = make_report(self.rng, computer, self.kinds, workunit.fpops_est, 1.0)
            rows.append(_result(self, workunit.pk, workunit.nresults, next(ids), report, now, now))
        with transaction.atomic():
            _copy(Result, rows)
            again = [workunit.pk for workunit in workunits]
            _create_host_records(again)
            Workunit.objects.filter(pk__in=again).update(need_validate=True, transition_at=None)
        return len(rows)


def release_versions(app: App, kinds: Sequence[VersionKind] = KINDS) -> list[AppVersion]:
    """Return a version of each kind, using existing ones."""
    return [
        AppVersion.objects.get_or_create(
            app=app,
            platform=Platform.objects.get_or_create(name=kind.platform)[0],
            plan_class=kind.plan_class,
            version_num=100,
            defaults={
                "processor_type": kind.processor_type,
                "avg_ncpus": kind.avg_ncpus,
                "gpu_usage": kind.gpu_usage,
            },
        )[0]
        for kind in kinds
    ]


def make_computers(
    rng: Random,
    number: int,
    *,
    hosts_per_user: int = HOSTS_PER_USER,
    anonymous_part: float = 0.0,
    cheats: Cheats | None = None,
) -> list[Computer]:
    """Create this many computers and their volunteers, who cannot log in."""
    if not 1 <= number <= MAX_COMPUTERS:
        raise ValueError(f"the number of computers must be from 1 to {MAX_COMPUTERS}, not {number}")
    marker = secrets.token_hex(4)
    nusers = -(-number // hosts_per_user)
    none_fits = make_password(None)
    users = User.objects.bulk_create(
        [
            User(email=f"simulated-{marker}-{n}@example.org", name=f"Volunteer {marker}-{n}", password=none_fits)
            for n in range(nusers)
        ]
    )
    made = [
        make_computer(rng, 0, users[n // hosts_per_user].pk, anonymous_part=anonymous_part, cheats=cheats or {})
        for n in range(number)
    ]
    hosts = Host.objects.bulk_create(
        [
            Host(
                owner_id=computer.user_id,
                domain_name=f"simulated-{n}",
                platform_name=computer.platform,
                ncpus=computer.ncpus,
                p_fpops=computer.p_fpops,
                coprocs=_coprocs(computer),
            )
            for n, computer in enumerate(made)
        ]
    )
    for computer, host in zip(made, hosts, strict=True):
        computer.host_id = host.pk
    pair(made)
    return made


def _coprocs(computer: Computer) -> list[dict[str, Any]]:
    if not computer.gpu_type:
        return []
    return [{"type": computer.gpu_type, "name": "simulated", "count": 1, "peak_flops": computer.gpu_flops}]


def _insert(project: SimulatedProject, jobs: Sequence[Job], begin: dt.datetime, end: dt.datetime) -> int:
    """Insert jobs reported one after the other, the replicas of each at the same time."""
    span = (end - begin) / max(1, len(jobs))
    timed = [(job, [begin + span * number] * len(job.reports)) for number, job in enumerate(jobs)]
    return insert_timed(project, timed, end)


def insert_timed(
    project: SimulatedProject, timed: Sequence[tuple[Job, Sequence[dt.datetime]]], end: dt.datetime
) -> int:
    """Insert jobs, with the moments at which their replicas were reported (or, if they are still out, were sent);
    return the number of results.
    """
    ids = _next_ids(Workunit, len(timed))
    result_ids = iter(_next_ids(Result, sum(len(job.reports) for job, _ in timed)))
    workunits: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for id_, (job, moments) in zip(ids, timed, strict=True):
        nvalidatable = sum(not (report.has_failed or report.is_out) for report in job.reports)
        workunits.append(
            {
                "id": id_,
                "app_id": project.app.pk,
                "name": f"sim_{id_}",
                "created_at": moments[0],
                "fpops_est": job.fpops_est,
                "fpops_bound": job.fpops_est * BOUND_FACTOR,
                "min_quorum": project.nreplicas,
                "target_nresults": project.nreplicas,
                "max_success_results": MAX_RESULTS,
                "max_total_results": MAX_RESULTS,
                "need_validate": nvalidatable >= project.nreplicas,
            }
        )
        for replica, (report, moment) in enumerate(zip(job.reports, moments, strict=True)):
            results.append(_result(project, id_, replica, next(result_ids), report, moment, end))
    _copy(Workunit, workunits)
    _copy(Result, results)
    _create_host_records(ids)
    project.njobs += len(timed)
    return len(results)


def _result(
    project: SimulatedProject,
    workunit_id: int,
    replica: int,
    id_: int,
    report: Report,
    received_at: dt.datetime,
    end: dt.datetime,
) -> dict[str, Any]:
    """Build a result, reported after its run time; one that claims to have run longer than that, at the end."""
    took = dt.timedelta(seconds=report.turnaround_secs)
    if report.elapsed_secs > MAX_TURNAROUND_SECS:
        took = max(end - received_at, dt.timedelta(minutes=1))
    sent_at = received_at if report.is_out else received_at - took
    row = {
        "id": id_,
        "workunit_id": workunit_id,
        "app_id": project.app.pk,
        "name": f"sim_{workunit_id}_{replica}",
        "created_at": sent_at,
        "user_id": report.computer.user_id,
        "host_id": report.computer.host_id,
        "app_version_id": None if report.kind_index is None else project.versions[report.kind_index].pk,
        "processor_type": report.kind.processor_type,
        "peak_flops": report.peak_flops,
        "sent_at": sent_at,
        "deadline_at": sent_at + DELAY_BOUND,
    }
    if report.is_out:
        is_late = sent_at + DELAY_BOUND < end
        state = (ServerState.OVER, Outcome.NO_REPLY) if is_late else (ServerState.IN_PROGRESS, Outcome.INIT)
        reported = dict.fromkeys(("received_at", "exit_status", "elapsed_secs", "cpu_secs", "output_digest"))
        return row | reported | dict(zip(("server_state", "outcome"), state, strict=True))
    right = f"output of {workunit_id}"
    output = right if report.is_right else f"{right}, made up by {report.computer.host_id}"
    return row | {
        "server_state": ServerState.OVER,
        "outcome": Outcome.CLIENT_ERROR if report.has_failed else Outcome.SUCCESS,
        "received_at": received_at,
        "exit_status": 1 if report.has_failed else 0,
        "elapsed_secs": report.elapsed_secs,
        "cpu_secs": report.cpu_secs,
        "output_digest": hashlib.md5(output.encode(), usedforsecurity=False).digest(),
    }


def _next_ids(model: type[models.Model], number: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [model._meta.db_table, number],
        )
        return [id_ for (id_,) in cursor.fetchall()]


def _copy(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """COPY rows; columns that they do not name get the model's defaults."""
    template = model()
    fields = model._meta.concrete_fields
    defaults = {f.column: _adapted(f, f.pre_save(template, True)) for f in fields if f.has_default() or not f.null}
    names = [str(f.column) for f in fields if f.column in defaults or any(f.column in row for row in rows[:1])]
    columns = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor, cursor.copy(f'COPY "{model._meta.db_table}" ({columns}) FROM STDIN') as copy:
        for row in rows:
            copy.write_row([row[name] if name in row else defaults[name] for name in names])


def _adapted(field_: models.Field[Any, Any], value: Any) -> Any:
    if isinstance(field_, models.JSONField):
        return Jsonb(value)
    return "" if value is models.NOT_PROVIDED or hasattr(value, "resolve_expression") else value


def _create_host_records(workunit_ids: list[int]) -> None:
    """Record what the scheduler and the transitioner would: that hosts were sent jobs, and which failed."""
    with connection.cursor() as cursor:
        cursor.execute(sql.INSERT_HOST_RECORDS, [workunit_ids])
        cursor.execute(sql.COUNT_FAILURES, [workunit_ids])


def run(
    project: SimulatedProject,
    njobs: int,
    begin: dt.datetime,
    end: dt.datetime,
    *,
    validates: bool = True,
    nsteps: int = 24,
) -> tuple[int, float]:
    """Run this many jobs between two moments, in steps: reported, validated, scales renewed. Return results and granted
    credit.
    """
    nresults = 0
    credit = 0.0
    for step in range(nsteps):
        at = [begin + (end - begin) * n / nsteps for n in (step, step + 1)]
        nresults += project.report(njobs * (step + 1) // nsteps - njobs * step // nsteps, *at)
        if validates:
            again, granted = validate_until_decided(project, at[1])
            nresults, credit = nresults + again, credit + granted
    return nresults, credit


def validate_until_decided(project: SimulatedProject, now: dt.datetime) -> tuple[int, float]:
    """Validate the reports, adding replicas where results disagree, and renew the scales. Return the number of further
    results, and the credit granted.
    """
    nresults, credit = 0, _validate(project.app, now)
    while again := project.add_replicas(now):
        nresults += again
        credit += _validate(project.app, now)
    feed(now, project.app)
    return nresults, credit


def _validate(app: App, now: dt.datetime) -> float:
    credit = 0.0
    while (report := run_pass(app.pk, now)).nworkunits:
        credit += report.credit
    return credit
