"""Workunits: one with open ends becomes a row as ours are, and goes on here; one that is over goes into the archive.

Where a workunit is decides where its results go, also at a later import.
"""

from __future__ import annotations

import json
from typing import Any, Final

from credit.engine.states import AssimilateState, WorkunitError
from credit.models.work import MAX_FLOPS_COUNT, MAX_RESULTS_PER_WORKUNIT
from extras.moving_in.boinc import folders
from extras.moving_in.boinc.job_values import CANONICAL, IS_OPEN, MOST_BYTES, NEVER, PRIORITIES, granted, moment, xml_of
from extras.moving_in.engine import jobs
from extras.moving_in.engine.jobs import checked_name
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow, finite, whole
from extras.moving_in.machinery.steps import Context, RowStep, Translate, Translated, refers_to, updated
from extras.moving_in.source import Row, Table
from scheduler.engine.lanes import Lane, LaneKind, Requirement

_LONGEST_SECS: Final = 10 * 366 * 86_400
_NO_CANONICAL: Final = 32
_TARGETS: Final = (LaneKind.COMPUTER, LaneKind.PERSON, LaneKind.TEAM)
"""The kinds of target; BOINC's assignments use the same numbers for them."""
_ASSIGNMENTS: Final = Table(
    "assignment", {"target_type": 0, "target_id": 0, "workunitid": 0}, where="t.multi = 0 AND t.workunitid <> 0"
)

_WORKUNITS: Final = Table(
    "workunit",
    {
        **{"create_time": 0, "appid": 0, "name": b"", "batch": 0, "rsc_fpops_est": 0.0, "rsc_fpops_bound": 0.0},
        **{"rsc_memory_bound": 0.0, "rsc_disk_bound": 0.0, "need_validate": 0, "canonical_credit": 0.0},
        **{"transition_time": 0, "delay_bound": 0, "error_mask": 0, "file_delete_state": 0, "assimilate_state": 0},
        **{"min_quorum": 1, "target_nresults": 1, "max_error_results": 1, "max_total_results": 1},
        **{"max_success_results": 1, "result_template_file": b"", "priority": 0, "transitioner_flags": 0},
        **{"app_version_num": 0, "hr_class": 0, "app_version_id": 0},
    },
    more={
        "is_open": IS_OPEN.format(w="t"),
        "xml": f"CASE WHEN {IS_OPEN.format(w='t')} THEN t.xml_doc END",
        "result_name": "(SELECT r.name FROM result r WHERE r.workunitid = t.id ORDER BY r.id LIMIT 1)",
        "result_xml": f"""CASE WHEN {IS_OPEN.format(w="t")} THEN
 (SELECT r.xml_doc_in FROM result r WHERE r.workunitid = t.id ORDER BY r.id LIMIT 1) END""",
        "canonical_id": CANONICAL.format(column="id", w="t"),
        "granted": CANONICAL.format(column="granted_credit", w="t"),
        "is_unmade": "EXISTS (SELECT 1 FROM result r WHERE r.workunitid = t.id AND r.server_state = 1)",
        "is_out": "EXISTS (SELECT 1 FROM result r WHERE r.workunitid = t.id AND r.server_state = 4)",
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
    **{"lane": "bigint", "app_version_num": "integer"},
}
_CHANGING: Final = (
    *("priority", "min_quorum", "target_nresults", "max_error_results", "max_total_results", "max_success_results"),
    *("need_validate", "transition_at", "canonical_result_id", "canonical_credit", "error_mask", "assimilate_state"),
    *("file_delete_state", "assimilated_at"),
)


class _Workunits:
    """The translation of workunits, with what its rows share: the apps that there are, and templates that were read."""

    def __init__(self, context: Context) -> None:
        self.now = context.now
        self.apps = {row["id"] for row in context.source.rows(Table("app", {}), 0, None)}
        self.folder = folders.of(context)
        self.targets = _targets(context)
        self._by_template: dict[str, list[dict[str, Any]]] = {}

    def translate(self, row: Row, tally: Tally) -> Translated:
        """In the order of _WORKUNIT_COLUMNS."""
        name = checked_name(row["name"].decode("utf-8", "replace"), "workunit")
        if row["appid"] not in self.apps:
            raise BrokenRow("workunit: its app no longer exists")
        lane = _lane(row, self.targets, tally) if row["is_open"] else Lane()
        is_unmade = row["is_unmade"] or (lane.kind != LaneKind.SHARED and row["result_name"] is None)
        command_line, inputs, outputs = self._files(row)
        return (
            *(row["id"], bool(row["is_open"]), row["appid"], row["batch"] or None, name),
            *(moment(row["create_time"]) or self.now, _priority(row, tally), *_bounds(row), *_replication(row)),
            *(command_line, json.dumps(inputs), json.dumps(outputs), bool(row["need_validate"])),
            (moment(row["create_time"]) or self.now) if is_unmade else moment(row["transition_time"]),
            *_outcome(row, tally),
            *(lane.number, max(row["app_version_num"], 0) if lane.number else 0),
        )

    def _files(self, row: Row) -> tuple[str, list[dict[str, Any]], list[dict[str, Any]]]:
        """The command line, input files and output files; nothing of what is over."""
        if not row["is_open"]:
            return "", [], []
        read = jobs.job_input(xml_of(row["xml"]), self.folder.config.download_url)
        if len(read.command_line) > 2000:
            raise BrokenRow("workunit: a command line of more than 2000 characters")
        if row["result_name"] is None:
            outputs = self._outputs_of_template(xml_of(row["result_template_file"]))
        else:
            result_name = row["result_name"].decode("utf-8", "replace")
            outputs = jobs.output_files(jobs.outputs(xml_of(row["result_xml"]), result_name))
        return read.command_line, list(read.files), outputs

    def _outputs_of_template(self, name: str) -> list[dict[str, Any]]:
        if name not in self._by_template:
            text = self.folder.text(*(name if "/" in name else f"templates/{name}").split("/"))
            if text is None or ".." in name:
                raise BrokenRow("workunit: it has no result yet, and its output template is missing")
            self._by_template[name] = jobs.output_files(jobs.of_template(text))
        return self._by_template[name]


def _workunits(context: Context) -> Translate:
    return _Workunits(context).translate


def _targets(context: Context) -> dict[int, Lane]:
    """The lanes of workunits that are for a computer, a person or a team, by number."""
    if not context.source.has("assignment", "workunitid", "target_type", "target_id"):
        return {}
    rows = context.source.rows(_ASSIGNMENTS, 0, None)
    return {
        row["workunitid"]: Lane(LaneKind(row["target_type"]), row["target_id"])
        for row in rows
        if row["target_type"] in _TARGETS and row["target_id"] > 0
    }


def _lane(row: Row, targets: dict[int, Lane], tally: Tally) -> Lane:
    """The lane, which says who alone may have its results."""
    if row["hr_class"] or row["app_version_id"]:
        tally.tell("bound to a class of computers or a version: copies sent from here may go to others", row["id"])
    if not row["transitioner_flags"]:
        return Lane(requirement=Requirement(max(row["app_version_num"], 0)))
    if (target := targets.get(row["id"])) is not None:
        return target
    if not row["is_out"]:
        raise BrokenRow("workunit: broadcast to every computer of a kind, which is not supported here")
    tally.tell("broadcast to every computer of a kind: further copies go to any computer", row["id"])
    return Lane()


def _priority(row: Row, tally: Tally) -> int:
    priority: int = min(max(row["priority"], PRIORITIES[0]), PRIORITIES[1])
    if priority != row["priority"]:
        tally.tell("priority beyond 16 bits, cut", f"{row['id']} {row['priority']}")
    return priority


def _bounds(row: Row) -> tuple[float, float, int, int, int]:
    """FLOPs estimated and at most, bytes of memory and disk, seconds until the deadline."""
    fpops = finite(row["rsc_fpops_est"], 1, MAX_FLOPS_COUNT * 0.99)
    if fpops is None:
        raise BrokenRow("workunit: no estimate of its FLOPs")
    return (
        fpops,
        # A bound beyond these limits does not bound anything on that server either.
        min(max(row["rsc_fpops_bound"], fpops), MAX_FLOPS_COUNT * 0.99),
        *(int(min(max(row[column], 0), MOST_BYTES)) for column in ("rsc_memory_bound", "rsc_disk_bound")),
        min(whole(row["delay_bound"], 1, NEVER) or 7 * 86_400, _LONGEST_SECS),
    )


def _replication(row: Row) -> tuple[int, int, int, int, int]:
    """Quorum, copies at first, and at most: errors, copies, successes."""
    quorum, target, errors, most = (
        min(max(row[column], 1), MAX_RESULTS_PER_WORKUNIT)
        for column in ("min_quorum", "target_nresults", "max_error_results", "max_total_results")
    )
    target = max(quorum, target)
    successes = min(max(row["max_success_results"], quorum), MAX_RESULTS_PER_WORKUNIT)
    return quorum, target, errors, max(most, target), successes


def _outcome(row: Row, tally: Tally) -> tuple[Any, ...]:
    """From the canonical result to when it was assimilated."""
    error_mask, assimilated = _error_mask(row["error_mask"]), row["assimilate_state"]
    if assimilated not in list(AssimilateState):
        raise BrokenRow("workunit: an unknown state of assimilation")
    has_canonical = row["canonical_id"] is not None
    if assimilated and not has_canonical and not error_mask:
        tally.tell("assimilated without a valid result: taken as one that failed", row["id"])
        error_mask = int(WorkunitError.TOO_MANY_TOTAL_RESULTS)
    return (
        row["canonical_id"],
        granted(row["granted"]) if has_canonical else None,
        granted(row["canonical_credit"]) or None if not has_canonical else None,
        error_mask,
        assimilated,
        min(max(row["file_delete_state"], 0), 3),
        moment(row["changed_secs"]) if assimilated == AssimilateState.DONE else None,
    )


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
INSERT INTO credit_workunit AS o ({_ALL}, batch_id)
SELECT {_ALL}, batch FROM rows WHERE is_open OR is_here
    ON CONFLICT (id) DO UPDATE {updated(_CHANGING)} AND o.name = excluded.name
RETURNING 1),
       finished AS (
INSERT INTO scheduler_archivedworkunit (id, app_id, batch_id, name, error_mask, facts, archived_at)
SELECT id, app_id, batch, name, error_mask,
       to_jsonb(rows) - '{{is_open,is_here,batch,input_files,output_files}}'::text[]
         || jsonb_build_object('batch_id', batch), coalesce(assimilated_at, %(now)s)
  FROM rows WHERE NOT (is_open OR is_here)
    ON CONFLICT (id) DO NOTHING RETURNING 1),
       kept AS (
INSERT INTO scheduler_stickyfile (batch_id, name)
SELECT DISTINCT batch, file->>'name' FROM rows CROSS JOIN jsonb_array_elements(input_files) AS file
 WHERE is_open AND batch IS NOT NULL AND file ? 'urls' AND file ? 'sticky'
    ON CONFLICT DO NOTHING)
SELECT FROM live UNION ALL SELECT FROM finished
"""
    ],
    [refers_to("credit_app", "id", "app_id", "workunit: its app was left", shown="id")],
)
