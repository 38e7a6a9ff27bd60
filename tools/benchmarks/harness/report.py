"""The benchmarks by name: run, shown as a table, and written to var/bench.json next to those of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from django.conf import settings

BENCHMARKS: Final = ("am_rpc", "history", "validator", "scheduler_rpc", "preview", "emulator", "pages")
BY_NAME_ONLY: Final = ("large_site", "soak", "export", "import", "dashboard", "emulator_growth", "import_boinc")
"""Benchmarks that take long."""
_MODULES: Final = {"import": "statistics_import"}


def run(names: Sequence[str], write: Callable[[str], object]) -> None:
    """Measure, by ``measure()`` of each benchmark's module."""
    path = settings.VAR_DIR / "bench.json"
    report = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        report[name] = import_module(f"tools.benchmarks.{_MODULES.get(name, name)}").measure()
        write(f"\n{name}")
        for key, value in report[name].items():
            write(f"  {key:<16} {_row(value)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


def _row(value: Any) -> object:
    return "  ".join(f"{name} {figure}" for name, figure in value.items()) if isinstance(value, dict) else value
