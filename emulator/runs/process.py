"""A separate process that reads uploaded files, runs a scenario, or replays one. No Django, no database.

Uploads are not trusted, and a scenario may need more time or memory than available. So the process limits itself before
it reads its input, and its parent may kill it at any time.

Standard input: one line of JSON, then, to read files, a ZIP of them. Standard output: lines ``progress <fraction>``,
then one line of JSON, ``{"ok": …}`` or ``{"fault": …}``, with ``nbytes`` if a packed timeline follows.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from dataclasses import asdict, replace
from typing import Any, BinaryIO, Final

from portal.languages.messages import VERBATIM, Message

PROGRESS_SECS: Final = 0.5
TRIALS_PART: Final = 0.5  # fraction of the remaining processor time, for trials
RUN_PART: Final = 0.5  # fraction of the displayed progress, for the run itself if changes are tried after it
_writing = threading.Lock()


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    limit = order["bytes_max"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # The kernel ends the process some seconds after the soft limit, whatever it does.
    resource.setrlimit(resource.RLIMIT_CPU, (order["secs_max"], order["secs_max"] + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer, data = work(order, sys.stdin.buffer)
    except MemoryError:
        answer, data = {"fault": Message("run_memory_limit", mib=round(limit / 2**20)).to_json()}, b""
    with _writing:
        out = sys.stdout.buffer
        out.write(json.dumps({**answer, "nbytes": len(data)}).encode() + b"\n")
        out.write(data)
        out.flush()


def work(order: dict[str, Any], files: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Return the answer to the order, and its packed timeline."""
    return _WORK[order["do"]](order, files)


def _read(_: dict[str, Any], files: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Return the scenario of the files, or their faults."""
    from emulator.engine.scenario import ScenarioError
    from emulator.files.scenario import read_zip
    from emulator.files.scenario_json import to_json

    try:
        scenario = read_zip(files.read())
    except ScenarioError as error:
        return {"fault": error.message.to_json()}, b""
    # Others may see what is stored, so the computer's name is left out.
    return {"ok": to_json(replace(scenario, host=replace(scenario.host, name="")))}, b""


class _Progress:
    """Writes the progress of the order, 0 to 1, every half a second until the block ends: a part of it for each run."""

    def __init__(self) -> None:
        self._run: Any = None
        self._before, self._part = 0.0, 0.0
        self._is_over = threading.Event()

    def begin(self, run: Any, part: float = 1.0) -> None:
        """Set the present run, and which part of the order it is."""
        self._before, self._run, self._part = self._before + self._part, run, part

    @property
    def fraction(self) -> float:
        return self._before + self._part * self._run.done_fraction if self._run is not None else 0.0

    def __enter__(self) -> _Progress:
        threading.Thread(target=self._write, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _write(self) -> None:
        while not self._is_over.wait(PROGRESS_SECS):
            with _writing:
                # Nothing may come after the answer.
                if not self._is_over.is_set():
                    sys.stdout.buffer.write(f"progress {self.fraction:.4f}\n".encode())
                    sys.stdout.buffer.flush()


def _run(order: dict[str, Any], _: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Return figures and projects; the packed timeline if requested."""
    from emulator.engine.policy import PolicyError
    from emulator.engine.scenario import ScenarioError
    from emulator.runs.execution import answer_of, execute
    from emulator.runs.packed_timeline import pack

    began_secs = time.process_time()
    has_trials = order["timeline"] and order["tries"]
    begun: list[Any] = []
    with _Progress() as progress:

        def began(run: Any) -> None:
            begun.append(run)
            progress.begin(run, RUN_PART if has_trials else 1.0)

        try:
            result = execute(order, began)
        except ScenarioError as error:
            return {"fault": error.message.to_json()}, b""
        except PolicyError as error:
            return {"fault": Message(VERBATIM, text=error).to_json()}, b""
        answer = answer_of(result, order["secs_max"] - (time.process_time() - began_secs))
        if order["timeline"]:
            answer["answer"] = _answer(order, begun[0], result, began_secs, progress)
    answer["cpu_secs"] = time.process_time() - began_secs
    return {"ok": answer}, pack(result) if order["timeline"] else b""


def _replay(order: dict[str, Any], _: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Return a policy's knowledge at one of its run's decisions."""
    from emulator.engine.replay import DecisionKey, ReplayError
    from emulator.runs.execution import replay

    with _Progress() as progress:
        try:
            return {"ok": replay(order, DecisionKey(**order["decision"]), progress.begin)}, b""
        except ReplayError as error:
            return {"fault": error.message.to_json()}, b""


def _answer(order: dict[str, Any], run: Any, result: Any, began_secs: float, progress: _Progress) -> dict[str, Any]:
    """Return the findings and, if requested, the results of the trials; without trials if they would take too long."""
    from emulator.advice.findings import find
    from emulator.advice.trials import TRIALS_MAX, trial_days, try_all
    from emulator.engine.timeline.results import Result
    from emulator.files.scenario_json import from_json
    from emulator.runs.execution import run_of

    scenario = from_json(order["scenario"])
    findings = find(scenario, result)
    if not order["tries"]:
        return {"findings": asdict(findings), "outcome": None}
    days = trial_days(order["days"], run.events)
    used_secs = time.process_time() - began_secs
    # One more than the trials: the unchanged scenario.
    needed_secs = (TRIALS_MAX + 1) * used_secs * days / order["days"]
    if needed_secs > TRIALS_PART * (order["secs_max"] - used_secs):
        return {"findings": asdict(findings), "outcome": None, "are_trials_skipped": True}

    def again(changed: Any, its_days: float) -> Result:
        trial = run_of(order, changed, its_days, timeline=False)
        progress.begin(trial, (1 - RUN_PART) / (TRIALS_MAX + 1))
        return trial.result()

    return {"findings": asdict(findings), "outcome": asdict(try_all(scenario, findings, result, days, again))}


_WORK: Final = {"read": _read, "run": _run, "replay": _replay}


if __name__ == "__main__":
    main()
