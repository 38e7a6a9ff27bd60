"""Prepares the answers of a slow comparison function before a pass, while no row is locked.

A pass locks workunits, and their reports wait for it. So a function that may take seconds is called beforehand, in the
same steps as in a pass. The pass then uses its answers; workunits that changed meanwhile and need other answers wait
for the next one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from django.db import connection, transaction

from credit import functions
from credit.models import App, Comparison
from credit.validator.check_set import SetChecker
from credit.validator.comparison import (
    Comparer,
    ComparisonError,
    Delivered,
    Fit,
    NotPreparedError,
    UnfitOutputError,
    comparer_of,
)
from credit.validator.reads import lock_workunits, places_of, read_results
from portal.databases.clocks import database_now

LONGEST_SECS: Final = 300
"""No function is called for a workunit this long after the deadline.

Well below the time at which a worker is killed.
"""
Answer = bool | str | Fit | ComparisonError


@dataclass(slots=True)
class PreparedAnswers:
    """A function's answers on pairs of results, by their ids. ``nworkunits``: how many workunits they cover."""

    function: str
    answers: dict[tuple[int, int], Answer] = field(default_factory=dict)
    nworkunits: int = 0

    def __call__(self, first: Delivered, second: Delivered) -> bool | str | Fit:
        answer = self.answers.get((first.result_id, second.result_id))
        if answer is None:
            raise NotPreparedError
        if isinstance(answer, ComparisonError):
            raise answer
        return answer


def prepared_comparer(app: App, prepared: PreparedAnswers | None) -> Comparer | None:
    """Return the comparer of a pass if the app's function is slow: the prepared answers, if they are from it."""
    if not has_slow_function(app):
        return None
    if prepared is None or prepared.function != app.comparison_function:
        return PreparedAnswers(app.comparison_function)
    return prepared


def has_slow_function(app: App) -> bool:
    return _slow_function(app) is not None


def _slow_function(app: App) -> functions.SlowFunction | None:
    if app.comparison != Comparison.CUSTOM:
        return None
    try:
        function = comparer_of(app)
    except ComparisonError:
        return None  # the pass reports why
    return function if functions.is_slow(function) else None


def prepare(app: App, limit: int, deadline: float) -> PreparedAnswers | None:
    """Call the app's function for up to ``limit`` waiting workunits, until ``deadline`` (`time.monotonic`).

    None if the function is not slow. At least one workunit is begun, and returns later if it takes too long. Locks
    nothing except while it reads.
    """
    function = _slow_function(app)
    if function is None:
        return None
    prepared = PreparedAnswers(app.comparison_function)
    now_us = round(database_now().timestamp() * 1e6)
    with transaction.atomic(), connection.cursor() as cursor:
        # Statements on columns need an open transaction.
        cursor.execute("SET LOCAL jit = off")
        workunits = lock_workunits(app.pk, limit, now_us)
        if not len(workunits.id):
            return prepared
        results = read_results(workunits.id)
    begins, ends = places_of(workunits, results)
    quorums = workunits.min_quorum - workunits.are_unconfirmed(begins, ends, now_us)
    with function.session() as session:

        def ask(first: Delivered, second: Delivered) -> bool | str | Fit:
            if time.monotonic() >= deadline + LONGEST_SECS:
                answer: Answer = ComparisonError(f"{app.comparison_function} takes too long for its results")
            else:
                answer = _answer(session, first, second)
            prepared.answers[first.result_id, second.result_id] = answer
            if isinstance(answer, ComparisonError):
                raise answer
            return answer

        checker = SetChecker(app, workunits, results, quorums, ask)
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            if session.is_over or (number and time.monotonic() >= deadline):
                break
            checker.verdict(number, begin, end)
            prepared.nworkunits += 1
    return prepared


def _answer(session: functions.Session, first: Delivered, second: Delivered) -> Answer:
    try:
        answer: bool | str | Fit = session(first, second)
    except UnfitOutputError:
        return False
    except ComparisonError as error:
        return error
    except Exception as error:
        return ComparisonError(f"{type(error).__name__}: {error}")
    return answer
