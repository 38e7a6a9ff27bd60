"""The statements of a scheduler RPC, which `store`, `writes` and `queue` send.

Locks are taken in this order, by every part of the project server: computer, workunits by id, results, (host, version)
records, sums of credit. States are literals here: the conditions of partial indexes need them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from credit.engine.states import AssimilateState, Outcome, ServerState, ValidateState
from credit.models.work import MAX_RESULTS_PER_WORKUNIT
from portal.clients.database.sql_files import statement
from portal.clients.effects import Statement
from portal.computers.host_columns import HOST_COLUMNS
from scheduler.ready_jobs.sql import PLACE, RANK

WINDOW: Final = 200
"""Waiting jobs of an app that are looked at, at the head of the queue and, if that is not enough, from a random place.
A request that nothing suits must not read the whole queue."""

LOCK: Final = Statement("SELECT id FROM portal_host WHERE id = %(host_id)s::bigint FOR NO KEY UPDATE")
READ: Final = statement(__file__, "read", IN_PROGRESS=ServerState.IN_PROGRESS, NOT_ASSIMILATED=AssimilateState.INIT)

LOCK_WORKUNITS: Final = Statement("""
SELECT id FROM credit_workunit WHERE id = ANY (%(workunits)s::bigint[]) ORDER BY id FOR NO KEY UPDATE
""")
"""Before a report claims results that a restored database has forgotten, so that it sees what others have just got."""
REPORT: Final = statement(
    __file__,
    "report",
    IN_PROGRESS=ServerState.IN_PROGRESS,
    OVER=ServerState.OVER,
    NO_REPLY=Outcome.NO_REPLY,
    CLIENT_DETACHED=Outcome.CLIENT_DETACHED,
    INIT=ValidateState.INIT,
)


def _picked(begin: str, more: str = "", avoids: str = "a.avoids_ties") -> str:
    """Jobs of an app from a place in its queue on. Locks results and their workunits, SKIP LOCKED.

    Of the copies of a workunit from the beginning on, only the first is looked at, as one person gets one. Who has
    which copies is asked for as an array, so that a workunit's results are looked at and never all of a person's,
    whatever the statistics say.
    """
    return f"""
         SELECT r.id, w.id AS workunit_id, r.name, w.name AS workunit_name, w.fpops_est, w.fpops_bound,
                w.memory_bound_bytes, w.disk_bound_bytes, w.delay_bound_secs, w.min_quorum, w.command_line,
                w.input_files, w.output_files
           FROM (SELECT id, {RANK} AS rank, {PLACE} AS place FROM credit_result
                  WHERE app_id = a.app_id AND server_state = {ServerState.UNSENT}
                    AND (app_id, {RANK}, {PLACE}) >= (a.app_id, {begin})
                  ORDER BY {RANK}, {PLACE} LIMIT {WINDOW}) c
           JOIN credit_result r ON r.id = ANY (ARRAY[c.id]) AND r.server_state = {ServerState.UNSENT}
           JOIN credit_workunit w ON w.id = ANY (ARRAY[r.workunit_id])
          WHERE w.memory_bound_bytes <= a.memory_bytes AND w.disk_bound_bytes <= a.disk_bytes
            AND w.fpops_est <= a.flops * (w.delay_bound_secs - a.delay_secs){more}
            AND %(user_id)s::bigint <> ALL (ARRAY(
                SELECT CASE WHEN o.server_state = {ServerState.UNSENT}
                             AND (o.priority * -1, o.id + o.queue_shift, o.id) < (c.rank, c.place, c.id)
                             AND (o.priority * -1, o.id + o.queue_shift) >= ({begin})
                            THEN %(user_id)s::bigint
                            WHEN ({avoids}) AND (o.ties && a.ties OR o.user_id = ANY (a.ties))
                            THEN %(user_id)s::bigint
                            WHEN a.one_per_user THEN coalesce(o.user_id, 0) ELSE 0 END
                  FROM credit_result o WHERE o.workunit_id = w.id))
          ORDER BY c.rank, c.place LIMIT a.most
            FOR NO KEY UPDATE OF r, w SKIP LOCKED
"""


_JOB: Final = """json_build_object('id', p.id, 'workunit_id', p.workunit_id, 'app_id', a.app_id, 'name', p.name,
       'fpops_est', p.fpops_est, 'fpops_bound', p.fpops_bound, 'memory_bytes', p.memory_bound_bytes,
       'disk_bytes', p.disk_bound_bytes, 'delay_bound_secs', p.delay_bound_secs, 'min_quorum', p.min_quorum,
       'details', json_build_object('workunit_name', p.workunit_name, 'command_line', p.command_line,
       'input_files', p.input_files, 'output_files', p.output_files))"""
JOB_QUERY: Final = {
    "app_id": "bigint",
    "most": "integer",
    "flops": "float8",
    "delay_secs": "float8",
    "memory_bytes": "float8",
    "disk_bytes": "float8",
    "one_per_user": "boolean",
    "rank": "integer",
    "begin": "bigint",
    "ties": "bigint[]",
    "avoids_ties": "boolean",
}


@cache
def pick(nqueries: int) -> Statement:
    """Look at the heads of this many apps' queues. Parameters: user_id, and ``JOB_QUERY``'s with _<number of the app>.

    With one app the planner makes constants of them: a fifth less work than with a list of any length.
    """
    rows = ", ".join(
        "(" + ", ".join(f"%({name}_{number})s::{type_}" for name, type_ in JOB_QUERY.items()) + ")"
        for number in range(nqueries)
    )
    return Statement(f"""
SELECT json_agg(json_build_object('job', {_JOB}, 'rank', f.rank, 'place', f.place))::text
  FROM (VALUES {rows}) AS a({", ".join(JOB_QUERY)})
 CROSS JOIN LATERAL (
       SELECT {RANK} AS rank, {PLACE} AS place FROM credit_result
        WHERE app_id = a.app_id AND server_state = {ServerState.UNSENT}
          AND (app_id, {RANK}, {PLACE}) >= (a.app_id, a.rank, a.begin)
        ORDER BY {RANK}, {PLACE} LIMIT 1) f
 CROSS JOIN LATERAL ({_picked("f.rank, f.place")}) p
""")


RESERVE: Final = statement(__file__, "reserve", UNSENT=ServerState.UNSENT)
RESERVE_JOBS: Final = statement(__file__, "reserve_jobs", UNSENT=ServerState.UNSENT)

_DIAGNOSIS: Final = f"""
SELECT json_build_object('njobs', count(*),
       'memory_nbytes', min(w.memory_bound_bytes - a.memory_bytes) FILTER (WHERE w.memory_bound_bytes > a.memory_bytes),
       'disk_nbytes', min(w.disk_bound_bytes - a.disk_bytes) FILTER (WHERE w.disk_bound_bytes > a.disk_bytes),
       'deadline', count(*) FILTER (WHERE w.fpops_est > a.flops * (w.delay_bound_secs - a.delay_secs)))
  FROM jsonb_to_recordset(%(apps)s::jsonb) AS a(app_id bigint, flops float8, delay_secs float8, memory_bytes float8,
       disk_bytes float8)
 CROSS JOIN LATERAL (SELECT workunit_id FROM credit_result
                      WHERE app_id = a.app_id AND server_state = {ServerState.UNSENT}
                      ORDER BY {RANK}, {PLACE} LIMIT {WINDOW}) c
  JOIN credit_workunit w ON w.id = c.workunit_id
"""
DIAGNOSE: Final = Statement(f"SELECT ({_DIAGNOSIS})::text")
_NOT_FOUND: Final = " AND r.id <> ALL (%(found)s::bigint[])"
# Where nothing else suits: not before the holder has had the copy for as long as the delay bound, if it is strict.
_AVOIDS: Final = """a.avoids_ties
                                  OR a.is_strict
                                     AND o.sent_at > %(now)s::timestamptz - make_interval(secs => w.delay_bound_secs)"""
PICK_ELSEWHERE: Final = Statement(f"""
SELECT json_build_object('jobs', (SELECT json_agg({_JOB})
          FROM jsonb_to_recordset(%(short)s::jsonb) AS a(app_id bigint, most integer, flops float8, delay_secs float8,
               memory_bytes float8, disk_bytes float8, one_per_user boolean, rank integer, begin bigint,
               ties bigint[], avoids_ties boolean, is_strict boolean)
         CROSS JOIN LATERAL ({_picked("a.rank, a.begin", _NOT_FOUND, _AVOIDS)}) p),
       'waiting', ({_DIAGNOSIS}))::text
""")
"""If the heads have too few: at a random place, with possible reasons for the client if it finds nothing."""

_DESCRIBED: Final = f""",
         ({", ".join(HOST_COLUMNS)}) =
         (SELECT {", ".join(f"d.{column}" for column in HOST_COLUMNS)}
            FROM jsonb_populate_record(h, n.description) d)"""
_RECORD: Final = {
    "rpc_seqno": "bigint",
    "cpids": "text[]",
    "named_jobs_until": "timestamptz",
    "repeated_seqno": "bigint",
    "repeated_times": "smallint",
    "work_asked_at": "timestamptz",
    "last_rpc_at": "timestamptz",
    "on_frac": "float8",
    "active_frac": "float8",
    "gpu_active_frac": "float8",
    "connected_frac": "float8",
    "cpu_and_network_available_frac": "float8",
    "duration_correction_factor": "float8",
    "statistics": "jsonb",
    "hardware_digest": "bytea",
    "last_messages": "jsonb",
    "jobs_day": "date",
    "jobs_of_day": "jsonb",
}
_COLUMNS: Final = {
    "sent": (
        "id bigint, host_id bigint, user_id bigint, app_version_id bigint, processor_type text, peak_flops "
        "float8, p_fpops float8, projected_flops float8, ninstances float8, sent_at timestamptz, deadline_at "
        "timestamptz, one_per_user boolean, must_replicate boolean, "
        "ties bigint[], is_strict boolean"
    ),
    "begun": "id bigint, host_id bigint, host_scale_at timestamptz, max_jobs_per_day integer",
    "judged": (
        "id bigint, host_id bigint, scale_probation boolean, host_scale_at timestamptz, error_rate float8, "
        "consecutive_valid integer, max_jobs_per_day integer, failing_share float8"
    ),
    "added": (
        "host_id bigint, app_id bigint, app_version_id bigint, processor_type text, inherits bigint, "
        "scale_probation boolean, host_scale_at timestamptz, error_rate float8, consecutive_valid integer, "
        "max_jobs_per_day integer, failing_share float8"
    ),
    "weighed": (
        "host_id bigint, user_id bigint, result_id bigint, variety text, text text, digest text, written_at "
        "timestamptz, received_at timestamptz, number integer, most_nbytes bigint"
    ),
    "described_host": "host_id bigint, now timestamptz, description jsonb",
    "host": "host_id bigint, now timestamptz",
    "first_record": f"host_id bigint, {', '.join(f'{name} {type_}' for name, type_ in _RECORD.items())}",
    "record": f"host_id bigint, {', '.join(f'{name} {type_}' for name, type_ in _RECORD.items())}",
}
"""The columns of each part."""


def _rows(part: str) -> str:
    """The rows that a part is given; "+ 0": as in read.sql. Not jsonb, which makes numerics of all numbers first."""
    rows = f"json_to_recordset(%({part})s::json) AS n({_COLUMNS[part]})"
    return f"(SELECT * FROM {rows} WHERE n.host_id = n.host_id + 0) n"


def _host(part: str, described: str = "") -> str:
    return f"""
  UPDATE portal_host h SET last_contact_at = n.now, retired_at = NULL{described}
    FROM {_rows(part)}
   WHERE h.id = ANY (ARRAY[n.host_id])
  RETURNING h.id AS host_id"""


_PARTS: Final = {
    "sent": f"""
  UPDATE credit_result r
     SET server_state = {ServerState.IN_PROGRESS}, host_id = n.host_id, user_id = n.user_id,
         app_version_id = n.app_version_id, processor_type = n.processor_type, peak_flops = n.peak_flops,
         p_fpops = n.p_fpops, projected_flops = n.projected_flops, ninstances = n.ninstances, sent_at = n.sent_at,
         deadline_at = n.deadline_at, ties = n.ties
    FROM {_rows("sent")}
   WHERE r.id = ANY (ARRAY[n.id]) AND r.server_state = {ServerState.UNSENT}
     -- Between the picking's snapshot and its lock another computer of this person may have got a copy.
     AND NOT (n.one_per_user AND n.user_id = ANY (ARRAY(
              SELECT coalesce(o.user_id, 0) FROM credit_result o WHERE o.workunit_id = r.workunit_id)))
     -- Or somebody with a tie to this one.
     AND NOT (n.is_strict AND EXISTS (
              SELECT FROM credit_result o JOIN credit_workunit w ON w.id = o.workunit_id
               WHERE o.workunit_id = r.workunit_id AND (o.ties && n.ties OR o.user_id = n.user_id)
                 AND o.sent_at > n.sent_at - make_interval(secs => w.delay_bound_secs)))
  RETURNING r.id, r.name, r.host_id, r.workunit_id, r.sent_at, n.must_replicate""",
    "replicated": f"""
  UPDATE credit_workunit w
     SET transition_at = sent.sent_at, min_quorum = greatest(w.min_quorum, 2),
         target_nresults = greatest(w.target_nresults, 2), max_success_results = greatest(w.max_success_results, 2),
         max_total_results = greatest(w.max_total_results, least({MAX_RESULTS_PER_WORKUNIT}, 1 + (
           SELECT count(*) FROM credit_result o WHERE o.workunit_id = w.id)))
    FROM sent WHERE w.id = ANY (ARRAY[sent.workunit_id]) AND sent.must_replicate""",
    # The first job of a spell of probation was sent, unless the spell has ended since the record was read; or there was
    # no quota yet.
    "begun": f"""
  UPDATE credit_hostappversion v
     SET host_scale_at = CASE WHEN v.scale_probation THEN coalesce(v.host_scale_at, n.host_scale_at)
                              ELSE v.host_scale_at END,
         max_jobs_per_day = CASE v.max_jobs_per_day WHEN 0 THEN n.max_jobs_per_day ELSE v.max_jobs_per_day END
    FROM {_rows("begun")}
   WHERE v.id = ANY (ARRAY[n.id]) AND v.host_id = n.host_id""",
    # Reports came, and the records were locked with them.
    "judged": f"""
  UPDATE credit_hostappversion v
     SET scale_probation = n.scale_probation, host_scale_at = n.host_scale_at, error_rate = n.error_rate,
         consecutive_valid = n.consecutive_valid, max_jobs_per_day = n.max_jobs_per_day,
         failing_share = n.failing_share
    FROM {_rows("judged")}
   WHERE v.id = ANY (ARRAY[n.id]) AND v.host_id = n.host_id""",
    "added": f"""
  INSERT INTO credit_hostappversion (host_id, app_id, app_version_id, processor_type, scale_probation, host_scale_at,
         error_rate, consecutive_valid, max_jobs_per_day, pfc_n, pfc_avg, et_n, et_avg, et_var, et_q,
         turnaround_n, turnaround_avg, turnaround_var, turnaround_q, clean_pfc_n, clean_pfc_avg,
         recent_pfc_n, recent_pfc_avg, waiting_pfc_n, waiting_pfc_avg, samples_at, failing_share, peak_flops,
         lead_jobs)
  SELECT n.host_id, n.app_id, n.app_version_id, n.processor_type, n.scale_probation, n.host_scale_at,
         n.error_rate, n.consecutive_valid, n.max_jobs_per_day, coalesce(o.pfc_n, 0), o.pfc_avg, coalesce(o.et_n, 0),
         o.et_avg, o.et_var, coalesce(o.et_q, 0), coalesce(o.turnaround_n, 0), o.turnaround_avg, o.turnaround_var,
         coalesce(o.turnaround_q, 0), coalesce(o.clean_pfc_n, 0), o.clean_pfc_avg,
         coalesce(o.recent_pfc_n, 0), o.recent_pfc_avg, coalesce(o.waiting_pfc_n, 0), o.waiting_pfc_avg, o.samples_at,
         greatest(n.failing_share, o.failing_share), o.peak_flops, coalesce(o.lead_jobs, 0)
    FROM {_rows("added")}
    LEFT JOIN credit_hostappversion o ON o.host_id = ANY (ARRAY[n.host_id]) AND o.app_version_id = n.inherits
  ON CONFLICT DO NOTHING""",
    # New messages, and whether those before them fill what a job may send in a day: one is always taken. What is
    # over is dropped.
    "weighed": f"""
  SELECT n.*, n.most_nbytes <= coalesce((
           SELECT sum(octet_length(t.text) + 100) FROM scheduler_trickle t
            WHERE t.result_id = n.result_id AND t.received_at > n.received_at - interval '24 hours'), 0) + coalesce(
           sum(octet_length(n.text) + 100) OVER (
             PARTITION BY n.result_id ORDER BY n.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
         AS is_dropped
    FROM {_rows("weighed")}
   WHERE NOT EXISTS (
         SELECT FROM scheduler_trickle t WHERE t.host_id = n.host_id AND t.digest = decode(n.digest, 'hex'))""",
    "trickles": """
  INSERT INTO scheduler_trickle (host_id, user_id, result_id, variety, text, digest, written_at, received_at)
  SELECT n.host_id, n.user_id, n.result_id, n.variety, n.text, decode(n.digest, 'hex'), n.written_at, n.received_at
    FROM weighed n WHERE NOT n.is_dropped
  ON CONFLICT DO NOTHING""",
    "first_record": f"""
  INSERT INTO scheduler_hostrecord (host_id, {", ".join(_RECORD)})
  SELECT n.host_id, {", ".join(f"n.{name}" for name in _RECORD)}
    FROM {_rows("first_record")}
  ON CONFLICT (host_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _RECORD)}""",
    "record": f"""
  UPDATE scheduler_hostrecord s SET {", ".join(f"{name} = n.{name}" for name in _RECORD)}
    FROM {_rows("record")}
   WHERE s.host_id = ANY (ARRAY[n.host_id])""",
    "described_host": _host("described_host", _DESCRIBED),
    "host": _host("host"),
}


@cache
def write(*parts: str) -> Statement:
    """Write these of the ``_PARTS``, each from a list of rows: one with nothing to do costs as much as one that has.

    For computers and jobs that are locked. The result: JSON of `scheduler.rpc.rows.WrittenRow` for each computer.
    """
    named = ",\n".join(f"{part} AS ({_PARTS[part]})" for part in parts)
    touched = "described_host" if "described_host" in parts else "host"
    sent = "(SELECT json_object_agg(id, name) FROM sent WHERE sent.host_id = c.host_id)" if "sent" in parts else "NULL"
    dropped = "EXISTS (SELECT FROM weighed WHERE is_dropped AND host_id = c.host_id)" if "weighed" in parts else "false"
    row = f"json_build_object('host_id', c.host_id, 'sent', {sent}, 'has_dropped_trickles', {dropped})"
    return Statement(f"WITH {named}\nSELECT {row}::text FROM {touched} c")


_MOVED: Final = f"""
r.name = ANY (%(names)s) AND r.host_id = %(original)s AND r.partial_credit = 0
   AND (r.server_state = {ServerState.IN_PROGRESS}
        OR (r.server_state = {ServerState.OVER} AND r.outcome IN ({Outcome.NO_REPLY}, {Outcome.CLIENT_DETACHED})))
"""
MOVE_REPORTED: Final = (
    "UPDATE portal_host SET last_contact_at = last_contact_at WHERE id = %(original)s",
    f"""SELECT FROM credit_workunit w
 WHERE w.id IN (SELECT r.workunit_id FROM credit_result r WHERE {_MOVED}) ORDER BY w.id FOR NO KEY UPDATE""",
    f"SELECT FROM credit_result r WHERE {_MOVED} ORDER BY r.id FOR NO KEY UPDATE",
    "SELECT FROM credit_hostappversion WHERE host_id = %(original)s ORDER BY id FOR NO KEY UPDATE",
    f"""
WITH moved AS (
  UPDATE credit_result r SET host_id = %(copy)s WHERE {_MOVED}
  RETURNING r.app_id, r.app_version_id, r.processor_type, r.workunit_id, r.server_state),
programs AS (
  SELECT m.app_id, m.app_version_id, m.processor_type, max(w.delay_bound_secs) AS bound_secs,
         count(*) FILTER (WHERE m.server_state = {ServerState.IN_PROGRESS}) AS n
    FROM moved m JOIN credit_workunit w ON w.id = m.workunit_id GROUP BY 1, 2, 3)
UPDATE credit_hostappversion v
   SET scale_probation = true, consecutive_valid = 0,
       host_scale_at = greatest(v.host_scale_at, %(now)s + m.bound_secs * interval '1 second'),
       failing_share = 1 - (1 - v.failing_share) * power(1 - %(weight)s::float8, m.n)
  FROM programs m
 WHERE v.host_id = %(original)s AND v.app_id = m.app_id AND v.processor_type = m.processor_type
   AND v.app_version_id IS NOT DISTINCT FROM m.app_version_id""",
)
"""The jobs that a copy reports as done become the copy's. Locks the original's computer, which it also writes, so that
requests that have read its jobs are answered again; then the jobs' workunits by id, the jobs, and the original's (host,
version) records by id. These are no longer trusted, or a trusted computer could hand in made-up outputs as a copy. For
their failing share each job counts as lost, but for those that counted when they timed out or were given up."""


KEEP_PREFERENCES: Final = """
INSERT INTO scheduler_userpreferences AS p (user_id, mod_time, text)
SELECT id, %(mod_time)s, %(text)s FROM portal_user WHERE id = %(user_id)s
    ON CONFLICT (user_id) DO UPDATE SET mod_time = excluded.mod_time, text = excluded.text
 WHERE p.mod_time < excluded.mod_time
"""
"""Locks the row of the volunteer's preferences, and keeps the newer ones."""
