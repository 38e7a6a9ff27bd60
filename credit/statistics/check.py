"""Derives anew what validated credit must satisfy; every difference is a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db import connection

from credit.engine.explanation import DEFAULT_RULES, ClaimRule
from credit.engine.rules import CREDIT_PER_DAY, GFLOP_DAY
from credit.engine.states import ValidateState

TOLERANCE: Final = 1e-9
"""Relative: sums of floats in another order differ in their last digits."""
ROUNDED: Final = 1e-12
MAX_RAW_PFC: Final = 1e200
"""Claims of more FLOPs are not worked out again: with their factors they may be more than a number can be."""

archives: list[str] = []
"""Selects of (user_id, host_id, app_version_id, granted_credit, partial_credit) for results that other apps keep
elsewhere; they append theirs when ready."""

# What results brought one of the columns that say whose they are, those kept elsewhere included: {0} and {1}.
_EARNED: Final = """
WITH earned AS (
  SELECT owner, count(granted_credit) AS count,
         sum(greatest(coalesce(granted_credit, 0), partial_credit)) AS credit
    FROM (SELECT {0} AS owner, granted_credit, partial_credit FROM credit_result
           WHERE granted_credit IS NOT NULL OR partial_credit > 0{1}) r
   WHERE owner IS NOT NULL GROUP BY owner)
"""
_DIFFERS: Final = f"""
abs(coalesce(c.total_credit, 0) - coalesce(e.credit, 0)) > {TOLERANCE} * greatest(e.credit, c.total_credit, 1)
"""
_OWNERS: Final = f"""{_EARNED}
SELECT coalesce(e.owner, c.{{0}}), c.total_credit, e.credit
  FROM earned e FULL JOIN {{2}} c ON c.{{0}} = e.owner WHERE {_DIFFERS} ORDER BY 1
"""
_OWNER_TABLES: Final = {"user": "credit_usercredit", "host": "credit_hostcredit"}
_VERSION_TOTALS: Final = f"""{_EARNED}
SELECT c.id, c.total_credit, c.ngranted, coalesce(e.credit, 0), coalesce(e.count, 0)
  FROM credit_appversion c LEFT JOIN earned e ON e.owner = c.id
 WHERE c.ngranted <> coalesce(e.count, 0) OR {_DIFFERS} ORDER BY 1
"""
_CANONICAL: Final = f"""
SELECT w.id, CASE WHEN r.id IS NULL OR r.workunit_id <> w.id THEN 'its canonical result is none of its own'
                  WHEN r.validate_state <> {ValidateState.VALID.value} THEN 'its canonical result is not valid'
                  ELSE 'its canonical result was granted other credit than the workunit has' END
  FROM credit_workunit w LEFT JOIN credit_result r ON r.id = w.canonical_result_id
 WHERE w.canonical_result_id IS NOT NULL
   AND (r.id IS NULL OR r.workunit_id <> w.id OR r.validate_state <> {ValidateState.VALID.value}
        OR abs(coalesce(r.granted_credit, -1) - coalesce(w.canonical_credit, -1))
           > {ROUNDED} * greatest(w.canonical_credit, 1))
 ORDER BY 1
"""
_VALID: Final = f"""
SELECT r.id, CASE WHEN r.validate_state = {ValidateState.VALID.value}
                  THEN 'it is valid, but was not granted its workunit''s credit'
                  ELSE 'it was granted credit, but is not valid' END
  FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
 WHERE (r.validate_state = {ValidateState.VALID.value}
        AND (r.granted_credit IS NULL OR r.granted_at IS NULL OR w.canonical_credit IS NULL
             OR abs(r.granted_credit - w.canonical_credit) > {ROUNDED} * greatest(w.canonical_credit, 1)))
    OR (r.validate_state <> {ValidateState.VALID.value} AND r.granted_credit IS NOT NULL)
 ORDER BY 1
"""
_CLAIMS: Final = f"""
WITH claimed AS (
  SELECT r.id, r.claimed_pfc, r.claimed_credit,
         CASE WHEN r.claim_rule = ANY (%s) THEN coalesce(r.min_avg_pfc, 1) * w.fpops_est
              ELSE coalesce(r.raw_pfc, 0) * coalesce(r.version_scale, 1) * coalesce(r.host_scale, 1)
                   -- The other credit systems count whole jobs.
                   + CASE WHEN r.claim_rule < {ClaimRule.PEAK_FLOPS.value} THEN r.partial_credit ELSE 0 END
                     * {GFLOP_DAY:.0f}::float8 / {CREDIT_PER_DAY} END AS pfc
    FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
   WHERE r.claim_rule IS NOT NULL AND r.claim_rule <> {ClaimRule.LEFT_OUT.value}
     AND abs(coalesce(r.raw_pfc, 0)) < {MAX_RAW_PFC:g}::float8)
SELECT id, claimed_pfc, pfc FROM claimed
 WHERE claimed_pfc IS NULL OR claimed_credit IS NULL
    OR abs(claimed_pfc - pfc) > {TOLERANCE} * greatest(abs(pfc), 1e-300)
    OR abs(claimed_credit - claimed_pfc * {CREDIT_PER_DAY} / {GFLOP_DAY:.0f}::float8)
       > {TOLERANCE} * greatest(abs(claimed_credit), 1e-300)
 ORDER BY 1
"""


def differences() -> Iterator[str]:
    """A sentence for each invariant that does not hold (docs/validator.md, "Checks")."""
    with connection.cursor() as cursor:
        for kind, table in _OWNER_TABLES.items():
            cursor.execute(_OWNERS.format(f"{kind}_id", _kept_elsewhere(f"{kind}_id"), table))
            for owner, total, earned in cursor.fetchall():
                yield f"{kind} {owner}: has {total or 0} credits in all, but its results make {earned or 0}"
        cursor.execute(_VERSION_TOTALS.format("app_version_id", _kept_elsewhere("app_version_id")))
        for version, total, count, earned, found in cursor.fetchall():
            yield (
                f"version {version}: has {total} credits in all for {count} results, "
                f"but its results make {earned} for {found}"
            )
        cursor.execute(_CANONICAL)
        for workunit, fault in cursor.fetchall():
            yield f"workunit {workunit}: {fault}"
        cursor.execute(_VALID)
        for result, fault in cursor.fetchall():
            yield f"result {result}: {fault}"
        cursor.execute(_CLAIMS, [[rule.value for rule in sorted(DEFAULT_RULES)]])
        for result, stored, computed in cursor.fetchall():
            yield f"result {result}: claimed {stored} FLOPs, but its numbers make {computed}"


def _kept_elsewhere(owner: str) -> str:
    return "".join(f" UNION ALL SELECT {owner}, granted_credit, partial_credit FROM ({one}) a" for one in archives)
