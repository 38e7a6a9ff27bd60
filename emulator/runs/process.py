"""A separate process that reads uploaded files or runs a scenario. No Django, no database.

Uploads are not trusted, and a scenario may need more time or memory than there is. So the process limits itself
before it reads its input, and its parent may kill it at any time.

Standard input: one line of JSON, then, to read files, a zip of them. Standard output: lines ``progress <fraction>``,
then one line of JSON, ``{"ok": …}`` or ``{"fault": …}``, with ``nbytes`` if a packed timeline follows.

A policy from outside (``is_own_policy``) runs here too. The parent starts this process in a sandbox for it
(emulator.runs.sandbox); what the policy prints does not get between the answer's lines.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import threading
import zipfile
from typing import Any, BinaryIO, Final

PROGRESS_SECS: Final = 0.5
_writing = threading.Lock()
_out: list[BinaryIO] = [sys.stdout.buffer]


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    limit = order["bytes_max"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # The kernel ends the process some seconds after the soft limit, whatever it does.
    resource.setrlimit(resource.RLIMIT_CPU, (order["secs_max"], order["secs_max"] + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if order.get("is_own_policy"):
        _keep_apart()
        _write_progress(0.0)  # the sandbox works: from here on the policy is to blame
    try:
        answer, data = (_read if order["do"] == "read" else _run)(order)
    except MemoryError:
        answer, data = (
            {"fault": f"It needs more than {limit / 2**20:.0f} MiB of memory. Try fewer days or projects."},
            b"",
        )
    with _writing:
        out = _out[0]
        out.write(json.dumps({**answer, "nbytes": len(data)}).encode() + b"\n")
        out.write(data)
        out.flush()


def _keep_apart() -> None:
    """It may write no file, and its prints go nowhere."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    _out[0] = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _read(_: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The scenario of the files, or their faults."""
    from emulator.engine.scenario import ScenarioError
    from emulator.files.scenario import read_upload
    from emulator.files.scenario_json import to_json

    with zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    try:
        scenario = read_upload(files)
    except ScenarioError as error:
        return {"fault": str(error)}, b""
    return {"ok": to_json(scenario)}, b""


def _run(order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Figures and projects; the packed timeline if it is wanted."""
    from emulator.engine.policy import PolicyError
    from emulator.engine.scenario import ScenarioError
    from emulator.runs.execution import answer_of, execute
    from emulator.runs.packed_timeline import pack

    done = threading.Event()

    def report(run: Any) -> None:
        threading.Thread(target=_report_progress, args=(run, done), daemon=True).start()

    try:
        result = execute(order, report)
    except (ScenarioError, PolicyError) as error:
        return {"fault": str(error)}, b""
    finally:
        done.set()
    return {"ok": answer_of(result)}, pack(result) if order["timeline"] else b""


def _report_progress(run: Any, done: threading.Event) -> None:
    while not done.wait(PROGRESS_SECS):
        with _writing:
            # Nothing may come after the answer.
            if not done.is_set():
                _write_progress(run.done_fraction)


def _write_progress(fraction: float) -> None:
    _out[0].write(f"progress {fraction:.4f}\n".encode())
    _out[0].flush()


if __name__ == "__main__":
    main()
