"""What tests cost: each run ends with the slowest thirty and with each folder's share of the processor time.

With ``--check-shares``, as `.ci/run` has it, a run fails if a folder's share is a quarter above the one that
docs/explanation/testing.md names: anyone who makes a folder grow says so there.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Generator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.process_guard import descendants
from tests.support.rings import watch

NSLOWEST: Final = 30
MANY: Final = 1_000
"""Shares of fewer tests say nothing."""
GROWTH: Final = 1.25
SLACK_PERCENT: Final = 1.0
"""What small folders vary by."""
TICKS: Final = os.sysconf("SC_CLK_TCK")
_ROW: Final = re.compile(r"^\| `(?P<folder>[^`]+)` \| (?P<percent>[\d.]+) % \|", re.MULTILINE)
_COST: Final = "cost"


class Cost(NamedTuple):
    cpu_secs: float = 0.0
    nprocesses: int = 0
    secs: float = 0.0


def folder_of(nodeid: str) -> str:
    """Two parts of the path: `tests/credit`, `extras/alerts`."""
    return "/".join(nodeid.split("::")[0].split("/")[:2])


def shares(costs: Mapping[str, Cost]) -> dict[str, float]:
    """Percent of the processor time, by folder, greatest first."""
    by_folder: defaultdict[str, float] = defaultdict(float)
    for nodeid, cost in costs.items():
        by_folder[folder_of(nodeid)] += cost.cpu_secs
    whole = sum(by_folder.values()) or 1
    most_first = sorted(by_folder.items(), key=itemgetter(1), reverse=True)
    return {folder: 100 * secs / whole for folder, secs in most_first}


def noted_shares(document: str) -> dict[str, float]:
    return {row["folder"]: float(row["percent"]) for row in _ROW.finditer(document)}


def grown(measured: Mapping[str, float], noted: Mapping[str, float]) -> list[str]:
    """What to say of each folder whose share is a quarter above the noted one."""
    return [
        f"{folder}: {percent:.1f} % of the processor time, {noted.get(folder, 0)} % in docs/explanation/testing.md"
        for folder, percent in measured.items()
        if percent > GROWTH * noted.get(folder, 0) + SLACK_PERCENT
    ]


def _cpu_secs() -> float:
    """Of this process, of those that it started, and of those of them that have ended."""
    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--check-shares", action="store_true", help="fail if a folder's share has grown by a quarter")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(config), "costs-report")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_BEGIN] = _cpu_secs(), watch.nprocesses
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown":
        cpu_secs, nprocesses = item.stash[_BEGIN]
        report.user_properties.append((_COST, [_cpu_secs() - cpu_secs, watch.nprocesses - nprocesses]))
    return report


_BEGIN: Final = pytest.StashKey[tuple[float, int]]()


class _Report:
    """Collects what all test processes report."""

    def __init__(self, config: pytest.Config) -> None:
        self._costs: dict[str, Cost] = {}
        self._config = config
        self._grown: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self._costs.get(report.nodeid, Cost())
        cost = cost._replace(secs=cost.secs + report.duration)
        for name, value in report.user_properties:
            if name == _COST:
                assert isinstance(value, list)
                cost = cost._replace(cpu_secs=value[0], nprocesses=value[1])
        self._costs[report.nodeid] = cost

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._config.getoption("check_shares") and len(self._costs) >= MANY:
            document = self._config.rootpath / "docs" / "explanation" / "testing.md"
            self._grown = grown(shares(self._costs), noted_shares(document.read_text()))
            if self._grown and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._costs) < MANY:
            return
        terminalreporter.section(f"slowest {NSLOWEST}: seconds, of a processor, processes started")
        for nodeid, cost in sorted(self._costs.items(), key=lambda each: -each[1].secs)[:NSLOWEST]:
            terminalreporter.line(f"{cost.secs:6.1f} {cost.cpu_secs:6.1f} {cost.nprocesses:3} {nodeid}")
        cpu_secs = sum(cost.cpu_secs for cost in self._costs.values())
        terminalreporter.section(f"shares of {cpu_secs:.0f} processor seconds")
        for folder, percent in shares(self._costs).items():
            terminalreporter.line(f"{percent:5.1f} % {folder}")
        for line in self._grown:
            terminalreporter.line(f"FAILED {line}", red=True)
