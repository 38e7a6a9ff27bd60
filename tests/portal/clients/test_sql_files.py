"""Statements in files: constants, names and parts that are there or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.clients.database.sql_files import statement

TEXT = """-- Locks nothing.
SELECT :"COLUMNS", x::text FROM :"TABLE" WHERE state = :STATE AND id = %(id)s
\\if :SKIPS
  SKIP LOCKED
\\else
  -- It waits.
  FOR UPDATE
\\endif
\\if :LIMITS
LIMIT %(limit)s
\\endif
"""


@pytest.mark.parametrize(
    ("skips", "limits", "end", "names"),
    [
        (True, False, "SKIP LOCKED", ("id",)),
        (False, False, "FOR UPDATE", ("id",)),
        (False, True, "FOR UPDATE LIMIT $2", ("id", "limit")),
    ],
)
def test_a_statement_has_the_parts_that_are_asked_for(
    tmp_path: Path, skips: bool, limits: bool, end: str, names: tuple[str, ...]
) -> None:
    (tmp_path / "read.sql").write_text(TEXT)
    made = statement(
        str(tmp_path / "sql.py"), "read", STATE=4, COLUMNS=("a", "b"), TABLE=["t"], SKIPS=skips, LIMITS=limits
    )
    assert (
        " ".join(made.text.decode().split()) == f'SELECT "a", "b", x::text FROM "t" WHERE state = 4 AND id = $1 {end}'
    )
    assert made.names == names


def test_a_file_may_include_another_with_its_own_parts_and_constants(tmp_path: Path) -> None:
    (tmp_path / "read.sql").write_text("SELECT * FROM (\n\\ir part.sql\n) p\n")
    (tmp_path / "part.sql").write_text("-- Part of read.sql.\nSELECT :STATE\n\\if :LIMITS\nLIMIT 1\n\\endif\n")
    made = statement(str(tmp_path / "sql.py"), "read", STATE=4, LIMITS=True)
    assert " ".join(made.text.decode().split()) == "SELECT * FROM ( SELECT 4 LIMIT 1 ) p"


@pytest.mark.parametrize("part", [":STATE", ':"TABLE"', "\\if :LIMITS\n\\endif\n"])
def test_a_constant_that_is_not_given_is_an_error(tmp_path: Path, part: str) -> None:
    (tmp_path / "read.sql").write_text(f"SELECT 1\n{part}\n")
    with pytest.raises(KeyError):
        statement(str(tmp_path / "sql.py"), "read")
