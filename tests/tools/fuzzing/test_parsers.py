"""What fuzzing found stays mended, its seeds are read, and it finds a fault that is sown."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from emulator.engine.scenario import ScenarioError
from emulator.files.scenario import read_zip
from tools.fuzzing.parsers import FOUND, PARSERS, Parser, found

INPUTS = [(parser, path) for parser in PARSERS for path in found(parser)]


@pytest.mark.parametrize(("parser", "path"), INPUTS, ids=[f"{parser}/{path.name}" for parser, path in INPUTS])
def test_what_was_found_once_is_refused_by_the_parsers_own_error(parser: str, path: Path) -> None:
    assert not PARSERS[parser].read(path.read_bytes())


def test_what_was_found_belongs_to_a_parser() -> None:
    assert {path.name for path in FOUND.iterdir()} <= PARSERS.keys()


@pytest.mark.parametrize("parser", PARSERS.values(), ids=lambda parser: parser.name)
def test_each_parser_takes_some_of_its_seeds(parser: Parser) -> None:
    taken = [parser.read(data) for data in parser.seeds()]
    assert any(taken)


def test_an_archive_whose_lzma_stream_is_damaged_is_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("client_state.xml", b"<client_state>" * 50)
    data = bytearray(packed.getvalue())
    begin = data.index(b"client_state.xml") + len("client_state.xml")
    data[begin + 2 : begin + 24] = b"\xff" * 22
    with pytest.raises(ScenarioError, match="damaged"):
        read_zip(bytes(data))


SOWN = """
import sys
import atheris
with atheris.instrument_imports(include=["portal"]):
    from portal.wire.scanner import TagScanner

def read(data):
    scanner = TagScanner(data)
    try:
        while (tag := scanner.next()) is not None:
            if tag == b"ab":
                raise ZeroDivisionError
    except ValueError:
        pass
    except Exception as error:
        if type(error).__name__ != "ProtocolError":
            raise

atheris.Setup(sys.argv, read)
atheris.Fuzz()
"""


@pytest.mark.system
def test_a_sown_fault_is_found(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this system")
    seed = tmp_path / "seeds"
    seed.mkdir()
    (seed / "1").write_bytes(b"<a>1</a>")
    done = subprocess.run(
        [sys.executable, "-c", SOWN, "-runs=2000000", "-seed=1", f"-artifact_prefix={tmp_path}/", str(seed)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stdout + done.stderr
    assert b"<ab>" in next(tmp_path.glob("crash-*")).read_bytes()
