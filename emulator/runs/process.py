"""A separate process that reads uploaded files or runs a scenario. No Django, no database.

Uploads are not trusted, and a scenario may need more time or memory than there is. So the process limits itself
before it reads its input, and its parent may kill it at any time.

Standard input: one line of JSON, then, to read files, a ZIP of them. Standard output: lines ``progress <fraction>``,
then one line of JSON, ``{"ok": …}`` or ``{"fault": …}``, with ``nbytes`` if a packed timeline follows.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from dataclasses import asdict
from typing import Any, Final

PROGRESS_SECS: Final = 0.5
TRIALS_PART: Final = 0.5  # of the processor time that is left, for trials


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    limit = order["bytes_max"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # The kernel ends the process some seconds after the soft limit, whatever it does.
    resource.setrlimit(resource.RLIMIT_CPU, (order["secs_max"], order["secs_max"] + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer, data = (_read if order["do"] == "read" else _run)(order)
    except MemoryError:
        answer, data = (
            {"fault": f"It needs more than {limit / 2**20:.0f} MiB of memory. Try fewer days or projects."},
            b"",
        )
    out = sys.stdout.buffer
    out.write(json.dumps({**answer, "nbytes": len(data)}).encode() + b"\n")
    out.write(data)
    out.flush()


def _read(_: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The scenario of the files, or their faults."""
    from emulator.engine.scenario import ScenarioError
    from emulator.files.scenario import read_zip
    from emulator.files.scenario_json import to_json

    try:
        scenario = read_zip(sys.stdin.buffer.read())
    except ScenarioError as error:
        return {"fault": str(error)}, b""
    return {"ok": to_json(scenario)}, b""


def _run(order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Figures and projects; the packed timeline if it is wanted."""
    from emulator.engine.policies.registry import make_policy
    from emulator.engine.quirks import BOINC, Quirks
    from emulator.engine.run import Run
    from emulator.engine.scenario import ScenarioError
    from emulator.files.scenario_json import from_json
    from emulator.runs.attainable import figures_of_merit
    from emulator.runs.packed_timeline import pack

    try:
        scenario = from_json(order["scenario"])
        quirks = BOINC if order["has_quirks"] else Quirks()
        policy = make_policy(order["policy"], scenario, order["parameters"])
        run = Run(scenario, policy, order["days"], order["seed"], quirks, timeline=order["timeline"])
    except ScenarioError as error:
        return {"fault": str(error)}, b""
    done = threading.Event()
    reporter = threading.Thread(target=_report_progress, args=(run, done), daemon=True)
    reporter.start()
    result = run.result()
    done.set()
    reporter.join()
    answer: dict[str, Any] = {
        "figures_of_merit": figures_of_merit(result),
        "projects": [_project(row) for row in result.projects],
    }
    if order["timeline"]:
        answer["answer"] = _answer(order, scenario, run, result)
    answer["cpu_secs"] = time.process_time()
    return {"ok": answer}, pack(result) if order["timeline"] else b""


def _answer(order: dict[str, Any], scenario: Any, run: Any, result: Any) -> dict[str, Any]:
    """The findings and, if they are wanted, what came of the trials; without trials if they would take too long."""
    from emulator.advice.findings import find
    from emulator.advice.trials import TRIALS_MAX, trial_days, try_all
    from emulator.engine.policies.registry import make_policy
    from emulator.engine.run import Run
    from emulator.engine.timeline.results import Result

    findings = find(scenario, result)
    if not order["tries"]:
        return {"findings": asdict(findings), "outcome": None}
    days = trial_days(order["days"], run.events)
    used_secs = time.process_time()
    # One more than the trials: the scenario as it is.
    needed_secs = (TRIALS_MAX + 1) * used_secs * days / order["days"]
    if needed_secs > TRIALS_PART * (order["secs_max"] - used_secs):
        return {"findings": asdict(findings), "outcome": None, "are_trials_skipped": True}

    def again(changed: Any, its_days: float) -> Result:
        policy = make_policy(order["policy"], changed, order["parameters"])
        return Run(changed, policy, its_days, order["seed"], run.quirks, timeline=False).result()

    outcome = try_all(scenario, findings, result, days, again)
    return {"findings": asdict(findings), "outcome": asdict(outcome)}


def _project(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in type(row).__slots__}


def _report_progress(run: Any, done: threading.Event) -> None:
    while not done.wait(PROGRESS_SECS):
        line = f"progress {run.done_fraction:.4f}\n".encode()
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
