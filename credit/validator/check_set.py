"""Compares the outputs of a pass: which results of each workunit are valid, or why they could not be compared."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

from django.db import DatabaseError, transaction

from credit.engine.quorum import Equal, Verdict, check_late, check_set, check_too_late
from credit.engine.states import ValidateState
from credit.models import App, Comparison, Result
from credit.validator.binary import Column
from credit.validator.comparison import (
    DIGEST_BYTES,
    Comparer,
    ComparisonError,
    Delivered,
    NotPreparedError,
    agree,
    comparer_of,
    delivered,
    fitness,
    needs_files,
)
from credit.validator.reads import Results, Workunits


@cache
def _all_valid(count: int) -> Verdict:
    """Return the usual verdict, cached."""
    return Verdict([ValidateState.VALID] * count, 0)


class SetChecker:
    """Compares outputs workunit by workunit.

    ``quorums``: how many results must agree; ``comparer`` None: the app's. ``faults``: why outputs could not be
    compared, by workunit id. ``outliers``: ids of results whose run time a project's function calls an outlier.
    ``assigned``: the credit that it assigns, by result.
    """

    def __init__(
        self, app: App, workunits: Workunits, results: Results, quorums: Column, comparer: Comparer | None = None
    ) -> None:
        self.quorums = quorums.tolist()
        self.canonical_ids = workunits.canonical_id.tolist()
        self.workunit_ids = workunits.id.tolist()
        self.ids = results.id.tolist()
        # A digest of the wrong length is invalid, and equals nothing.
        self.digests = [d if d is not None and len(d) == DIGEST_BYTES else None for d in results.digest]
        self.faults: dict[int, str] = {}
        self.outliers: set[int] = set()
        self.assigned: dict[int, float] = {}
        # A project's function may use the database, and fail there without harm to the pass.
        is_foreign = app.comparison == Comparison.CUSTOM and comparer is None
        self.guard: Any = transaction.atomic if is_foreign else nullcontext
        self.reads_files = needs_files(app)
        if self.reads_files:
            outputs = dict(Result.objects.filter(pk__in=self.ids).values_list("pk", "outputs"))
            self.delivered = [delivered(i, d, outputs.get(i)) for i, d in zip(self.ids, self.digests, strict=True)]
            self._find_comparer(app, comparer)

    def _find_comparer(self, app: App, comparer: Comparer | None) -> None:
        try:
            self.comparer = comparer or comparer_of(app)
        except ComparisonError as error:
            self.faults = dict.fromkeys(self.workunit_ids, str(error))

    def verdict(self, number: int, begin: int, end: int) -> Verdict | None:
        """Return the verdict on a workunit with the results from ``begin`` to ``end``; None if they could not be
        compared.
        """
        if not self.reads_files:
            digests = self.digests[begin:end]
            enough = len(digests) >= self.quorums[number] and not self.canonical_ids[number]
            if enough and digests[0] is not None and digests.count(digests[0]) == len(digests):
                # The usual case: all agree.
                return _all_valid(len(digests))
            return self._check(
                number, begin, end, lambda one, other: digests[one] is not None and digests[one] == digests[other]
            )
        if self.workunit_ids[number] in self.faults:
            return None
        here = self.delivered[begin:end]
        try:
            with self.guard():
                return self._check(number, begin, end, lambda one, other: self._agree(here[one], here[other]))
        except NotPreparedError:
            return None
        except (ComparisonError, DatabaseError) as error:
            # DatabaseError: a project's function suppressed a failure of the database.
            self.faults[self.workunit_ids[number]] = str(error)
            return None

    def _agree(self, one: Delivered, other: Delivered) -> bool:
        if one is not other:
            return agree(self.comparer, one, other)
        fit = fitness(self.comparer, one)
        if fit is None:
            return False
        if fit.is_outlier:
            self.outliers.add(one.result_id)
        if fit.credit is not None:
            self.assigned[one.result_id] = fit.credit
        return True

    def _check(self, number: int, begin: int, end: int, equal: Equal) -> Verdict:
        canonical = self.canonical_ids[number]
        if not canonical:
            return check_set(end - begin, self.quorums[number], equal)
        ids = self.ids[begin:end]
        if canonical not in ids:
            return check_too_late(end - begin)
        place = ids.index(canonical)
        if not equal(place, place):
            # Its files are gone, which is not the fault of the results that come now.
            return check_too_late(end - begin)
        return check_late(end - begin, place, equal)


def wrong_places(results: Results, begins: Sequence[int], verdicts: Sequence[Verdict | None]) -> list[int]:
    """Return the positions of results that these verdicts, one for each workunit, find wrong."""
    valid, invalid = ValidateState.VALID, ValidateState.INVALID
    return [
        begin + n
        for begin, verdict in zip(begins, verdicts, strict=True)
        if verdict is not None
        for n, state in enumerate(verdict.states)
        if state is invalid and results.validate_state[begin + n] != valid
    ]
