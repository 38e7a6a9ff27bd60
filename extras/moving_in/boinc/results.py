"""Results, where their workunits are; and how the old server called the files that computers deliver of them."""

from __future__ import annotations

import json
from typing import Any, Final

from credit.engine.explanation import GrantRule
from credit.engine.states import Outcome, ServerState, ValidateState
from extras.moving_in.boinc import programs
from extras.moving_in.boinc.job_values import CANONICAL, IS_OPEN, MOST_BYTES, PRIORITIES, granted, moment, xml_of
from extras.moving_in.engine import jobs
from extras.moving_in.engine.jobs import checked_name
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow, finite, whole
from extras.moving_in.machinery.steps import Check, Context, RowStep, Translate, Translated, updated
from extras.moving_in.source import Row, Table

_NOT_MADE: Final = 1

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
        "is_open": IS_OPEN.format(w="w"),
        "workunit": "w.id",
        "app": "w.appid",
        "xml": f"CASE WHEN {IS_OPEN.format(w='w')} THEN t.xml_doc_in END",
        "stderr": f"CASE WHEN {IS_OPEN.format(w='w')} THEN t.stderr_out END",
        "granted": CANONICAL.format(column="granted_credit", w="w"),
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
            raise BrokenRow("result: its workunit no longer exists")
        if row["server_state"] == _NOT_MADE:
            raise BrokenRow("result: not ready to be sent yet; the transitioner makes another one")
        state, outcome = _state(row, tally)
        is_unsent = state == ServerState.UNSENT
        sent_at = moment(row["sent_time"])
        if not is_unsent and sent_at is None:
            sent_at = moment(row["create_time"])
        received_at = moment(row["received_time"])
        if outcome == Outcome.SUCCESS and received_at is None:
            received_at = sent_at
        validated = row["validate_state"] if outcome == Outcome.SUCCESS else ValidateState.INIT
        validated = validated if validated in list(ValidateState) else ValidateState.INIT
        is_valid = validated == ValidateState.VALID
        credit = granted(row["granted"]) if is_valid else None
        if credit == 0 and row["granted"]:
            tally.tell("impossible granted credit: shown as 0", f"{row['id']} {row['granted']}")
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
            min(max(row["priority"], PRIORITIES[0]), PRIORITIES[1]),
            moment(row["create_time"]) or context.now,
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
            None if is_unsent else moment(row["report_deadline"]) or sent_at,
            None if state == ServerState.IN_PROGRESS else received_at,
            row["client_state"] if received_at else None,
            whole(row["exit_status"], -(2**31), 2**31 - 1) if received_at else None,
            finite(row["elapsed_time"], 0, 1e11) if received_at else None,
            finite(row["cpu_time"], 0, 1e11) if received_at else None,
            bool(row["runtime_outlier"]),
            *(int(value) if (value := finite(row[column], 1, MOST_BYTES)) else None for column in _PEAKS),
            xml_of(row["stderr"]).replace("\0", "")[-65_536:],
            int(GrantRule.CARRIED_OVER) if is_valid else None,
            credit,
            received_at if is_valid else None,
            json.dumps(_former(row, name, state, outcome)),
        )

    return translate


_PEAKS: Final = ("peak_working_set_size", "peak_swap_size", "peak_disk_usage")


def _state(row: Row, tally: Tally) -> tuple[int, int]:
    state, outcome = row["server_state"], row["outcome"]
    if state not in list(ServerState):
        raise BrokenRow("result: an unknown server state")
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
        for output in jobs.outputs(xml_of(row["xml"]), name)
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
SELECT {", ".join(f"m.{name}" for name in _FACTS)}, u.user_id, coalesce(h.merged_into_id, h.id) AS host_id,
       v.id AS app_version_id, w.id IS NOT NULL AS is_here, coalesce(w.lane, 0) AS lane
  FROM moving_rows m
  LEFT JOIN credit_workunit w ON w.id = m.workunit_id
  LEFT JOIN credit_useropening u ON u.user_id = m.user_id
  LEFT JOIN portal_host h ON h.id = m.host_id
        AND EXISTS (SELECT FROM credit_useropening o WHERE o.user_id = h.owner_id)
  LEFT JOIN credit_appversion v ON v.id = m.app_version_id),
       live AS (
INSERT INTO credit_result AS o ({_COLUMNS_HERE}, user_id, host_id, app_version_id, lane, report_faults, outputs,
       partial_elapsed_secs, partial_credit)
SELECT {_COLUMNS_HERE}, user_id, host_id, app_version_id, lane, '[]', '[]', 0, 0 FROM rows WHERE is_here
    ON CONFLICT (id) DO UPDATE {updated(("user_id", "host_id", "app_version_id", *_LATER))} AND o.name = excluded.name
RETURNING 1),
       finished AS (
INSERT INTO scheduler_archivedtask (id, workunit_id, user_id, host_id, app_version_id, facts)
SELECT rows.id, rows.workunit_id, user_id, host_id, app_version_id,
       to_jsonb(rows) - '{{is_here,lane,user_id,host_id,app_version_id,stderr_text}}'::text[]
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
    [
        Check(
            "result: its workunit was left",
            """
DELETE FROM moving_rows m
 WHERE NOT EXISTS (SELECT FROM credit_workunit w WHERE w.id = m.workunit_id)
   AND NOT EXISTS (SELECT FROM scheduler_archivedworkunit a WHERE a.id = m.workunit_id) RETURNING m.id""",
            leaves=True,
        ),
        Check(
            "its computer or account is missing here: it ends at its deadline",
            f"""
SELECT m.id FROM moving_rows m
 WHERE m.server_state = {ServerState.IN_PROGRESS.value}
   AND (NOT EXISTS (SELECT FROM credit_useropening o WHERE o.user_id = m.user_id)
        OR NOT EXISTS (SELECT FROM portal_host h WHERE h.id = m.host_id))""",
        ),
    ],
)
