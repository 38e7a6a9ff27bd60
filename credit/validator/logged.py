"""Stores the inputs and decisions of a pass, as one row, so that operators can replay it under other settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np
import structlog
from django.db import connection, transaction

from credit.engine.facts import VersionFacts
from credit.engine.passes import PassDecisions
from credit.engine.states import ValidateState
from credit.statistics.pass_arrays import RECORDS, RESULTS, VERSIONS, WORKUNITS, decode, encode
from credit.statistics.pass_log import version_rows
from credit.validator import sql
from credit.validator.binary import NO_TIME, Column
from credit.validator.reads import Records, Results, Workunits

log = structlog.get_logger(__name__)

_DECIDED = (ValidateState.VALID, ValidateState.INVALID)
_KEY = ("host", "version", "type")
_SAME = (
    *("elapsed_secs", "peak_flops", "cpu_secs", "fpops_cumulative", "fpops_per_cpu_sec"),
    *("partial_elapsed_secs", "partial_credit", "is_runtime_outlier", "assigned_credit"),
)
_P = ParamSpec("_P")


def _harmless(method: Callable[Concatenate[PassLog, _P], None]) -> Callable[Concatenate[PassLog, _P], None]:
    """Catch faults: nothing of this pass is stored, the fault is logged, and the pass continues."""

    @wraps(method)
    def guarded(self: PassLog, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if self.has_failed:
            return
        try:
            method(self, *args, **kwargs)
        except Exception:
            # Credit does not depend on the log for previews, whatever is wrong with it.
            if connection.needs_rollback:
                raise
            self.has_failed = True
            log.exception("validator_pass_not_kept")

    return guarded


class PassLog:
    """Versions and records as they were before anything was decided; written with the decisions.

    A fault in storing them never stops a pass, unless the connection is lost.
    """

    def __init__(self) -> None:
        self.has_failed = False
        self._versions = b""
        self._records = b""
        self._record_of_key: Column = np.empty(0, np.int64)

    @_harmless
    def keep_records(self, keys: Sequence[Column], records: Records) -> None:
        """Keep the locked records, and their keys."""
        at = records.place - 1
        columns: dict[str, Any] = dict(zip(_KEY, (column[at] for column in keys), strict=True))
        columns |= {name: getattr(records, name) for name in RECORDS.names or () if name not in _KEY}
        for name in ("host_scale_at", "samples_at"):
            columns[name] = np.where(columns[name] == NO_TIME, np.nan, columns[name] / 1e6)
        self._records = encode(RECORDS, columns, len(at))
        self._record_of_key = np.full(len(keys[0]), -1)
        self._record_of_key[at] = np.arange(len(at))

    @_harmless
    def keep_versions(self, versions: Iterable[VersionFacts]) -> None:
        """Keep the versions before medians replace their averages."""
        self._versions = version_rows(versions)

    @_harmless
    def write(
        self,
        app_id: int,
        now_us: int,
        min_avg_pfc: float | None,
        workunits: Workunits,
        results: Results,
        p_fpops: Sequence[float],
        key_of_result: Column,
        decided: PassDecisions,
    ) -> None:
        """Write one row, if something was decided.

        The versions are locked, so rows are in the order of their updates.
        """
        states = np.asarray(decided.states, np.int64)
        done = np.flatnonzero(np.isin(states, _DECIDED))
        if not len(done):
            return
        places = np.asarray(decided.places, np.int64)[done]
        order = np.argsort(places, kind="stable")
        done, places = done[order], places[order]
        numbers, workunit_of = np.unique(
            np.searchsorted(workunits.id, results.workunit_id[places]), return_inverse=True
        )
        is_valid = states[done] == ValidateState.VALID.value
        is_late = workunits.canonical_id[numbers] != 0
        version = results.version_id[places]
        columns: dict[str, Any] = {name: getattr(results, name)[places] for name in _SAME}
        columns |= {
            "id": results.id[places],
            "workunit": workunit_of,
            "record": self._record_of_key[key_of_result[places]],
            "version": version,
            "is_valid": is_valid,
            "is_anonymous": (version == 0) & (results.host_id[places] != 0),
            "sent_at": results.sent_at[places] / 1e6,
            "received_at": results.received_at[places] / 1e6,
            "p_fpops": np.asarray(p_fpops)[places],
            "granted_credit": np.asarray(decided.credits, np.float64)[done],
        }
        has_grant = np.bincount(workunit_of, is_valid, len(numbers)) > 0
        with transaction.atomic():
            sql.LOG_PASS.run(
                app_id,
                now_us,
                np.count_nonzero(has_grant & ~is_late),
                np.nan if min_avg_pfc is None else min_avg_pfc,
                self._versions_of(version),
                self._records,
                encode(WORKUNITS, _columns(workunits, numbers, is_late, decided), len(numbers)),
                encode(RESULTS, columns, len(places)),
            )

    def _versions_of(self, ids: Column) -> bytes:
        versions = decode(self._versions, VERSIONS)
        used = versions[np.isin(versions["id"], ids)]
        return encode(VERSIONS, {name: used[name] for name in VERSIONS.names or ()}, len(used))


def _columns(workunits: Workunits, numbers: Column, is_late: Column, decided: PassDecisions) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "is_late": is_late,
        "is_unconfirmed": np.isin(workunits.id[numbers], decided.unconfirmed_ids),
    }
    return columns | {name: getattr(workunits, name)[numbers] for name in WORKUNITS.names or () if name not in columns}
