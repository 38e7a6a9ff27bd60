"""Jobs as a table of comma-separated values: a line for each job, a column for each field. Pure.

Columns are the fields of a job (`scheduler.wire.job_fields`), in any order. An empty cell means the default. Files in a
cell are separated by blanks: ``open_name=file`` or ``file`` for inputs, where ``file`` is in the archive, was stored
before, or is an address; ``open_name:bytes`` or ``open_name:bytes:optional`` for outputs. A file's other properties
follow its name: ``in=https://…|nbytes=9|md5=…``, ``map=map.bin|gzip|sticky``, ``out:1000:gzip_when_done:sticky``.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Final

from portal.languages.messages import Message, at_place
from scheduler.engine.limits import MAX_JOBS_PER_SUBMISSION
from scheduler.wire.job_fields import FIELDS, OUTPUT_FLAGS, KeptContent

MAX_TABLE_NBYTES: Final = 16 * 1024 * 1024
MAX_FAULTS: Final = 100
"""Reading of a table stops after this many."""
_TEXTS: Final = ("name", "command_line")
_SCHEMES: Final = ("https://", "http://")
_SIZES: Final = ("nbytes", "gzipped_nbytes")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a table or an archive. ``place``: a line, or a file; empty: all of it."""

    place: str | Message
    field: str
    message: Message

    def __str__(self) -> str:
        return str(self.whole())

    def whole(self) -> Message:
        """Return the message with its place and field."""
        return at_place(self.place, at_place(self.field, self.message))


@dataclass(slots=True)
class JobTable:
    """Jobs as `read_jobs` takes them, and where each comes from."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    places: list[str | Message] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def read_table(text: str, files: Mapping[str, KeptContent]) -> JobTable:
    """Return the jobs of a table. ``files``: what input files may name besides stored ones."""
    table = JobTable()
    rows = csv.reader(StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    columns: list[str] | None = None
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if len(table.faults) == MAX_FAULTS:
                return table
            if columns is None:
                columns = [cell.lower() for cell in cells]
                table.faults += _wrong_columns(columns)
                if table.faults:
                    return table
            elif len(table.jobs) == MAX_JOBS_PER_SUBMISSION:
                message = Message("too_many_jobs", number=MAX_JOBS_PER_SUBMISSION)
                table.faults.append(Fault(_line(rows.line_num), "", message))
                return table
            elif len(cells) > len(columns):
                message = Message("too_many_cells", number=len(cells), wanted=len(columns))
                table.faults.append(Fault(_line(rows.line_num), "", message))
            else:
                table.jobs.append(_job(dict(zip(columns, cells, strict=False)), files))
                table.places.append(_line(rows.line_num))
    except csv.Error as error:
        table.faults.append(Fault(_line(rows.line_num), "", Message("no_csv", reason=error)))
    if columns is None and not table.faults:
        table.faults.append(Fault("", "", Message("table_empty")))
    return table


def _line(number: int) -> Message:
    return Message("table_line", number=str(number))


def _delimiter(text: str) -> str:
    """Guess the delimiter, the most frequent in the first line: some spreadsheets write semicolons or tabs."""
    first = text.lstrip()[:10_000].split("\n", 1)[0]
    return max(",;\t", key=first.count)


def _wrong_columns(columns: list[str]) -> list[Fault]:
    unknown = [name for name in columns if name not in FIELDS]
    if unknown:
        message = Message("unknown_field", names=FIELDS)
        return [Fault(_line(1), ascii(name[:40])[1:-1], message) for name in unknown[:5]]
    twice = [name for name, number in Counter(columns).items() if number > 1]
    return [Fault(_line(1), name, Message("named_twice")) for name in twice]


def _job(cells: Mapping[str, str], files: Mapping[str, KeptContent]) -> dict[str, Any]:
    return {name: field_value(name, cell, files) for name, cell in cells.items() if cell}


def field_value(name: str, text: str, files: Mapping[str, KeptContent]) -> Any:
    """Convert a cell's text to the field's value, as in JSON; text that is not a number stays text, and is refused
    later.
    """
    if name in _TEXTS:
        return text
    if name in ("input_files", "program_files"):
        return [_input(item, files) for item in text.split()]
    if name == "output_files":
        return [_output(item) for item in text.split()]
    if _WHOLE.fullmatch(text):
        return int(text)
    # JSON has no infinity.
    return float(text) if _DECIMAL.fullmatch(text) and math.isfinite(float(text)) else text


def _input(item: str, files: Mapping[str, KeptContent]) -> dict[str, Any]:
    # No address contains "|".
    source, *more = item.split("|")
    open_name, is_named, file = ("", "", source) if source.startswith(_SCHEMES) else source.partition("=")
    if not is_named:
        file = source
        open_name = file.rsplit("/", 1)[-1]
    made: dict[str, Any] = {"open_name": open_name}
    if file in files:
        made["content"] = files[file]
    else:
        made["url" if file.startswith(_SCHEMES) else "name"] = file
    for said in more:
        name, has_value, text = said.partition("=")
        value: Any = True if not has_value else int(text) if _WHOLE.fullmatch(text) and name in _SIZES else text
        made[name] = [*_several(made[name]), value] if name in made else value
    return made


def _several(value: Any) -> list[Any]:
    """Return the values given so far as a list. Addresses may be repeated; other repetitions are refused elsewhere."""
    return value if isinstance(value, list) else [value]


def _output(item: str) -> dict[str, Any]:
    open_name, _, rest = item.partition(":")
    most, *flags = rest.split(":")
    made: dict[str, Any] = {"open_name": open_name, "max_nbytes": int(most) if _WHOLE.fullmatch(most) else most}
    for flag in filter(None, flags):
        known = flag in ("optional", *OUTPUT_FLAGS)
        made[flag if known else "optional"] = True if known else flag
    return made
