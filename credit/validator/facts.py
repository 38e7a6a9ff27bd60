"""From the columns that a pass has read to what the engine is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts, ResultFacts, VersionFacts
from credit.validator.binary import NO_TIME, Column
from credit.validator.reads import Results


def records_of(columns: Sequence[Column]) -> list[HostVersionFacts]:
    """The (host, version) records, from ``validator_rows.lock_records``'s columns after the first two."""
    return [
        HostVersionFacts(
            Average(pfc_n, None if pfc_avg != pfc_avg else pfc_avg),
            AverageWithVariance(et_n, None if et_avg != et_avg else et_avg, None if et_var != et_var else et_var, et_q),
            AverageWithVariance(
                out_n, None if out_avg != out_avg else out_avg, None if out_var != out_var else out_var, out_q
            ),
            bool(probation),
            None if scale_at == NO_TIME else scale_at / 1e6,
            error_rate,
            consecutive_valid,
            max_jobs_per_day,
        )
        for (
            pfc_n,
            pfc_avg,
            et_n,
            et_avg,
            et_var,
            et_q,
            out_n,
            out_avg,
            out_var,
            out_q,
            probation,
            scale_at,
            error_rate,
            consecutive_valid,
            max_jobs_per_day,
        ) in zip(*(column.tolist() for column in columns), strict=True)
    ]


def result_facts(
    results: Results,
    here: slice,
    places: Column,
    records: Sequence[HostVersionFacts | None],
    versions: Mapping[int, VersionFacts],
    p_fpops: Sequence[float],
) -> list[ResultFacts]:
    """Those results that are ``here``.

    ``places`` says which of the records is whose, ``p_fpops`` is the benchmark of each one's host: both of all results.
    """
    anonymous = (results.version_id[here] == 0) & (results.host_id[here] != 0)
    version = versions.get
    return [
        ResultFacts(
            records[place],
            version(version_id),
            elapsed,
            peak,
            sent_at,
            received_at,
            is_anonymous,
            cpu_secs,
            outlier != 0,
            benchmark,
            counted,
            per_cpu_sec,
            partial_elapsed,
            partial_credit,
        )
        for (
            place,
            version_id,
            elapsed,
            peak,
            sent_at,
            received_at,
            is_anonymous,
            cpu_secs,
            outlier,
            benchmark,
            counted,
            per_cpu_sec,
            partial_elapsed,
            partial_credit,
        ) in zip(
            places[here].tolist(),
            results.version_id[here].tolist(),
            results.elapsed_secs[here].tolist(),
            results.peak_flops[here].tolist(),
            (results.sent_at[here] / 1e6).tolist(),
            (results.received_at[here] / 1e6).tolist(),
            anonymous.tolist(),
            results.cpu_secs[here].tolist(),
            results.is_runtime_outlier[here].tolist(),
            p_fpops[here],
            results.fpops_cumulative[here].tolist(),
            results.fpops_per_cpu_sec[here].tolist(),
            results.partial_elapsed_secs[here].tolist(),
            results.partial_credit[here].tolist(),
            strict=True,
        )
    ]
