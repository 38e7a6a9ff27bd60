"""The credit data that other apps may read, as an account manager elsewhere would read a project's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from credit.engine.facts import ProcessorType
from credit.engine.rules import credit_of
from credit.engine.states import Outcome, ServerState, ValidateState
from credit.models import HostCredit, Result, UserCredit
from portal.models import Host, User

JOBS_EXPLAINED: Final = 1_000
CLIENTS_COUNT_OF_GPU: Final = 0.2
"""Clients estimate a GPU's speed at this fraction of its peak (BOINC protocol, estimated credit)."""


@dataclass(frozen=True, slots=True)
class CreditTotals:
    """Credit granted so far, and the recent average per day (credits)."""

    total_credit: float
    expavg_credit: float


def granted_to_user(user: User) -> CreditTotals | None:
    """Return the credit that this project has granted a volunteer; None if nothing yet. One statement."""
    return _totals(UserCredit.objects.filter(user=user).first())


def granted_to_host(host: Host) -> CreditTotals | None:
    """Return the credit that this site has granted a computer."""
    return _totals(HostCredit.objects.filter(host=host).first())


def _totals(credit: UserCredit | HostCredit | None) -> CreditTotals | None:
    return (
        CreditTotals(credit.total_credit, credit.expavg_credit) if credit is not None and credit.total_credit else None
    )


@dataclass(slots=True)
class CreditDifferences:
    """Why the credit granted for the latest jobs differs from what clients estimated, in credits.

    ``estimated`` - ``unchecked`` - ``failed`` + the five that follow = ``granted``. ``gpu``: GPUs counted in full.
    ``version`` and ``host``: the two factors. ``rest``: claims that were cut, replaced by the default, or made by
    another rule. ``agreed``: from the claims of a job's computers to the credit that each of them got.
    """

    jobs: int = 0
    unchecked_jobs: int = 0
    failed_jobs: int = 0
    estimated: float = 0.0
    unchecked: float = 0.0
    failed: float = 0.0
    gpu: float = 0.0
    version: float = 0.0
    host: float = 0.0
    rest: float = 0.0
    agreed: float = 0.0
    granted: float = 0.0


def differences_of(of: User | Host) -> CreditDifferences:
    """Explain the latest finished jobs of a volunteer or a computer, at most `JOBS_EXPLAINED`; one statement."""
    theirs = Result.objects.filter(user=of) if isinstance(of, User) else Result.objects.filter(host=of)
    differences = CreditDifferences()
    finished = theirs.filter(server_state=ServerState.OVER, elapsed_secs__gt=0, peak_flops__gt=0).order_by("-id")
    for result in finished.only(
        "elapsed_secs", "peak_flops", "processor_type", "outcome", "validate_state", "granted_credit", "raw_pfc",
        "version_scale", "host_scale", "claimed_credit",
    )[:JOBS_EXPLAINED]:  # fmt: skip
        _add(differences, result)
    return differences


def _add(differences: CreditDifferences, result: Result) -> None:
    full = credit_of((result.elapsed_secs or 0.0) * (result.peak_flops or 0.0))
    estimated = full if result.processor_type == ProcessorType.CPU else full * CLIENTS_COUNT_OF_GPU
    differences.jobs += 1
    differences.estimated += estimated
    if result.granted_credit is None or result.validate_state != ValidateState.VALID:
        waits = (ValidateState.INIT, ValidateState.INCONCLUSIVE)
        if result.outcome == Outcome.SUCCESS and result.validate_state in waits:
            differences.unchecked_jobs += 1
            differences.unchecked += estimated
        else:
            differences.failed_jobs += 1
            differences.failed += estimated
        return
    by_version = full * (1.0 if result.version_scale is None else result.version_scale)
    by_host = by_version * (1.0 if result.host_scale is None else result.host_scale)
    claimed = by_host if result.claimed_credit is None else result.claimed_credit
    differences.gpu += full - estimated
    differences.version += by_version - full
    differences.host += by_host - by_version
    differences.rest += claimed - by_host
    differences.agreed += result.granted_credit - claimed
    differences.granted += result.granted_credit


@dataclass(frozen=True, slots=True)
class ExportedTask:
    """What became of a task: BOINC's numbers, and the credit once decided. ``user_id``: its volunteer."""

    name: str
    user_id: int | None
    server_state: int
    outcome: int
    validate_state: int
    granted_credit: float | None


def tasks_by_name(names: Collection[str]) -> dict[str, ExportedTask]:
    """Return the tasks of these names that were sent, by name; one statement, by the index of names."""
    # PostgreSQL text cannot contain NUL.
    rows = Result.objects.filter(name__in=[name for name in names if "\0" not in name], sent_at__isnull=False)
    columns = "name", "user_id", "server_state", "outcome", "validate_state", "granted_credit"
    return {row[0]: ExportedTask(*row) for row in rows.values_list(*columns)}
