"""The project's work with `make run`: the example apps, and a few jobs always in the queue."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Final

from django.db.models import Sum

from credit.engine.states import ServerState
from credit.models import App, Batch, Result
from scheduler.programs.release import read_release, release_version, sign_files
from scheduler.submission.submit import submit

EXAMPLES: Final = Path(__file__).parent
FEWEST_WAITING: Final = 10
JOBS_PER_BATCH: Final = 10
_NUMBERS_PER_JOB: Final = 2_000_000
_FIRST_NUMBER: Final = 10**12
# A few tens of seconds on a current machine.
COLLATZ: Final[dict[str, Any]] = {
    "fpops_est": 5e10,
    "fpops_bound": 5e13,
    "delay_bound_secs": 86_400,
    "output_files": [{"open_name": "out", "max_nbytes": 1_000_000}],
}


def release_examples() -> list[str]:
    """Release the example apps; return the names of new versions. Safe to repeat."""
    made = []
    for folder in sorted(path.parent for path in EXAMPLES.glob("*/version.toml")):
        release = read_release(folder)
        version, is_new = release_version(release, sign_files(release))
        if is_new:
            made.append(str(version))
    return made


def top_up(now: dt.datetime) -> int:
    """Submit demo jobs if few wait; return their number. Each batch continues after the last one's numbers."""
    app = App.objects.filter(name="collatz", is_deprecated=False).first()
    if app is None:
        return 0
    waiting = Result.objects.filter(app=app, server_state=ServerState.UNSENT, lane=0)[:FEWEST_WAITING].count()
    if waiting >= FEWEST_WAITING:
        return 0
    done = Batch.objects.filter(app=app).aggregate(n=Sum("nworkunits", default=0))["n"]
    jobs = [
        {"command_line": f"{_FIRST_NUMBER + (done + number) * _NUMBERS_PER_JOB} {_NUMBERS_PER_JOB}"}
        for number in range(JOBS_PER_BATCH)
    ]
    # Two workers that run this at the same time request the same numbers: they get one batch.
    batch, is_new = submit(app, COLLATZ, jobs, owner=None, name="Demo jobs", request_id=f"demo-{done}", now=now)
    return batch.nworkunits if is_new else 0
