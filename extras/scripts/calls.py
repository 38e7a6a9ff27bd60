"""Calls of scripts, as the validator and the assimilator make them: in sessions, with the data for the script."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.files.storage import default_storage

from credit.engine.states import WorkunitError
from credit.models import Result, Workunit
from credit.validator.comparison import ComparisonError, Delivered, Fit, Output, UnfitOutputError, delivered
from extras.scripts import wire
from extras.scripts.models import PREFIX, Script
from extras.scripts.sandbox import Limits, Sandbox
from extras.scripts.wire import Reply, ScriptFailure, TryLater
from portal.databases.clocks import database_now
from scheduler.lifecycle.assimilator import Finished

log = structlog.get_logger(__name__)

MAX_FAILURES: Final = 3
"""Consecutive failures; then the script is not called for a while, as it would only occupy a worker."""
REST: Final = dt.timedelta(minutes=10)
MAX_RESULT_NBYTES: Final = 1024**3
MAX_HELD_NBYTES: Final = 2 * 1024**3
"""Outputs of earlier results beyond this are removed from a sandbox."""


class ScriptFunction:
    """A script as a slow function of apps (`credit.functions.SlowFunction`)."""

    def __init__(self, script: Script) -> None:
        self.script = script

    @contextmanager
    def session(self) -> Iterator[ScriptSession]:
        """Open a session of calls, until it fails too often in a row; the reason is stored with the script, for
        operators.
        """
        session = (ComparingSession if self.script.kind == Script.Kind.COMPARE else AssimilatingSession)(self.script)
        with session.running():
            yield session
        if session.last_failure:
            self._keep(session)

    def _keep(self, session: ScriptSession) -> None:
        now = database_now()
        rests = {"rests_until": now + REST} if session.is_over else {}
        Script.objects.filter(pk=self.script.pk).update(last_fault=session.last_failure[:500], failed_at=now, **rests)
        log.error("script_failed", script=self.script.name, fault=session.last_failure, rests=session.is_over)


class ScriptSession:
    """The common part of both kinds: the sandbox, the outputs in it, failures in a row."""

    def __init__(self, script: Script) -> None:
        self.script = script
        rests_until = script.rests_until
        self.is_over = rests_until is not None and database_now() < rests_until
        self.last_failure = ""
        self._nfailures = 0
        self._held: dict[int, int] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Provide a sandbox for the block; nothing runs in it yet. Without one the session is over."""
        script = self.script
        with ExitStack() as stack:
            try:
                sandbox = Sandbox(
                    {"script": script.source, "check": script.check_source},
                    Limits(script.max_secs, script.max_memory_mib),
                    _data_dir(script),
                    may_write=script.kind == Script.Kind.ASSIMILATE,
                )
                self.sandbox = stack.enter_context(sandbox)
            except OSError as error:
                self.last_failure, self.is_over = f"there is no place for its sandbox: {error}", True
            yield

    def call(self, ask: str, subjects: Sequence[Result], **facts: Any) -> Reply:
        """Ask it about results whose outputs are in its sandbox. Raises ComparisonError, which is not any result's
        fault.
        """
        name = self.script.name
        try:
            if self.script.protocol == Script.Protocol.LINES:
                reply = wire.read_answer(ask, self.sandbox.ask("script", wire.question(ask, **facts)))
            else:
                reply = self._by_words(ask, subjects, facts)
        except TryLater as later:
            raise ComparisonError(f"script {name} wants to be asked later: {later}") from later
        except ScriptFailure as failure:
            self.last_failure = str(failure)
            self._nfailures += 1
            self.is_over = self._nfailures >= MAX_FAILURES
            raise ComparisonError(f"script {name}: {failure}") from failure
        self._nfailures = 0
        return reply

    def _by_words(self, ask: str, subjects: Sequence[Result], facts: dict[str, Any]) -> Reply:
        script = self.script
        if ask == "check":
            if not script.check_source:
                return Reply(is_yes=True)
            name, text = "check", script.check_words
        else:
            name, text = "script", script.words
        if ask == "assimilate" and not subjects:
            workunit = facts["workunit"]
            words = [
                "--error",
                str(facts["error_mask"]),
                workunit["name"],
                *_numbers(workunit["id"], workunit["batch_id"]),
            ]
        else:
            words = wire.arguments(wire.words_of(ask, text), _values(ask, subjects, facts))
        return wire.read_exit(*self.sandbox.run(name, words))

    def facts_of(self, result: Result, outputs: Sequence[Output]) -> dict[str, Any]:
        """Return what a script receives about a result, with its outputs in the sandbox. Raises UnfitOutputError."""
        names = [file.get("open_name", "") for file in result.workunit.output_files]
        self._hold(result, outputs)
        return {
            "id": result.pk,
            "name": result.name,
            "elapsed_secs": result.elapsed_secs,
            "cpu_secs": result.cpu_secs,
            "files": [
                {
                    "name": names[output.number] if output.number < len(names) else "",
                    "path": f"/work/in/{result.pk}/{_file_name(result, output)}",
                    "nbytes": output.nbytes,
                    "md5": output.md5,
                }
                for output in outputs
            ],
        }

    def _hold(self, result: Result, outputs: Sequence[Output]) -> None:
        """Copy the outputs into the sandbox, once; those of earlier results are removed if they are many."""
        if result.pk in self._held:
            return
        nbytes = sum(output.nbytes for output in outputs)
        if nbytes > MAX_RESULT_NBYTES:
            raise UnfitOutputError(f"result {result.name} has {nbytes} bytes of outputs, more than {MAX_RESULT_NBYTES}")
        while self._held and sum(self._held.values()) + nbytes > MAX_HELD_NBYTES:
            self._drop(next(iter(self._held)))
        folder = self.sandbox.work / "in" / str(result.pk)
        folder.mkdir(exist_ok=True)
        for output in outputs:
            _copy(output, folder / _file_name(result, output))
        self._held[result.pk] = nbytes

    def _drop(self, result_id: int) -> None:
        del self._held[result_id]
        shutil.rmtree(self.sandbox.work / "in" / str(result_id))


class ComparingSession(ScriptSession):
    """Decides whether results are fit, and which agree."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._results: dict[int, Result] = {}

    def __call__(self, first: Delivered, second: Delivered) -> bool | Fit:
        subjects = [self._result(first), self._result(second)]
        one, other = (self.facts_of(*pair) for pair in zip(subjects, (first.outputs, second.outputs), strict=True))
        workunit = _workunit_facts(subjects[0].workunit)
        if first.result_id == second.result_id:
            reply = self.call("check", subjects[:1], workunit=workunit, result=one)
            return Fit(reply.credit, reply.is_outlier) if reply.is_yes else False
        return self.call("compare", subjects, workunit=workunit, first=one, second=other).is_yes

    def _result(self, given: Delivered) -> Result:
        if given.digest is None:
            raise UnfitOutputError(f"result {given.result_id} has no complete outputs")
        if given.result_id not in self._results:
            self._results[given.result_id] = Result.objects.select_related("workunit__app").get(pk=given.result_id)
        return self._results[given.result_id]


class AssimilatingSession(ScriptSession):
    """Hands over finished workunits, and decides whether their outputs are kept for download."""

    def __call__(self, finished: Finished) -> bool:
        workunit, result = finished.workunit, finished.canonical
        facts = {"workunit": _workunit_facts(workunit), "error_mask": workunit.error_mask}
        if result is None:
            errors = [error.name for error in WorkunitError if error & workunit.error_mask]
            reply = self.call("assimilate", [], **facts, errors=errors, result=None)
        else:
            outputs = delivered(result.pk, None, result.outputs).outputs
            result.workunit = workunit
            reply = self.call("assimilate", [result], **facts, errors=[], result=self.facts_of(result, outputs))
            self._drop(result.pk)
        if not reply.is_yes:
            raise ComparisonError(f"script {self.script.name} did not take it")
        return reply.keeps and result is not None


def _workunit_facts(workunit: Workunit) -> dict[str, Any]:
    return {
        "id": workunit.pk,
        "name": workunit.name,
        "app": workunit.app.name,
        "batch_id": workunit.batch_id,
        "fpops_est": workunit.fpops_est,
    }


def _values(ask: str, subjects: Sequence[Result], facts: dict[str, Any]) -> dict[str, list[str]]:
    """Return the values of the placeholders."""
    described = [facts[name] for name in ("result", "first", "second") if facts.get(name)]
    values: dict[str, list[str]] = {}
    for number, (result, of) in enumerate(zip(subjects, described, strict=True)):
        ending = "2" if number else ""
        values |= {
            f"files{ending}": [file["path"] for file in of["files"]],
            f"result_id{ending}": [str(result.pk)],
            f"runtime{ending}": [f"{result.elapsed_secs or 0:f}"],
        }
    if ask == "assimilate":
        workunit = facts["workunit"]
        wu_id, batch_id = _numbers(workunit["id"], workunit["batch_id"])
        values |= {"wu_id": [wu_id], "wu_name": [workunit["name"]], "batch_id": [batch_id]}
        # Each file with its name for the program
        values["files2"] = [word for file in described[0]["files"] for word in (file["path"], file["name"])]
    return values


def _numbers(workunit_id: int, batch_id: int | None) -> list[str]:
    return [str(workunit_id), str(batch_id or 0)]


def _file_name(result: Result, output: Output) -> str:
    """Return the name that BOINC gives the n-th output of a result."""
    return f"{result.name}_{output.number}"


def _copy(output: Output, path: Path) -> None:
    try:
        with default_storage.open(output.path, "rb") as source, path.open("wb") as copy:
            for part in source.chunks():
                copy.write(part)
    except FileNotFoundError as error:
        raise UnfitOutputError(f"{output.path} is missing from the storage") from error


def _data_dir(script: Script) -> Path | None:
    """Return where the script's own files are, if this server has a place for them."""
    if not settings.SCRIPT_DATA_DIR:
        return None
    folder = Path(settings.SCRIPT_DATA_DIR) / script.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def function_named(kind: str, name: str) -> ScriptFunction | None:
    """Return the script that an app names in the field of this kind, if there is one."""
    if not name.startswith(PREFIX):
        return None
    script = Script.of_kind(kind).filter(name=name.removeprefix(PREFIX)).first()
    return None if script is None else ScriptFunction(script)
