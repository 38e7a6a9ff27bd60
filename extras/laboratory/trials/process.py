"""A separate process that measures an experiment, with limits on its memory and processor time. No Django.

Standard input: JSON, ``{"experiment": …, "secs_max": …, "bytes_max": …}``. Standard output: lines
``progress <fraction>``, then one line, ``found <JSON>`` or ``fault <message as JSON>``.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import suppress
from typing import Final

from portal.languages.messages import Message

PROGRESS_SECS: Final = 0.5


def main() -> None:
    order = json.load(sys.stdin)
    limit = order["bytes_max"]
    # Imported while there is memory for it.
    fault = json.dumps(Message("experiment_memory_limit", mib=round(limit / 2**20)).to_json())
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # The kernel ends the process some seconds after the soft limit, whatever it does.
    resource.setrlimit(resource.RLIMIT_CPU, (order["secs_max"], order["secs_max"] + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer = None
    with suppress(MemoryError):
        answer = json.dumps(_found(order["experiment"]))
    _say(f"fault {fault}" if answer is None else f"found {answer}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _found(order: dict[str, object]) -> list[dict[str, object]]:
    from extras.laboratory.trials.experiment import Experiment, measure

    reported_at = 0.0

    def report(part: float) -> None:
        nonlocal reported_at
        now = time.monotonic()
        if now - reported_at >= PROGRESS_SECS:
            _say(f"progress {part:.4f}")
            reported_at = now

    return [variant.as_json() for variant in measure(Experiment.from_json(order), report)]


if __name__ == "__main__":
    main()
