"""Compares outputs of replicas: bit by bit, as numbers within a tolerance, or by a project's own function.

Digests of two results are equal if and only if all outputs are, so equal digests need no reading. Files are read
through Django's default storage, with limits. A fault of one result's outputs makes that result unfit; a fault of the
storage or of the project's function raises `ComparisonError`, and then none of the results is decided.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap, zip_longest
from typing import Any, Final, Protocol

from django.core.files.storage import default_storage

from credit import functions
from credit.engine.rules import MAX_CREDIT
from credit.models import App, Comparison

MAX_FILES: Final = 100
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
DIGEST_BYTES: Final = 16
_WORD: Final = re.compile(rb"[^\s,]+")


class ComparisonError(Exception):
    """Outputs could not be compared, through no fault of their computers."""


class NotPreparedError(Exception):
    """A slow function has not been called for these results yet."""


class UnfitOutputError(Exception):
    """A result's outputs are missing, too large, or unreadable for the comparison."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output file: ``number`` is its position in the workunit's list; ``path`` that of the default storage."""

    number: int
    path: str
    nbytes: int
    md5: str

    def read(self) -> bytes:
        """Read its bytes. Raises UnfitOutputError if it is missing or too large, OSError if the storage fails."""
        try:
            with default_storage.open(self.path, "rb") as file:
                data: bytes = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError as error:
            raise UnfitOutputError(f"{self.path} is missing from the storage") from error
        if len(data) > MAX_FILE_BYTES:
            raise UnfitOutputError(f"{self.path} has more than {MAX_FILE_BYTES} bytes")
        return data


@dataclass(frozen=True, slots=True)
class Delivered:
    """A result's outputs, as a project's function sees them."""

    result_id: int
    digest: bytes | None
    outputs: tuple[Output, ...]


RUNTIME_OUTLIER: Final = "runtime outlier"
"""A project's function may return this for a result that is compared with itself: the result is fit, but its run time
says nothing about others', for example because the job ended early. It gives no samples.
"""


@dataclass(frozen=True, slots=True)
class Fit:
    """A project's function may also return this for a fit result: its credit (Cobblestones), for apps whose credit the
    function assigns, and whether its run time is an outlier.
    """

    credit: float | None = None
    is_outlier: bool = False

    def __post_init__(self) -> None:
        if self.credit is not None and not 0 <= self.credit <= MAX_CREDIT:
            raise ValueError(f"credit: {self.credit!r} is not a number from 0 to {MAX_CREDIT:g}")


class Comparer(Protocol):
    """Whether two results agree. Called with the same result twice, it says whether that result is fit at all.

    A project's function has the same form. For a result compared with itself it may raise `UnfitOutputError`, or return
    `RUNTIME_OUTLIER` or a `Fit`.
    """

    def __call__(self, first: Delivered, second: Delivered) -> bool | str | Fit: ...


def comparer_of(app: App) -> Comparer:
    """Return the app's way to compare; raises ComparisonError if its function cannot be found."""
    if app.comparison == Comparison.TOLERANCE:
        return WithinTolerance(app.comparison_tolerance, app.comparison_absolute_tolerance)
    if app.comparison == Comparison.CUSTOM:
        return _function(app.comparison_function)
    return to_the_bit


def needs_files(app: App) -> bool:
    """Whether its results are compared by more than their digests."""
    return app.comparison != Comparison.BITWISE


def to_the_bit(first: Delivered, second: Delivered) -> bool:
    return first.digest is not None and first.digest == second.digest


def delivered(result_id: int, digest: bytes | None, outputs: Any) -> Delivered:
    """Build it from the result's column ``outputs``.

    If that is not a list of at most `MAX_FILES` files, there is no digest.
    """
    files = outputs if isinstance(outputs, list) else []
    readable = [_output(file, place) for place, file in enumerate(files[:MAX_FILES])]
    whole = len(files) <= MAX_FILES and None not in readable and (outputs is None or isinstance(outputs, list))
    is_digest = whole and digest is not None and len(digest) == DIGEST_BYTES
    return Delivered(
        result_id, digest if is_digest else None, tuple(output for output in readable if output is not None)
    )


def _output(file: Any, place: int) -> Output | None:
    nbytes = (file.get("nbytes") or 0) if isinstance(file, dict) else None
    if not isinstance(nbytes, int) or nbytes < 0:
        return None
    return Output(_number(file, place), str(file.get("path", "")), nbytes, str(file.get("md5")))


def agree(comparer: Comparer, first: Delivered, second: Delivered) -> bool:
    """Whether two results agree by this comparison; ComparisonError if it fails."""
    return bool(_compare(comparer, first, second))


def fitness(comparer: Comparer, result: Delivered) -> Fit | None:
    """Compare a result with itself; None if it is not fit to be compared."""
    answer = _compare(comparer, result, result)
    if isinstance(answer, Fit):
        return answer
    return Fit(is_outlier=answer == RUNTIME_OUTLIER) if answer else None


def _compare(comparer: Comparer, first: Delivered, second: Delivered) -> bool | str | Fit:
    try:
        answer = comparer(first, second)
        return answer if isinstance(answer, str | Fit) else bool(answer)
    except UnfitOutputError:
        return False
    except (ComparisonError, NotPreparedError):
        raise
    except Exception as error:
        # A project's function may raise anything, and a storage its own errors.
        raise ComparisonError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class WithinTolerance:
    """Compares text files of numbers, separated by white space or commas; other words must be equal.

    Numbers are equal if they differ by at most ``relative`` times the larger one, or by ``absolute``. NaN or infinity
    makes its result unfit: a diverged computation agrees with nothing.
    """

    relative: float
    absolute: float

    def __call__(self, first: Delivered, second: Delivered) -> bool:
        if first.result_id == second.result_id:
            _check_total(first)
            for output in first.outputs:
                for _ in _words(output):
                    pass
            return first.digest is not None
        if to_the_bit(first, second):
            return True
        mine = {output.number: output for output in first.outputs}
        theirs = {output.number: output for output in second.outputs}
        return mine.keys() == theirs.keys() and all(self._files_agree(mine[n], theirs[n]) for n in mine)

    def _files_agree(self, mine: Output, theirs: Output) -> bool:
        if mine.md5 == theirs.md5 and mine.nbytes == theirs.nbytes:
            return True
        return all(starmap(self._equal, zip_longest(_words(mine), _words(theirs))))

    def _equal(self, left: float | bytes | None, right: float | bytes | None) -> bool:
        if isinstance(left, float) and isinstance(right, float):
            return math.isclose(left, right, rel_tol=self.relative, abs_tol=self.absolute)
        return left == right


def _words(output: Output) -> Iterator[float | bytes]:
    """Yield words one by one: as Python numbers, all words of a file would take thirty times its size."""
    for match in _WORD.finditer(output.read()):
        word = match[0]
        try:
            number = float(word)
        except ValueError:
            yield word
            continue
        if not math.isfinite(number):
            raise UnfitOutputError(f"{output.path} has an invalid number: {word[:20]!r}")
        yield number


def _check_total(result: Delivered) -> None:
    if sum(output.nbytes for output in result.outputs) > MAX_TOTAL_BYTES:
        raise UnfitOutputError(f"result {result.result_id} has more than {MAX_TOTAL_BYTES} bytes of output")


def _function(path: str) -> Comparer:
    try:
        function: Comparer = functions.load(functions.FunctionKind.COMPARISON, path)
    except Exception as error:
        # Importing a project's module may raise anything.
        raise ComparisonError(f"the function {path} cannot be used: {error}") from error
    return function


def _number(file: dict[str, Any], place: int) -> int:
    """Return the n of ``<result name>_<n>``: an optional file may be missing, so the position in the list is not
    enough.
    """
    tail = str(file.get("name", "")).rpartition("_")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 4 else place
