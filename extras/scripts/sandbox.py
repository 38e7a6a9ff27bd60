"""Run scripts in bubblewrap: without network, without files except the system's programs and their input.

A script sees ``/work`` (itself, its check and the outputs, read-only), ``/data`` (for assimilators, writable), ``/tmp``
in memory, and no other process. It is killed with the worker, or when its time is over. A worker that runs as root runs
scripts as nobody, as root's processes have no limit on their number.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from extras.scripts.wire import MAX_LINE_NBYTES, ScriptFailure, failure_text

MAX_PROCESSES: Final = 32
MAX_FILE_NBYTES: Final = 1024**3
MAX_TMP_NBYTES: Final = 64 * 1024**2
MAX_ERRORS_NBYTES: Final = 8192
# Not the server's folders: each sandbox has its own at these places, in memory.
_TMP: Final = "/tmp"  # noqa: S108
_SHARED: Final = "/dev/shm"  # noqa: S108
_NOBODY: Final = 65534
_EXIT_CODE: Final = re.compile(rb'"exit-code": *(\d+)')
_SYSTEM: Final = ("lib", "lib32", "lib64", "libx32", "bin", "sbin")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: its time, and the memory of each process."""

    secs: float
    memory_mib: int


class Sandbox:
    """A folder with programs, by their names in it, and their input. ``data_dir``: seen as ``/data``, if any."""

    def __init__(
        self, sources: Mapping[str, str], limits: Limits, data_dir: Path | None = None, *, may_write: bool = False
    ) -> None:
        self.limits = limits
        self.data_dir = data_dir
        self.may_write = may_write
        self._sources = sources
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._holder = tempfile.TemporaryDirectory(prefix="script-")
        folder = Path(self._holder.name)
        if _is_root():
            folder.chmod(0o711)
            if self.data_dir is not None and self.may_write:
                os.chown(self.data_dir, _NOBODY, _NOBODY)
        self._errors: IO[bytes] = (folder / "errors").open("w+b")
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "in").mkdir()
        for name, source in self._sources.items():
            program = self.work / name
            program.write_text(source.replace("\r\n", "\n"))
            program.chmod(0o555)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._errors.close()
        self._holder.cleanup()

    def run(self, name: str, words: Sequence[str]) -> tuple[int, bytes]:
        """Run one with these words; return its exit code, and the end of its error output. Raises ScriptFailure."""
        self._errors.truncate(0)
        self._errors.seek(0)
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as status:
            try:
                process = self._start([name, *words], writing, subprocess.DEVNULL, subprocess.DEVNULL)
            finally:
                os.close(writing)
            try:
                process.wait(self.limits.secs)
            except subprocess.TimeoutExpired as error:
                raise ScriptFailure(self._text(self._late)) from error
            finally:
                _end(process)
            code = _EXIT_CODE.search(status.read())
        if code is None:
            # Its own exit code would be taken for a statement about the outputs.
            raise ScriptFailure(self._text("bubblewrap could not make a sandbox"))
        return int(code[1]), self.errors()

    def ask(self, name: str, line: bytes) -> bytes:
        """Return the next line of one after this; it is started if it does not run. Raises ScriptFailure."""
        if self._process is None:
            self._errors.truncate(0)
            self._errors.seek(0)
            self._process = self._start([name], None, subprocess.PIPE, subprocess.PIPE)
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        try:
            return self._exchange(self._process, line)
        except BaseException:
            # Also if the worker's task is interrupted: a late answer would be taken for one to the next question.
            self.stop()
            raise

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    def errors(self) -> bytes:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - MAX_ERRORS_NBYTES))
        return self._errors.read()

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes) -> bytes:
        assert process.stdout is not None
        until, answer = time.monotonic() + self.limits.secs, b""
        if select.select([process.stdout], [], [], 0)[0] and os.read(process.stdout.fileno(), 1):
            raise ScriptFailure("it wrote a line before it was asked")
        self._write(process, line, until)
        while not answer.endswith(b"\n"):
            if len(answer) > MAX_LINE_NBYTES:
                raise ScriptFailure(f"its answer has more than {MAX_LINE_NBYTES} bytes")
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise ScriptFailure(self._text(self._late))
            part = os.read(process.stdout.fileno(), MAX_LINE_NBYTES + 1)
            if not part:
                raise ScriptFailure(self._text(f"it ended without an answer (exit code {_code(process)})"))
            answer += part
        if answer.count(b"\n") > 1:
            raise ScriptFailure("it wrote more than one line as an answer")
        return answer

    def _write(self, process: subprocess.Popen[bytes], line: bytes, until: float) -> None:
        """Write a question. The time limit applies to a script that does not read, too: the pipe is full then."""
        assert process.stdin is not None
        while line:
            if not select.select([], [process.stdin], [], max(0.0, until - time.monotonic()))[1]:
                raise ScriptFailure(self._text(self._late))
            try:
                line = line[process.stdin.write(line) or 0 :]
            except OSError as error:
                raise ScriptFailure(self._text(f"it ended (exit code {_code(process)})")) from error

    @property
    def _late(self) -> str:
        return f"it had no answer after {self.limits.secs:g} s, and was ended"

    def _text(self, what: str) -> str:
        return failure_text(what, self.errors())

    def _start(self, command: Sequence[str], status: int | None, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
        """Start it; ``status``: where bubblewrap writes the script's exit code."""
        status_options = [] if status is None else ["--json-status-fd", str(status)]
        try:
            return subprocess.Popen(
                [*self._confined(status_options), f"/work/{command[0]}", *command[1:]],
                pass_fds=[] if status is None else [status],
                stderr=self._errors,
                bufsize=0,
                env={},
                start_new_session=True,
                stdin=stdin,
                stdout=stdout,
                user=_NOBODY if _is_root() else None,
                group=_NOBODY if _is_root() else None,
                extra_groups=[] if _is_root() else None,
            )
        except OSError as error:
            raise ScriptFailure(f"bubblewrap cannot be run: {error}") from error

    def _confined(self, status_options: Sequence[str]) -> list[str]:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise ScriptFailure("bubblewrap (bwrap) is not installed on this server")
        data: list[str] = []
        if self.data_dir is not None:
            data = ["--bind" if self.may_write else "--ro-bind", str(self.data_dir), "/data"]
        system = [part for name in _SYSTEM if (link := _system(name)) for part in link]
        return [
            *(
                bwrap,
                "--unshare-all",
                "--unshare-user",
                # In its own user namespace it would be root, and could mount file systems without a limit.
                "--disable-userns",
                "--uid",
                str(_NOBODY),
                "--gid",
                str(_NOBODY),
                "--cap-drop",
                "ALL",
            ),
            *("--die-with-parent", "--new-session", "--hostname", "script", "--clearenv", *status_options),
            *("--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", _TMP),
            *("--setenv", "LANG", "C.UTF-8", "--ro-bind", "/usr", "/usr", *system),
            *("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
            *("--proc", "/proc", "--dev", "/dev", *_in_memory(_SHARED), "--remount-ro", "/dev", *_in_memory(_TMP)),
            *("--ro-bind", str(self.work), "/work", *data, "--remount-ro", "/", "--chdir", "/work", "--"),
            # When the server runs out of memory, it is killed before the worker.
            *(
                "choom",
                "-n",
                "1000",
                "--",
                "prlimit",
                f"--as={self.limits.memory_mib * 1024**2}",
                f"--nproc={MAX_PROCESSES}",
                "--core=0",
            ),
            *(f"--fsize={MAX_FILE_NBYTES if self.may_write else MAX_TMP_NBYTES}", "--nofile=256", "--"),
        ]


def _is_root() -> bool:
    return os.geteuid() == 0


def _in_memory(path: str) -> list[str]:
    return ["--size", str(MAX_TMP_NBYTES), "--tmpfs", path]


def _system(name: str) -> list[str]:
    """Return how the sandbox gets a folder of the system that may be a link into /usr."""
    path = Path("/", name)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _code(process: subprocess.Popen[bytes]) -> int | str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(1)
    return "none"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it, and with bubblewrap everything that it started."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
