"""Downloads of a history: every row of the range, as CSV or JSON, streamed with exact amounts.

Credits and seconds are decimal text with six digits after the point, so that nothing is rounded and the sums equal
those of the history page. ``granted_credit`` is empty (CSV) or null where no grants are known.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from accounting.engine.amounts import NO_WORK, Totals, format_micro
from accounting.exchange.day_rows import DayRange, DayRow, Names, flag_names

COLUMNS: Final = (
    "day",
    "project_id",
    "project",
    "project_url",
    "host_id",
    "host",
    "cpu_credit",
    "gpu_credit",
    "cpu_secs",
    "gpu_secs",
    "jobs_succeeded",
    "jobs_failed",
    "flags",
    "granted_credit",
)
AMOUNTS: Final = COLUMNS[6:12]
# Spreadsheets take a text that starts with one of these for a formula.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def amount_values(amounts: Totals) -> dict[str, str | int]:
    """Return the six amounts under their documented names: credits and seconds as decimal text, jobs as whole
    numbers.
    """
    texts = [format_micro(amount) for amount in amounts[:4]]
    return dict(zip(AMOUNTS, [*texts, *amounts[4:]], strict=True))


def row_values(row: DayRow, names: Names) -> dict[str, Any]:
    """Return a row under the documented names."""
    return {
        "day": row.day.isoformat(),
        "project_id": row.project_id,
        "project": names.project(row.project_id),
        "project_url": names.project_url(row.project_id),
        "host_id": row.host_id,
        "host": names.host(row.host_id),
        **amount_values(row.amounts),
        "flags": flag_names(row.flags),
        "granted_credit": None if (granted := names.granted(row)) is None else format_micro(granted),
    }


def as_csv(pages: Iterable[Sequence[DayRow]], names: Names) -> Iterator[bytes]:
    """Write a heading and a line per row (RFC 4180, UTF-8); flags are separated by spaces."""
    yield _csv_lines([COLUMNS])
    for page in pages:
        lines = []
        for row in page:
            values = row_values(row, names) | {"flags": " ".join(flag_names(row.flags))}
            lines.append([_plain(values[column]) for column in COLUMNS])
        yield _csv_lines(lines)


def as_json(pages: Iterable[Sequence[DayRow]], names: Names, day_range: DayRange) -> Iterator[bytes]:
    """Write one object: the range, the rows, and at the end their sums; for grants, of those that are known."""
    yield f'{{"first": "{day_range.first}", "last": "{day_range.last}", "rows": ['.encode()
    sums, granted, separator = NO_WORK, 0, "\n"
    for page in pages:
        parts = []
        for row in page:
            sums = sums.plus(row.amounts)
            granted += row.granted or 0
            parts.append(f"{separator}{json.dumps(row_values(row, names), ensure_ascii=False)}")
            separator = ",\n"
        yield "".join(parts).encode()
    totals = amount_values(sums) | {
        "granted_credit": format_micro(granted) if day_range.processor is None or day_range.app_id else None
    }
    yield f'\n], "sums": {json.dumps(totals)}}}\n'.encode()


def _csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _plain(value: object) -> object:
    """Make a value safe for spreadsheets: a possible formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
