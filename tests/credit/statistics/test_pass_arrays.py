"""Arrays that are stored with a pass: the same bits come back, and a column of one value takes the space of one."""

from __future__ import annotations

import numpy as np
import pytest

from credit.statistics.pass_arrays import RECORDS, RESULTS, VERSIONS, WORKUNITS, Array, decode, encode

nan = float("nan")


def encoded(rows: Array) -> bytes:
    return encode(rows.dtype, {name: rows[name] for name in rows.dtype.names or ()}, len(rows))


@pytest.mark.parametrize("dtype", [VERSIONS, RECORDS, WORKUNITS, RESULTS])
@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_any_bits_come_back(dtype: np.dtype[np.void], count: int) -> None:
    random = np.random.default_rng(count).bytes(count * dtype.itemsize)
    assert decode(encoded(np.frombuffer(random, dtype)), dtype).tobytes() == random


@pytest.mark.parametrize(
    ("values", "nkept"),
    [
        ([nan] * 100, 1),
        ([7.25] * 100, 1),
        ([7.25] * 99 + [nan], 100),
        # Equal as numbers, but not the same bits
        ([0.0] * 99 + [-0.0], 100),
    ],
)
def test_a_column_of_one_value_takes_the_room_of_one(values: list[float], nkept: int) -> None:
    rows = np.zeros(100, np.dtype([("one", "<f8")]))
    rows["one"] = values
    data = encoded(rows)
    # The count, the mark of the column, and its values.
    assert len(data) == 8 + 1 + 8 * nkept
    assert decode(data, rows.dtype).tobytes() == rows.tobytes()


def test_a_field_that_was_never_filled_has_no_rows() -> None:
    assert len(decode(b"", RESULTS)) == 0
