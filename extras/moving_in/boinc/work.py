"""Batches, workunits with their results, statistics of versions on computers, messages of tasks.

A workunit with open ends becomes a row as ours are, and so do its results: they go on here. One that is over goes into
the archive at once. Where a workunit is decides where its results go, also at a later import.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Any, Final

from credit.engine.explanation import GrantRule
from credit.engine.rules import LEAST_CREDIT, MAX_CREDIT
from credit.engine.states import AssimilateState, Outcome, ServerState, ValidateState, WorkunitError
from credit.models.work import MAX_FLOPS_COUNT, MAX_RESULTS_PER_WORKUNIT
from extras.moving_in.boinc import folders, programs
from extras.moving_in.boinc.values import line
from extras.moving_in.engine import jobs
from extras.moving_in.engine.blobs import fields
from extras.moving_in.engine.jobs import checked_name
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow, finite, whole
from extras.moving_in.machinery.steps import Context, RowStep, Translate, Translated
from extras.moving_in.source import Row, Table

_NEVER: Final = 2**31 - 1
_MOST_BYTES: Final = 2**62
_LONGEST_SECS: Final = 10 * 366 * 86_400
_NOT_MADE: Final = 1
_NO_CANONICAL: Final = 32
_PRIORITIES: Final = (-(2**15), 2**15 - 1)

_IS_OPEN: Final = """({w}.assimilate_state <> 2 OR EXISTS
 (SELECT 1 FROM result o WHERE o.workunitid = {w}.id AND o.server_state <> 5))"""
_CANONICAL: Final = """(SELECT c.{column} FROM result c
 WHERE c.workunitid = {w}.id AND c.outcome = 1 AND c.validate_state = 1
 ORDER BY c.id <> {w}.canonical_resultid, c.id LIMIT 1)"""
"""The canonical result, or of those that are valid another one, if that was purged."""


def _moment(value: Any) -> dt.datetime | None:
    secs = finite(value, 1, _NEVER - 1)
    return dt.datetime.fromtimestamp(secs, dt.UTC) if secs is not None else None


# --- Batches ------------------------------------------------------------------------------------------------------

_ABORTED, _RETIRED = 3, 4


def _batches(context: Context) -> Translate:
    def translate(row: Row, tally: Tally) -> Translated:
        created = _moment(row["create_time"]) or context.now
        ended = _moment(row["completion_time"]) or created
        return (
            row["id"],
            row["app_id"],
            row["user_id"],
            line(row, "name", tally, jobs.MAX_NAME_CHARS) or f"batch_{row['id']}",
            max(row["njobs"], 0),
            created,
            ended if row["state"] == _ABORTED else None,
            _moment(row["expire_time"]),
            ended if row["state"] == _RETIRED else None,
        )

    return translate


BATCHES: Final = RowStep(
    "batches",
    Table(
        "batch",
        {
            **{"user_id": 0, "app_id": 0, "name": b"", "njobs": 0, "state": 0, "create_time": 0},
            **{"completion_time": 0, "expire_time": 0},
        },
    ),
    {
        **{"id": "bigint", "app_id": "bigint", "owner_id": "bigint", "name": "text", "nworkunits": "bigint"},
        **{"created_at": "timestamptz", "cancelled_at": "timestamptz", "expires_at": "timestamptz"},
        "retired_at": "timestamptz",
    },
    _batches,
    [
        """
INSERT INTO credit_batch AS b (id, app_id, owner_id, name, request_id, nworkunits, created_at, cancelled_at, expires_at,
       retired_at)
SELECT m.id, m.app_id, u.id, m.name, '', m.nworkunits, m.created_at, m.cancelled_at, m.expires_at, m.retired_at
  FROM moving_rows m JOIN credit_app a ON a.id = m.app_id LEFT JOIN portal_user u ON u.id = m.owner_id
    ON CONFLICT (id) DO UPDATE
   SET nworkunits = excluded.nworkunits, cancelled_at = coalesce(b.cancelled_at, excluded.cancelled_at),
       expires_at = excluded.expires_at, retired_at = coalesce(b.retired_at, excluded.retired_at)
 WHERE (b.nworkunits, b.cancelled_at, b.expires_at, b.retired_at) IS DISTINCT FROM
       (excluded.nworkunits, coalesce(b.cancelled_at, excluded.cancelled_at), excluded.expires_at,
        coalesce(b.retired_at, excluded.retired_at))
"""
    ],
)

# --- Workunits ----------------------------------------------------------------------------------------------------

_WORKUNITS: Final = Table(
    "workunit",
    {
        **{"create_time": 0, "appid": 0, "name": b"", "batch": 0, "rsc_fpops_est": 0.0, "rsc_fpops_bound": 0.0},
        **{"rsc_memory_bound": 0.0, "rsc_disk_bound": 0.0, "need_validate": 0, "canonical_credit": 0.0},
        **{"transition_time": 0, "delay_bound": 0, "error_mask": 0, "file_delete_state": 0, "assimilate_state": 0},
        **{"min_quorum": 1, "target_nresults": 1, "max_error_results": 1, "max_total_results": 1},
        **{"max_success_results": 1, "result_template_file": b"", "priority": 0, "transitioner_flags": 0},
    },
    more={
        "is_open": _IS_OPEN.format(w="t"),
        "xml": f"CASE WHEN {_IS_OPEN.format(w='t')} THEN t.xml_doc END",
        "result_name": "(SELECT r.name FROM result r WHERE r.workunitid = t.id ORDER BY r.id LIMIT 1)",
        "result_xml": f"""CASE WHEN {_IS_OPEN.format(w="t")} THEN
 (SELECT r.xml_doc_in FROM result r WHERE r.workunitid = t.id ORDER BY r.id LIMIT 1) END""",
        "canonical_id": _CANONICAL.format(column="id", w="t"),
        "granted": _CANONICAL.format(column="granted_credit", w="t"),
        "is_unmade": "EXISTS (SELECT 1 FROM result r WHERE r.workunitid = t.id AND r.server_state = 1)",
        "changed_secs": "unix_timestamp(t.mod_time)",
    },
    changed_at="mod_time",
)
_WORKUNIT_COLUMNS: Final = {
    **{"id": "bigint", "is_open": "boolean", "app_id": "bigint", "batch_id": "bigint", "name": "text"},
    **{"created_at": "timestamptz", "priority": "smallint", "fpops_est": "float8", "fpops_bound": "float8"},
    **{"memory_bound_bytes": "bigint", "disk_bound_bytes": "bigint", "delay_bound_secs": "integer"},
    **{"min_quorum": "smallint", "target_nresults": "smallint", "max_error_results": "smallint"},
    **{"max_total_results": "smallint", "max_success_results": "smallint", "command_line": "text"},
    **{"input_files": "jsonb", "output_files": "jsonb", "need_validate": "boolean", "transition_at": "timestamptz"},
    **{"canonical_result_id": "bigint", "canonical_credit": "float8", "credit": "float8", "error_mask": "smallint"},
    **{"assimilate_state": "smallint", "file_delete_state": "smallint", "assimilated_at": "timestamptz"},
}
_CHANGING: Final = (
    *("priority", "min_quorum", "target_nresults", "max_error_results", "max_total_results", "max_success_results"),
    *("need_validate", "transition_at", "canonical_result_id", "canonical_credit", "error_mask", "assimilate_state"),
    *("file_delete_state", "assimilated_at"),
)


def granted(value: Any) -> float:
    """Credit as it may be granted here."""
    credit = finite(value, LEAST_CREDIT, MAX_CREDIT)
    return 0.0 if credit is None else credit


def _workunits(context: Context) -> Translate:
    apps = {row["id"] for row in context.source.rows(Table("app", {}), 0, None)}
    folder = folders.of(context)
    by_template: dict[str, list[dict[str, Any]]] = {}

    def outputs_of_template(name: str) -> list[dict[str, Any]]:
        if name not in by_template:
            text = folder.text(*(name if "/" in name else f"templates/{name}").split("/"))
            if text is None or ".." in name:
                raise BrokenRow("workunit: it has no result yet, and its output template is not there")
            by_template[name] = jobs.output_files(jobs.of_template(text))
        return by_template[name]

    def files(row: Row) -> tuple[str, list[dict[str, Any]], list[dict[str, Any]]]:
        if not row["is_open"]:
            return "", [], []
        read = jobs.job_input(_xml(row["xml"]), folder.config.download_url)
        if len(read.command_line) > 2000:
            raise BrokenRow("workunit: a command line of more than 2000 characters")
        if row["result_name"] is None:
            return read.command_line, list(read.files), outputs_of_template(_xml(row["result_template_file"]))
        outputs = jobs.outputs(_xml(row["result_xml"]), row["result_name"].decode("utf-8", "replace"))
        return read.command_line, list(read.files), jobs.output_files(outputs)

    def translate(row: Row, tally: Tally) -> Translated:
        name = checked_name(row["name"].decode("utf-8", "replace"), "workunit")
        if row["appid"] not in apps:
            raise BrokenRow("workunit: of an app that is gone")
        if row["transitioner_flags"]:
            raise BrokenRow("workunit: for certain computers or people (assignment), which has no place here")
        priority = min(max(row["priority"], _PRIORITIES[0]), _PRIORITIES[1])
        if priority != row["priority"]:
            tally.tell("priority beyond 16 bits, cut", f"{row['id']} {row['priority']}")
        command_line, inputs, outputs = files(row)
        fpops = finite(row["rsc_fpops_est"], 1, MAX_FLOPS_COUNT * 0.99)
        if fpops is None:
            raise BrokenRow("workunit: no estimate of its FLOPs")
        bound = max(finite(row["rsc_fpops_bound"], 1, MAX_FLOPS_COUNT * 0.99) or fpops, fpops)
        quorum, target, most = (
            min(max(row[column], 1), MAX_RESULTS_PER_WORKUNIT)
            for column in ("min_quorum", "target_nresults", "max_total_results")
        )
        target = max(quorum, target)
        error_mask, assimilated = _error_mask(row["error_mask"]), row["assimilate_state"]
        if assimilated not in list(AssimilateState):
            raise BrokenRow("workunit: a state of assimilation that there is none of")
        if assimilated and row["canonical_id"] is None and not error_mask:
            tally.tell("assimilated without a valid result: taken as one that failed", row["id"])
            error_mask = int(WorkunitError.TOO_MANY_TOTAL_RESULTS)
        has_canonical = row["canonical_id"] is not None
        changed_at = _moment(row["changed_secs"])
        return (
            row["id"],
            bool(row["is_open"]),
            row["appid"],
            row["batch"] or None,
            name,
            _moment(row["create_time"]) or context.now,
            priority,
            fpops,
            bound,
            int(finite(row["rsc_memory_bound"], 0, _MOST_BYTES) or 0),
            int(finite(row["rsc_disk_bound"], 0, _MOST_BYTES) or 0),
            min(whole(row["delay_bound"], 1, _NEVER) or 7 * 86_400, _LONGEST_SECS),
            quorum,
            target,
            min(max(row["max_error_results"], 1), MAX_RESULTS_PER_WORKUNIT),
            max(most, target),
            min(max(row["max_success_results"], quorum), MAX_RESULTS_PER_WORKUNIT),
            command_line,
            json.dumps(inputs),
            json.dumps(outputs),
            bool(row["need_validate"]),
            _moment(row["create_time"] if row["is_unmade"] else row["transition_time"]),
            row["canonical_id"],
            granted(row["granted"]) if has_canonical else None,
            granted(row["canonical_credit"]) or None if not has_canonical else None,
            error_mask,
            assimilated,
            min(max(row["file_delete_state"], 0), 3),
            changed_at if assimilated == AssimilateState.DONE else None,
        )

    return translate


def _xml(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")


def _error_mask(mask: int) -> int:
    known = mask & sum(WorkunitError)
    return known or (int(WorkunitError.TOO_MANY_TOTAL_RESULTS) if mask & _NO_CANONICAL else 0)


_ALL: Final = ", ".join(name for name in _WORKUNIT_COLUMNS if name not in ("is_open", "batch_id"))
WORKUNITS: Final = RowStep(
    "workunits",
    _WORKUNITS,
    _WORKUNIT_COLUMNS,
    _workunits,
    [
        f"""
  WITH rows AS MATERIALIZED (
SELECT m.*, EXISTS (SELECT FROM credit_workunit w WHERE w.id = m.id) AS is_here, b.id AS batch
  FROM moving_rows m LEFT JOIN credit_batch b ON b.id = m.batch_id),
       live AS (
INSERT INTO credit_workunit AS w ({_ALL}, batch_id)
SELECT {_ALL}, batch FROM rows WHERE is_open OR is_here
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _CHANGING)}
 WHERE w.name = excluded.name AND ({", ".join(f"w.{name}" for name in _CHANGING)}) IS DISTINCT FROM
       ({", ".join(f"excluded.{name}" for name in _CHANGING)})
RETURNING 1),
       finished AS (
INSERT INTO scheduler_archivedworkunit (id, app_id, batch_id, name, error_mask, facts, archived_at)
SELECT id, app_id, batch, name, error_mask,
       to_jsonb(rows) - '{{is_open,is_here,batch,input_files,output_files}}'::text[]
         || jsonb_build_object('batch_id', batch), coalesce(assimilated_at, %(now)s)
  FROM rows WHERE NOT (is_open OR is_here)
    ON CONFLICT (id) DO NOTHING RETURNING 1)
SELECT FROM live UNION ALL SELECT FROM finished
"""
    ],
)

# --- Results ------------------------------------------------------------------------------------------------------

_RESULTS: Final = Table(
    "result",
    {
        **{"create_time": 0, "workunitid": 0, "server_state": 0, "outcome": 0, "client_state": 0, "hostid": 0},
        **{"userid": 0, "report_deadline": 0, "sent_time": 0, "received_time": 0, "name": b"", "cpu_time": 0.0},
        **{"file_delete_state": 0, "validate_state": 0, "appid": 0, "exit_status": 0, "priority": 0},
        **{"elapsed_time": 0.0, "flops_estimate": 0.0, "app_version_id": 0, "runtime_outlier": 0},
        **{"peak_working_set_size": 0.0, "peak_swap_size": 0.0, "peak_disk_usage": 0.0},
    },
    more={
        "is_open": _IS_OPEN.format(w="w"),
        "workunit": "w.id",
        "app": "w.appid",
        "xml": f"CASE WHEN {_IS_OPEN.format(w='w')} THEN t.xml_doc_in END",
        "stderr": f"CASE WHEN {_IS_OPEN.format(w='w')} THEN t.stderr_out END",
        "granted": _CANONICAL.format(column="granted_credit", w="w"),
        "p_fpops": "h.p_fpops",
    },
    join="LEFT JOIN workunit w ON w.id = t.workunitid LEFT JOIN host h ON h.id = t.hostid",
    changed_at="mod_time",
)
_RESULT_COLUMNS: Final = {
    **{"id": "bigint", "workunit_id": "bigint", "app_id": "bigint", "name": "text", "priority": "smallint"},
    **{"created_at": "timestamptz", "server_state": "smallint", "outcome": "smallint", "validate_state": "smallint"},
    **{"file_delete_state": "smallint", "user_id": "bigint", "host_id": "bigint", "app_version_id": "bigint"},
    **{"processor_type": "text", "peak_flops": "float8", "p_fpops": "float8", "projected_flops": "float8"},
    **{"sent_at": "timestamptz", "deadline_at": "timestamptz", "received_at": "timestamptz"},
    **{"client_state": "smallint", "exit_status": "integer", "elapsed_secs": "float8", "cpu_secs": "float8"},
    **{"is_runtime_outlier": "boolean", "peak_working_set_bytes": "bigint", "peak_swap_bytes": "bigint"},
    **{"peak_disk_bytes": "bigint", "stderr_text": "text", "grant_rule": "smallint", "granted_credit": "float8"},
    **{"granted_at": "timestamptz", "former": "jsonb"},
}
_FACTS: Final = [name for name in _RESULT_COLUMNS if name not in ("former", "user_id", "host_id", "app_version_id")]
_LATER: Final = [name for name in _FACTS if name not in ("id", "workunit_id", "app_id", "name", "created_at")]
_ANONYMOUS: Final = {-1: "CPU", -2: "CPU", -3: "NVIDIA", -4: "ATI", -5: "intel_gpu", -6: "apple_gpu"}
_DELIVERING: Final = frozenset({Outcome.SUCCESS, Outcome.NO_REPLY, Outcome.CLIENT_DETACHED})


def _results(context: Context) -> Translate:
    uses = programs.version_uses(context)

    def translate(row: Row, tally: Tally) -> Translated:
        name = checked_name(row["name"].decode("utf-8", "replace"), "result", jobs.MAX_NAME_CHARS + 14)
        if row["workunit"] is None:
            raise BrokenRow("result: of a workunit that is gone")
        if row["server_state"] == _NOT_MADE:
            raise BrokenRow("result: not ready to be sent yet; the transitioner makes another one")
        state, outcome = _state(row, tally)
        is_unsent = state == ServerState.UNSENT
        sent_at = _moment(row["sent_time"])
        if not is_unsent and sent_at is None:
            sent_at = _moment(row["create_time"])
        received_at = _moment(row["received_time"])
        if outcome == Outcome.SUCCESS and received_at is None:
            received_at = sent_at
        validated = row["validate_state"] if outcome == Outcome.SUCCESS else ValidateState.INIT
        validated = validated if validated in list(ValidateState) else ValidateState.INIT
        is_valid = validated == ValidateState.VALID
        use = uses.get(row["app_version_id"])
        processor_type = use.processor_type.value if use else _ANONYMOUS.get(row["app_version_id"], "CPU")
        benchmark = finite(row["p_fpops"], 1, 1e18)
        projected = finite(row["flops_estimate"], 1, 1e18)
        ncpus = use.ncpus if use else 1.0
        peak = benchmark * ncpus if benchmark and processor_type == "CPU" else projected
        return (
            row["id"],
            row["workunitid"],
            row["app"],
            name,
            min(max(row["priority"], _PRIORITIES[0]), _PRIORITIES[1]),
            _moment(row["create_time"]) or context.now,
            state,
            outcome,
            validated,
            min(max(row["file_delete_state"], 0), 3),
            None if is_unsent else row["userid"] or None,
            None if is_unsent else row["hostid"] or None,
            row["app_version_id"] if row["app_version_id"] > 0 else None,
            processor_type,
            None if is_unsent else peak,
            None if is_unsent else benchmark,
            None if is_unsent else projected,
            None if is_unsent else sent_at,
            None if is_unsent else _moment(row["report_deadline"]) or sent_at,
            None if state == ServerState.IN_PROGRESS else received_at,
            row["client_state"] if received_at else None,
            whole(row["exit_status"], -(2**31), 2**31 - 1) if received_at else None,
            finite(row["elapsed_time"], 0, 1e11) if received_at else None,
            finite(row["cpu_time"], 0, 1e11) if received_at else None,
            bool(row["runtime_outlier"]),
            *(int(value) if (value := finite(row[column], 1, _MOST_BYTES)) else None for column in _PEAKS),
            _xml(row["stderr"]).replace("\0", "")[-65_536:],
            int(GrantRule.CARRIED_OVER) if is_valid else None,
            granted(row["granted"]) if is_valid else None,
            received_at if is_valid else None,
            json.dumps(_former(row, name, state, outcome)),
        )

    return translate


_PEAKS: Final = ("peak_working_set_size", "peak_swap_size", "peak_disk_usage")


def _state(row: Row, tally: Tally) -> tuple[int, int]:
    state, outcome = row["server_state"], row["outcome"]
    if state not in list(ServerState):
        raise BrokenRow("result: a server state that there is none of")
    if state != ServerState.OVER:
        return state, Outcome.INIT
    if outcome not in list(Outcome) or outcome == Outcome.INIT:
        tally.tell("over without an outcome: taken as not needed", row["id"])
        return state, Outcome.DIDNT_NEED
    return state, outcome


def _former(row: Row, name: str, state: int, outcome: int) -> list[dict[str, Any]]:
    """The files that its computer has delivered, or may yet deliver, as the server called and certified them."""
    if not row["is_open"] or not (state == ServerState.IN_PROGRESS or outcome in _DELIVERING):
        return []
    return [
        {"name": output.name, "number": output.number, "signed": output.is_signed}
        for output in jobs.outputs(_xml(row["xml"]), name)
    ]


_COLUMNS_HERE: Final = ", ".join(_FACTS)
RESULTS: Final = RowStep(
    "results",
    _RESULTS,
    _RESULT_COLUMNS,
    _results,
    [
        f"""
  WITH rows AS MATERIALIZED (
SELECT {", ".join(f"m.{name}" for name in _FACTS)}, u.id AS user_id, coalesce(h.merged_into_id, h.id) AS host_id,
       v.id AS app_version_id, w.id IS NOT NULL AS is_here
  FROM moving_rows m
  LEFT JOIN credit_workunit w ON w.id = m.workunit_id
  LEFT JOIN portal_user u ON u.id = m.user_id
  LEFT JOIN portal_host h ON h.id = m.host_id
  LEFT JOIN credit_appversion v ON v.id = m.app_version_id),
       live AS (
INSERT INTO credit_result AS r ({_COLUMNS_HERE}, user_id, host_id, app_version_id, report_faults, outputs,
       partial_elapsed_secs, partial_credit)
SELECT {_COLUMNS_HERE}, user_id, host_id, app_version_id, '[]', '[]', 0, 0 FROM rows WHERE is_here
    ON CONFLICT (id) DO UPDATE
   SET user_id = excluded.user_id, host_id = excluded.host_id, app_version_id = excluded.app_version_id,
       {", ".join(f"{name} = excluded.{name}" for name in _LATER)}
 WHERE r.name = excluded.name
   AND (r.user_id, r.host_id, r.app_version_id, {", ".join(f"r.{name}" for name in _LATER)}) IS DISTINCT FROM
       (excluded.user_id, excluded.host_id, excluded.app_version_id,
        {", ".join(f"excluded.{name}" for name in _LATER)})
RETURNING 1),
       finished AS (
INSERT INTO scheduler_archivedtask (id, workunit_id, user_id, host_id, app_version_id, facts)
SELECT rows.id, rows.workunit_id, user_id, host_id, app_version_id,
       to_jsonb(rows) - '{{is_here,user_id,host_id,app_version_id,stderr_text}}'::text[]
         || '{{"partial_credit": 0, "partial_elapsed_secs": 0}}'
  FROM rows JOIN scheduler_archivedworkunit a ON a.id = rows.workunit_id WHERE NOT is_here
    ON CONFLICT (id) DO NOTHING RETURNING 1)
SELECT FROM live UNION ALL SELECT FROM finished
""",
        """
INSERT INTO scheduler_formeroutput (name, result_id, number, key_id)
SELECT f.name, r.id, f.number, CASE WHEN f.signed THEN (SELECT max(id) FROM scheduler_formeruploadkey) END
  FROM moving_rows m JOIN credit_result r ON r.id = m.id
 CROSS JOIN LATERAL jsonb_to_recordset(m.former) AS f(name text, number smallint, signed boolean)
    ON CONFLICT DO NOTHING
""",
    ],
)

# --- Statistics of versions on computers --------------------------------------------------------------------------

_TRUSTED: Final = 10
_MILLION: Final = 1_000_000
_TYPES: Final = {2: "CPU", 3: "NVIDIA", 4: "ATI", 5: "intel_gpu", 6: "apple_gpu"}
_RECORD_COLUMNS: Final = {
    **{"host_id": "bigint", "app_id": "bigint", "app_version_id": "bigint", "processor_type": "text"},
    **{"pfc_n": "bigint", "pfc_avg": "float8", "clean_pfc_n": "bigint", "clean_pfc_avg": "float8"},
    **{"et_n": "bigint", "et_avg": "float8", "et_var": "float8", "et_q": "float8", "turnaround_n": "bigint"},
    **{"turnaround_avg": "float8", "turnaround_var": "float8", "turnaround_q": "float8"},
    **{"consecutive_valid": "integer", "scale_probation": "boolean", "max_jobs_per_day": "integer"},
}


def _average(row: Row, name: str, most: float) -> tuple[int, float | None]:
    """Samples and average: of none there is none."""
    n = int(finite(row[f"{name}_n"], 0, 2**62) or 0)
    average = finite(row[f"{name}_avg"], 0, most)
    return (n, average) if n and average is not None else (0, None)


def _records(context: Context) -> Translate:
    uses = programs.version_uses(context)
    apps = {row["id"]: row["appid"] for row in context.source.rows(Table("app_version", {"appid": 0}), 0, None)}
    quota = folders.of(context).config.daily_quota

    def translate(row: Row, tally: Tally) -> Translated:
        version = row["app_version_id"]
        if version in uses:
            app, type_ = apps[version], uses[version].processor_type.value
        elif version >= _MILLION and version % _MILLION in _TYPES:
            app, type_, version = version // _MILLION, _TYPES[version % _MILLION], None
        else:
            raise BrokenRow("statistics of a version that is gone")
        pfc, et, turnaround = (_average(row, *each) for each in (("pfc", 1e18), ("et", 1e18), ("turnaround", 1e18)))
        is_trusted = row["consecutive_valid"] >= _TRUSTED
        most = row["max_jobs_per_day"]
        is_punished = bool(quota and 0 < most < quota)
        return (
            *(row["host_id"], app, version, type_),
            *pfc,
            *(pfc if is_trusted else (0, None)),
            *(*et, *_spread(row, "et")),
            *(*turnaround, *_spread(row, "turnaround")),
            min(max(row["consecutive_valid"], 0), 2**31 - 1),
            not is_trusted,
            min(most * max(row["p_ncpus"] or 1, 1), 2**31 - 1) if is_punished else 0,
        )

    return translate


def _spread(row: Row, name: str) -> tuple[float | None, float]:
    return finite(row[f"{name}_var"], 0, 1e36), finite(row[f"{name}_q"], 0, 1e36) or 0.0


_RECORD_MERGE: Final = """
INSERT INTO credit_hostappversion AS r ({columns}, error_rate)
SELECT {values}, 0.1
  FROM moving_rows m
  JOIN portal_host h ON h.id = m.host_id AND h.merged_into_id IS NULL
  JOIN credit_app a ON a.id = m.app_id
  LEFT JOIN credit_appversion v ON v.id = m.app_version_id
 WHERE {which} ORDER BY m.host_id
    ON CONFLICT {key} DO UPDATE SET {changes}
 WHERE ({before}) IS DISTINCT FROM ({after})
"""
_STATISTICS: Final = [name for name in _RECORD_COLUMNS if not name.endswith("_id") and name != "processor_type"]


def _record_merge(which: str, key: str) -> str:
    return _RECORD_MERGE.format(
        columns=", ".join(_RECORD_COLUMNS),
        values=", ".join(f"m.{name}" for name in _RECORD_COLUMNS),
        which=which,
        key=key,
        changes=", ".join(f"{name} = excluded.{name}" for name in _STATISTICS),
        before=", ".join(f"r.{name}" for name in _STATISTICS),
        after=", ".join(f"excluded.{name}" for name in _STATISTICS),
    )


RECORDS: Final = RowStep(
    "versions on computers",
    Table(
        "host_app_version",
        {
            **{"app_version_id": 0, "pfc_n": 0.0, "pfc_avg": 0.0, "et_n": 0.0, "et_avg": 0.0, "et_var": 0.0},
            **{"et_q": 0.0, "max_jobs_per_day": 0, "turnaround_n": 0.0, "turnaround_avg": 0.0},
            **{"turnaround_var": 0.0, "turnaround_q": 0.0, "consecutive_valid": 0},
        },
        key="host_id",
        more={"p_ncpus": "h.p_ncpus"},
        join="LEFT JOIN host h ON h.id = t.host_id",
    ),
    _RECORD_COLUMNS,
    _records,
    [
        _record_merge("v.id IS NOT NULL", "(host_id, app_version_id) WHERE app_version_id IS NOT NULL"),
        _record_merge("m.app_version_id IS NULL", "(host_id, app_id, processor_type) WHERE app_version_id IS NULL"),
    ],
)

# --- Messages of tasks that nothing has read yet -------------------------------------------------------------------


def _trickles(context: Context) -> Translate:
    def translate(row: Row, tally: Tally) -> Translated:
        xml = _xml(row["xml"]).replace("\0", "")
        said = fields(xml)
        text = said.get("text", xml)[:65_536]
        digest = hashlib.md5(f"{row['id']}\n{xml}".encode(), usedforsecurity=False).digest()
        variety, sent_at = line(row, "variety", tally, 64), _moment(row["create_time"]) or context.now
        return row["id"], row["hostid"], said.get("result_name", ""), variety, text, digest, sent_at

    return translate


TRICKLES: Final = RowStep(
    "messages of tasks",
    Table("msg_from_host", {"create_time": 0, "hostid": 0, "variety": b"", "xml": b""}, where="t.handled = 0"),
    {
        **{"id": "bigint", "host_id": "bigint", "result_name": "text", "variety": "text", "text": "text"},
        **{"digest": "bytea", "sent_at": "timestamptz"},
    },
    _trickles,
    [
        """
INSERT INTO scheduler_trickle (host_id, user_id, result_id, variety, text, digest, written_at, received_at)
SELECT h.id, h.owner_id, r.id, m.variety, m.text, m.digest, m.sent_at, m.sent_at
  FROM moving_rows m JOIN portal_host h ON h.id = m.host_id AND h.owner_id IS NOT NULL
  LEFT JOIN credit_result r ON r.name = m.result_name AND r.host_id = h.id
 ORDER BY m.id ON CONFLICT DO NOTHING
"""
    ],
)
