"""The inputs of a pass of the validator or a run of the feeder, as arrays stored with it. Pure.

An unknown number is NaN; times are Unix seconds. Positions count from 0; -1 means none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_COUNT_NBYTES: Final = 8

VERSIONS: Final = np.dtype(
    [
        *(("id", "<i8"), ("pfc_n", "<i8"), ("pfc_avg", "<f8"), ("pfc_scale", "<f8")),
        *(("is_counted", "u1"), ("is_scale_received", "u1")),
    ]
)
"""Versions as they were read: those that a pass's results used, or all for the feeder."""
RECORDS: Final = np.dtype(
    [
        *((name, "<i8") for name in ("id", "host", "version")),
        ("type", "u1"),
        *((name, "<f8") for name in ("pfc_n", "pfc_avg", "clean_n", "clean_avg", "recent_n", "recent_avg")),
        *((name, "<f8") for name in ("waiting_n", "waiting_avg", "samples_at", "scale_probation", "host_scale_at")),
        *((name, "<f8") for name in ("consecutive_valid", "failing_share", "peak_flops", "lead_jobs")),
        *((name, "<f8") for name in ("et_n", "et_avg")),
    ]
)
"""(host, version) records as they were before the pass; ``type``: the processor type's number, from 1."""
WORKUNITS: Final = np.dtype(
    [
        ("id", "<i8"),
        ("fpops_est", "<f8"),
        ("fpops_bound", "<f8"),
        ("min_quorum", "<i2"),
        ("target_nresults", "<i2"),
        ("delay_bound_secs", "<f8"),
        ("is_late", "u1"),
        ("canonical_credit", "<f8"),
        ("given_credit", "<f8"),
        ("is_unconfirmed", "u1"),
        ("is_own", "u1"),
    ]
)
"""Workunits that were decided; ``is_late``: already before this pass, with this credit.

``is_unconfirmed``: another result should have confirmed it, and did not come in time; ``is_own``: it is for its
submitter's own computers.
"""
RESULTS: Final = np.dtype(
    [
        ("id", "<i8"),
        ("workunit", "<i4"),
        ("record", "<i4"),
        ("version", "<i8"),
        *((name, "u1") for name in ("is_valid", "is_anonymous", "is_runtime_outlier")),
        *((name, "<f8") for name in ("elapsed_secs", "peak_flops", "sent_at", "received_at", "cpu_secs", "p_fpops")),
        *((name, "<f8") for name in ("fpops_cumulative", "fpops_per_cpu_sec", "partial_elapsed_secs")),
        *((name, "<f8") for name in ("partial_credit", "granted_credit", "assigned_credit")),
    ]
)
"""Their results that were found valid or wrong, in the order of workunits and ids.

``workunit`` and ``record`` are positions in the other arrays.
"""


@dataclass(frozen=True, slots=True)
class PassFacts:
    """One pass of the validator, or one run of the feeder, which only has versions."""

    at: float
    is_feeder: bool
    min_avg_pfc: float | None
    versions: Array
    records: Array
    workunits: Array
    results: Array


def encode(dtype: np.dtype[Any], columns: Mapping[str, Any], count: int) -> bytes:
    """Encode these columns one after the other; a column with a single value is stored as that value."""
    parts = [count.to_bytes(_COUNT_NBYTES)]
    for name in dtype.names or ():
        column = np.ascontiguousarray(columns[name], dtype[name])
        # Compared as bits, so that NaN equals itself.
        bits = column.view(f"u{dtype[name].itemsize}")
        is_constant = count > 0 and bool((bits == bits[0]).all())
        parts += [bytes([is_constant]), (column[:1] if is_constant else column).tobytes()]
    return b"".join(parts)


def decode(data: bytes | memoryview, dtype: np.dtype[Any]) -> Array:
    """Decode the rows that ``encode`` was given; no rows if the data is empty."""
    count, place = int.from_bytes(data[:_COUNT_NBYTES]), _COUNT_NBYTES
    rows = np.empty(count, dtype)
    for name in dtype.names or () if count else ():
        nvalues = 1 if data[place] else count
        rows[name] = np.frombuffer(data, dtype[name], nvalues, place + 1)
        place += 1 + nvalues * dtype[name].itemsize
    return rows
