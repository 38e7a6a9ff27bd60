"""Read jobs from the queue in advance, for this process alone to send (`scheduler.ready_jobs.job_cache`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from portal.clients.wants import Statement, Step, Steps, fetch
from scheduler.engine.facts import Job
from scheduler.rpc.sql import RANK
from scheduler.rpc.store import Ask, JobDetails

BLOCK: Final = 16
"""Workunits of consecutive numbers that are rented together."""
LAY_OUT: Final = Statement(
    f"""
WITH head AS MATERIALIZED (
  SELECT id, {RANK} AS rank, name, workunit_id, workunit_id / {BLOCK} AS block FROM credit_result
   WHERE app_id = %(app_id)s::bigint AND server_state = 2
     AND (app_id, {RANK}, id) >= (%(app_id)s::bigint, %(rank)s::integer, %(begin_id)s::bigint)
   ORDER BY {RANK}, id LIMIT %(looked_at)s::integer),
free AS MATERIALIZED (
  SELECT * FROM head
   WHERE block NOT IN (SELECT s.block FROM scheduler_shelfblock s
                        WHERE s.app_id = %(app_id)s::bigint AND s.renter <> %(renter)s::bigint AND NOT {{is_over}})
   ORDER BY rank, id LIMIT %(most)s::integer),
rented AS (
  INSERT INTO scheduler_shelfblock AS s (app_id, block, renter, until)
  SELECT DISTINCT %(app_id)s::bigint, block, %(renter)s::bigint, now() + make_interval(secs => %(rent_secs)s::float8)
    FROM free ORDER BY block
      ON CONFLICT (app_id, block) DO UPDATE SET renter = excluded.renter, until = excluded.until
         WHERE s.renter = excluded.renter OR {{is_over}}
  RETURNING block),
forgotten AS (
  DELETE FROM scheduler_shelfblock WHERE id IN (
    SELECT id FROM scheduler_shelfblock
     WHERE app_id = %(app_id)s::bigint AND until < now() - interval '1 minute'
       AND block NOT IN (SELECT block FROM free) FOR UPDATE SKIP LOCKED)),
laid_out AS (
  SELECT workunit_id, json_agg(json_build_array(id, rank, name)) AS copies
    FROM free WHERE block IN (SELECT block FROM rented) GROUP BY workunit_id)
SELECT (SELECT count(*) FROM head), (SELECT max(ARRAY[rank, id]) FROM head),
       (SELECT count(*) FROM free), (SELECT max(ARRAY[rank, id]) FROM free),
       (SELECT json_agg(json_build_array(c.copies, ARRAY(
                 SELECT coalesce(o.user_id, 0) FROM credit_result o WHERE o.workunit_id = w.id), w.id, w.fpops_est,
                 w.fpops_bound, w.memory_bound_bytes, w.disk_bound_bytes, w.delay_bound_secs, w.min_quorum,
                 w.name, w.command_line, w.input_files, w.output_files))::text
          FROM laid_out c JOIN credit_workunit w ON w.id = ANY (ARRAY[c.workunit_id]))
""".replace("{is_over}", "s.until NOT BETWEEN now() AND now() + interval '1 minute'")
)
"""The first jobs of an app's queue in blocks of workunits that nobody else has rented.

A rent that ends in more than a minute was made while the database's clock was wrong.
"""


LOOKED_AT: Final = 1_000
"""Waiting jobs among which those to keep ready are chosen: more than one process keeps, as others rent some of them."""

Place = tuple[int, int]
"""A place in an app's queue: (-priority, id)."""


@dataclass(slots=True)
class JobAtHand:
    """A job that is kept ready. ``users``: who has a copy of its workunit, or is just given one."""

    job: Job
    rank: int
    users: set[int]

    @property
    def place(self) -> Place:
        return self.rank, self.job.id

    def suits(self, ask: Ask, user_id: int) -> bool:
        """The same conditions as of jobs that are looked for in the queue."""
        job = self.job
        return (
            job.memory_bytes <= ask.memory_bytes
            and job.disk_bytes <= ask.disk_bytes
            and job.fpops_est <= ask.flops * (job.delay_bound_secs - ask.delay_secs)
            and not (ask.one_per_user and user_id in self.users)
        )


class _LaidOut(NamedTuple):
    """``workunits`` as JSON's text; ends are [-priority, id]."""

    nlooked_at: int
    end: list[int] | None
    nfree: int
    last_free: list[int] | None
    workunits: str | None


def lay_out(
    app_id: int, renter: int, place: Place, most: int, rent_secs: float
) -> Steps[tuple[list[JobAtHand], Place | None, bool]]:
    """Rent the first jobs of an app's queue from this place on, at most so many.

    Also where to go on, None at its end, and whether that is in sight: fewer than `LOOKED_AT` wait from the place on.

    One statement and transaction: it locks blocks in their order, and waits for none to forget it.
    """
    values = {
        "app_id": str(app_id),
        "renter": str(renter),
        "rank": str(place[0]),
        "begin_id": str(place[1]),
        "most": str(most),
        "looked_at": str(LOOKED_AT),
        "rent_secs": str(rent_secs),
    }
    row = _LaidOut(*(yield from fetch(Step(LAY_OUT, values)))[0])
    jobs = [job for workunit in orjson.loads(row.workunits or "[]") for job in _jobs(app_id, workunit)]
    jobs.sort(key=lambda job: job.place)
    last = row.last_free if row.nfree == most else row.end if row.nlooked_at == LOOKED_AT else None
    return jobs, None if last is None else (last[0], last[1] + 1), row.nlooked_at < LOOKED_AT


def _jobs(app_id: int, workunit: list[Any]) -> Iterator[JobAtHand]:
    """The copies of a workunit."""
    copies, users, id_, *facts = workunit
    details = JobDetails(*facts[6:])
    for result_id, rank, name in copies:
        job = Job(*[result_id, id_, app_id, name, *facts[:6], details])
        yield JobAtHand(job, rank, set(users))
