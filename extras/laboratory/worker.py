"""Run an experiment in a separate process, store its progress, and store its results."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

import structlog
from django.conf import settings
from django.utils import timezone

from extras.laboratory.models import CreditExperiment
from portal.languages.messages import Message, MessageError

BYTES_MAX: Final = 1024**3
CLOCK_SECS_MAX: Final = 850
"""Its processor time is limited; on a busy machine it may take longer by the clock, but the task is killed at 900 s."""

log = structlog.get_logger(__name__)


class GoneError(Exception):
    """The experiment was deleted."""


class FailedError(MessageError):
    """It cannot be measured; says why."""


def carry_out(experiment_id: int) -> None:
    """Measure the experiment, unless that was done. Safe to call twice."""
    experiment = CreditExperiment.objects.filter(pk=experiment_id, finished_at=None).first()
    if experiment is None:
        return
    try:
        _store(experiment_id, progress=0.0)
        results = measure_in_process(
            experiment.settings, lambda part: _store(experiment_id, progress=min(max(part, 0.0), 1.0))
        )
        _store(experiment_id, results=results, progress=1.0, failure=None, finished_at=timezone.now())
    except GoneError:
        return
    except FailedError as error:
        CreditExperiment.objects.filter(pk=experiment_id).update(failure=error.message, finished_at=timezone.now())


def _store(experiment_id: int, **columns: Any) -> None:
    if not CreditExperiment.objects.filter(pk=experiment_id).update(**columns):
        raise GoneError


def measure_in_process(experiment: dict[str, Any], report: Callable[[float], None]) -> list[dict[str, Any]]:
    """Return the process's results. Raises FailedError, and whatever ``report`` raises."""
    secs_max = settings.CREDIT_LABORATORY_SECS_MAX
    order = {"experiment": experiment, "secs_max": secs_max, "bytes_max": BYTES_MAX}
    command = [sys.executable, "-m", "extras.laboratory.trials.process"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=settings.BASE_DIR) as process:
        assert process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(CLOCK_SECS_MAX, process.kill)
        alarm.start()
        kind, rest = "", ""
        try:
            process.stdin.write(json.dumps(order))
            process.stdin.close()
            for line in process.stdout:
                kind, _, rest = line.strip().partition(" ")
                if kind == "progress":
                    report(float(rest))
            process.wait()
        except BrokenPipeError:
            process.wait()  # it ended at once: its exit code says why
        finally:
            alarm.cancel()
            process.kill()
    if kind == "found" and process.returncode == 0:
        return list(json.loads(rest))
    if kind == "fault":
        raise FailedError(Message.from_json(json.loads(rest)))
    if process.returncode in (-24, -9):  # SIGXCPU; SIGKILL by the hard limit, or by the alarm
        raise FailedError(Message("experiment_time_limit", secs=secs_max, clock_secs=CLOCK_SECS_MAX))
    log.error("credit_experiment_failed", code=process.returncode)
    raise FailedError(Message("experiment_site_fault"))
