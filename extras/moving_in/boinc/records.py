"""Statistics of versions on computers."""

from __future__ import annotations

from typing import Final

from extras.moving_in.boinc import folders, programs
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow, finite
from extras.moving_in.machinery.steps import Context, RowStep, Translate, Translated, refers_to, updated
from extras.moving_in.source import Row, Table

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
            raise BrokenRow("statistics of a version that no longer exists")
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


_STATISTICS: Final = [name for name in _RECORD_COLUMNS if not name.endswith("_id") and name != "processor_type"]
_NAMES: Final = ", ".join(_RECORD_COLUMNS)


def _record_merge(which: str, key: str) -> str:
    return f"""
INSERT INTO credit_hostappversion AS o ({_NAMES}, error_rate)
SELECT {_NAMES}, 0.1
  FROM moving_rows m JOIN portal_host h ON h.id = m.host_id AND h.merged_into_id IS NULL
 WHERE m.app_version_id {which} ORDER BY m.host_id
    ON CONFLICT {key} DO UPDATE {updated(_STATISTICS)}"""


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
        _record_merge("IS NOT NULL", "(host_id, app_version_id) WHERE app_version_id IS NOT NULL"),
        _record_merge("IS NULL", "(host_id, app_id, processor_type) WHERE app_version_id IS NULL"),
    ],
    [
        refers_to("credit_hostopening", "host_id", "host_id", "its computer is missing here, or was merged"),
        refers_to("credit_app", "id", "app_id", "its app was left", shown="host_id"),
        refers_to("credit_appversion", "id", "app_version_id", "its version was left", shown="host_id"),
    ],
)
