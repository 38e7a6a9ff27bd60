"""Run many orders, in parallel processes where there are processors for it. No Django.

The outcomes are in the order of the orders, and do not depend on the number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from time import process_time
from typing import Any

from emulator.runs.execution import answer_of, execute
from emulator.runs.packed_timeline import pack

Report = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run's figures of merit, all data of its projects, and the timeline if requested."""

    figures: dict[str, float | None]
    projects: list[dict[str, Any]]
    cpu_secs: float
    timeline: bytes | None


def run_order(order: dict[str, Any]) -> RunOutcome:
    """Do one run. Raises ScenarioError and PolicyError."""
    began = process_time()
    result = execute(order)
    packed = pack(result) if order["timeline"] else None
    answer = answer_of(result)
    return RunOutcome(answer["figures_of_merit"], answer["projects"], process_time() - began, packed)


def run_all(orders: Sequence[dict[str, Any]], processes: int, report: Report) -> list[RunOutcome]:
    """Do all runs. `report` is called with the number of finished ones. The first failure ends all: it raises
    ScenarioError or PolicyError.
    """
    if processes == 1 or len(orders) == 1:
        outcomes = []
        for number, order in enumerate(orders, 1):
            outcomes.append(run_order(order))
            report(number)
        return outcomes
    # Spawned rather than forked: whatever this process has open or locked is not in them.
    pool = ProcessPoolExecutor(min(processes, len(orders)), mp_context=get_context("spawn"))
    try:
        futures = [pool.submit(run_order, order) for order in orders]
        for number, future in enumerate(as_completed(futures), 1):
            future.result()
            report(number)
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
