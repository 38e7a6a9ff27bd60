"""Execute runs and read uploads: start a process for each, follow its progress, stop it, store its result.

A run is taken by setting its state from queued to running in one statement, so a task that is delivered twice runs
it once. The time of the worker's last report is stored: a run whose worker was lost is queued again.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from emulator.engine.kernel.built import is_missing, start_building
from emulator.engine.scenario import ScenarioError
from emulator.files.scenario_json import from_json
from emulator.models import Experiment, Run, RunState, RunTimeline, Upload
from emulator.runs.execution import order_of
from emulator.runs.experiments import READ, RUN
from emulator.runs.variants import Variant
from portal.languages.messages import Message
from portal.models import RequestedWork
from portal.requested_work import queue

POLL_SECS: Final = 1.0
LOST_AFTER: Final = dt.timedelta(minutes=3)
READ_SECS_MAX: Final = 30
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
COMPILING_KEY: Final = "emulator-compiles"
"""A cache key, set while a worker makes runs that the compiled kernel would make faster."""
COMPILING_SECS: Final = 120
_NOT_READ: Final = Message("files_not_read")
_OUR_FAULT: Final = Message("run_site_fault")
# One thread per library: more would only need more memory.
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "PYTHONMALLOC": "malloc"}
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessAnswer:
    """The process's answer: ``ok`` and the bytes that came with it, or ``fault``, why there is none."""

    ok: Any
    data: bytes
    fault: Message | None


class RunCancelledError(Exception):
    """The run was cancelled, or is no longer there."""


def store_upload(experiment: Experiment, archive: bytes) -> None:
    """Store a ZIP of a client's files unchanged until a worker reads it, and queue that."""
    with transaction.atomic():
        Upload.objects.create(experiment=experiment, files=archive)
        queue.ask(experiment.owner_id, READ, [experiment.pk])


def read_upload(experiment_id: int) -> None:
    """Make an experiment's scenario from its uploaded files, or store their faults."""
    upload = Upload.objects.filter(experiment=experiment_id).first()
    if upload is None:
        return
    answer = run_process({"do": "read"}, bytes(upload.files), READ_SECS_MAX, lambda _: None)
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().filter(pk=experiment_id).first()
        if experiment is None:
            return
        experiment.scenario = answer.ok if not answer.fault else None
        experiment.fault = answer.fault
        experiment.save(update_fields=["scenario", "fault"])
        upload.delete()


def execute_run(run_id: int) -> None:
    """Run it, unless it was cancelled or another worker has it."""
    now = timezone.now()
    taken = Run.objects.filter(pk=run_id, state=RunState.QUEUED)
    if not taken.update(state=RunState.RUNNING, started_at=now, heard_of_at=now, progress=0):
        return
    run = Run.objects.select_related("experiment").get(pk=run_id)
    if is_missing():
        cache.set(COMPILING_KEY, True, COMPILING_SECS)
    try:
        answer = _answer_of(run)
    except ScenarioError as error:
        answer = ProcessAnswer(None, b"", error.message)
    except RunCancelledError:
        Run.objects.filter(pk=run_id, state=RunState.RUNNING).update(
            state=RunState.CANCELLED, finished_at=timezone.now()
        )
        return
    except Exception:
        # Any exception: the queue hands the run out again, and the next worker must find it waiting.
        Run.objects.filter(pk=run_id, state=RunState.RUNNING).update(state=RunState.QUEUED)
        raise
    _keep(run_id, answer)


def _answer_of(run: Run) -> ProcessAnswer:
    order = {"do": "run", **order_for(run), "tries": run.number == 1}
    return run_process(order, b"", settings.EMULATOR_RUN_SECS_MAX, lambda progress: _report_progress(run.pk, progress))


def order_for(run: Run) -> dict[str, Any]:
    """Return the run's order (emulator.runs.execution)."""
    scenario = from_json(run.experiment.scenario)
    variant = Variant(run.variant, run.policy, run.has_quirks, run.parameters, run.value)
    return order_of(scenario, variant, run.experiment.days, run.seed, timeline=run.keeps_timeline)


def _report_progress(run_id: int, progress: float) -> None:
    """Store the progress; raises RunCancelledError if it was cancelled or deleted."""
    running = Run.objects.filter(pk=run_id, state=RunState.RUNNING, cancel_asked=False)
    if not running.update(progress=min(max(progress, 0.0), 1.0), heard_of_at=timezone.now()):
        raise RunCancelledError


def _keep(run_id: int, answer: ProcessAnswer) -> None:
    with transaction.atomic():
        run = Run.objects.select_for_update().filter(pk=run_id, state=RunState.RUNNING).first()
        if run is None:
            return
        run.finished_at = timezone.now()
        if answer.fault:
            run.state, run.fault = RunState.FAILED, answer.fault
        else:
            run.state, run.progress = RunState.DONE, 1.0
            run.figures, run.projects = answer.ok["figures_of_merit"], answer.ok["projects"]
            run.answer = answer.ok.get("answer", {})
            run.cpu_secs = answer.ok["cpu_secs"]
            if answer.data:
                RunTimeline.objects.update_or_create(run=run, defaults={"data": answer.data})
        run.save()
    log.info("emulation_ended", run=run_id, state=str(run.state), cpu_secs=run.cpu_secs)


def requeue_lost(now: dt.datetime) -> None:
    """Queue again the runs whose worker has been silent for minutes, unless that happened too often, and note which
    files nobody could read. Safe to repeat.

    Locks the runs, then their rows of the queue.
    """
    with transaction.atomic():
        lost = Run.objects.select_for_update().filter(state=RunState.RUNNING, heard_of_at__lt=now - LOST_AFTER)
        ids = list(lost.order_by("pk").values_list("pk", flat=True))
        given_up = queue.put_back(RUN, ids)
        runs = Run.objects.filter(pk__in=ids)
        runs.filter(cancel_asked=True).update(state=RunState.CANCELLED, finished_at=now)
        runs.filter(pk__in=given_up, cancel_asked=False).update(
            state=RunState.FAILED, finished_at=now, fault=Message("run_worker_lost")
        )
        runs.filter(state=RunState.RUNNING).update(state=RunState.QUEUED)
        not_read = RequestedWork.objects.filter(kind=READ, is_given_up=True).values("subject")
        Experiment.objects.filter(upload__in=not_read).update(fault=_NOT_READ)
        Upload.objects.filter(pk__in=not_read).delete()


def run_process(order: dict[str, Any], data: bytes, secs_max: int, report: Callable[[float], None]) -> ProcessAnswer:
    """Start the process, send it the order, and wait for its answer; ``report`` is called about every second."""
    start_building()
    order = {**order, "secs_max": secs_max, "bytes_max": settings.EMULATOR_RUN_BYTES_MAX}
    program, environment = [sys.executable, "-m", "emulator.runs.process"], {**os.environ, **_ONE_THREAD}
    process = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=settings.BASE_DIR,
        env=environment,
    )
    try:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n" + data)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it ended at once: its answer or exit code says why
        answer = _read_answer(process, secs_max, report)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return answer


def _read_answer(process: subprocess.Popen[bytes], secs_max: int, report: Callable[[float], None]) -> ProcessAnswer:
    """Read its output until it ends; wall-clock time is limited to twice its processor time."""
    assert process.stdout is not None and process.stderr is not None
    out, errors = bytearray(), bytearray()
    progress, ends_at, report_at = -1.0, monotonic() + 2 * secs_max, monotonic() + POLL_SECS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, errors)
        while selector.get_map():
            for key, _ in selector.select(POLL_SECS):
                piece = os.read(key.fd, 1 << 16)
                if not piece:
                    selector.unregister(key.fileobj)
                key.data.extend(piece)
            progress = _take_progress(out, progress)
            now = monotonic()
            if now >= report_at:
                report(max(progress, 0.0))
                report_at = now + POLL_SECS
            if now >= ends_at or len(out) > ANSWER_BYTES_MAX:
                return ProcessAnswer(None, b"", _too_long(secs_max))
    return _answer(process, bytes(out), bytes(errors), secs_max)


def _take_progress(out: bytearray, progress: float) -> float:
    """Return the latest fraction reported; removes those lines."""
    while out.startswith(b"progress "):
        line, newline, _ = out.partition(b"\n")
        if not newline:
            break
        progress = float(line.split()[1])
        del out[: len(line) + 1]
    return progress


def _answer(process: subprocess.Popen[bytes], out: bytes, errors: bytes, secs_max: int) -> ProcessAnswer:
    code = process.wait()
    line, _, data = out.partition(b"\n")
    if code == 0 and line:
        answer = json.loads(line)
        if "fault" in answer:
            return ProcessAnswer(None, b"", Message.from_json(answer["fault"]))
        if len(data) == answer["nbytes"]:
            return ProcessAnswer(answer["ok"], data, None)
    if code in (-24, -9):  # SIGXCPU; SIGKILL by the hard limit
        return ProcessAnswer(None, b"", _too_long(secs_max))
    log.error("emulation_failed", code=code, stderr=errors[-2000:].decode(errors="replace"))
    return ProcessAnswer(None, b"", _OUR_FAULT)


def _too_long(secs_max: int) -> Message:
    return Message("run_time_limit", secs=secs_max)
