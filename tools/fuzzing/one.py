"""Fuzz one parser: ``python -m tools.fuzzing.one PARSER [options of libFuzzer] FOLDER…``; the process ends with it."""

from __future__ import annotations

import sys

import atheris

# atheris counts what runs in these packages, so it has to see them being imported.
with atheris.instrument_imports(include=["accounting", "scheduler", "emulator", "portal"]):
    from tools.fuzzing.parsers import PARSERS


def main(name: str, *options: str) -> None:
    atheris.Setup([sys.argv[0], *options], PARSERS[name].read)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
