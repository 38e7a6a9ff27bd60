"""A script's permissions and limits: real programs in the real sandbox."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extras.scripts.sandbox import MAX_TMP_NBYTES, Limits, Sandbox
from extras.scripts.tests.conftest import ANSWER, PYTHON
from extras.scripts.wire import ScriptFailure
from tests.support.wait import wait_until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bubblewrap")]

LIMITS = Limits(20, 256)
SHELL = "#!/bin/sh\n"
NAME = "script"


def one(source: str, *arguments: Any, **named: Any) -> Sandbox:
    return Sandbox({NAME: source}, *arguments, **named)


def ran(source: str, *words: str, limits: Limits = LIMITS, data: Path | None = None, writes: bool = False) -> str:
    """Return a program's error output; it ended normally."""
    with one(source, limits, data, may_write=writes) as sandbox:
        code, errors = sandbox.run(NAME, words)
    assert code == 0, errors.decode()
    return errors.decode()


def test_a_script_in_any_language_gets_its_words_and_its_exit_code_comes_back() -> None:
    with one(f'{SHELL}echo "$1 and $2" >&2; exit 4', LIMITS) as sandbox:
        assert sandbox.run(NAME, ["a b", "c"]) == (4, b"a b and c\n")
    assert ran("#!/usr/bin/perl\nprint STDERR 6 * 7;") == "42"
    # As a browser's form sends it
    assert ran("#!/bin/sh\r\necho ok >&2\r\n") == "ok\n"


def test_it_sees_the_systems_programs_and_its_inputs_and_nothing_else() -> None:
    os.environ["SECRET_OF_THE_WORKER"] = "hunter2"
    try:
        seen = ran(
            f"{SHELL}ls / /work /work/in >&2; env >&2; ls /proc >&2; ls /home /root /srv /etc/passwd /data >&2; true"
        )
    finally:
        del os.environ["SECRET_OF_THE_WORKER"]
    assert "hunter2" not in seen
    for absent in ("/home", "/root", "/srv", "/etc/passwd", "/data"):
        assert f"cannot access '{absent}'" in seen


@pytest.mark.parametrize("path", ["/work/x", "/work/in/x", "/usr/x", "/x", "/dev/x", "/data/x"])
def test_it_can_write_nowhere_but_in_memory(path: str, open_folder: Path) -> None:
    with one(f"{SHELL}echo 1 > {path}", LIMITS, open_folder) as sandbox:
        assert sandbox.run(NAME, [])[0] != 0
    assert ran(f"{SHELL}echo 1 > /tmp/x && cat /tmp/x >&2") == "1\n"


def test_an_assimilator_keeps_files_from_call_to_call(open_folder: Path) -> None:
    for _ in range(2):
        ran(f"{SHELL}echo line >> /data/lines", data=open_folder, writes=True)
    assert (open_folder / "lines").read_text() == "line\n" * 2


def test_a_sandbox_that_cannot_be_made_says_nothing_about_outputs(tmp_path: Path) -> None:
    with one(f"{SHELL}exit 0", LIMITS, tmp_path / "gone") as sandbox, pytest.raises(ScriptFailure, match="bwrap"):
        sandbox.run(NAME, [])


def test_it_reaches_no_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        socket.create_connection(address).close()
        program = f"#!/usr/bin/env python3\nimport socket\nsocket.create_connection({address})\n"
        with one(program, LIMITS) as sandbox:
            assert b"refused" in sandbox.run(NAME, [])[1]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("x = 'a' * 10**9", b"MemoryError"),
        ("open('/tmp/x', 'wb').write(b'x' * 10**8)", b"File too large"),
        # Each of 100 children, which begin no others, waits for its end.
        (
            "import os, signal\nfor _ in range(100):\n if not os.fork(): signal.pause()",
            b"temporarily unavailable",
        ),
    ],
    ids=["memory", "disk", "processes"],
)
def test_its_memory_disk_and_processes_have_limits(program: str, said: bytes) -> None:
    with one(f"#!/usr/bin/env python3\n{program}\n", LIMITS) as sandbox:
        code, errors = sandbox.run(NAME, [])
    assert code != 0
    assert said in errors


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_its_folders_in_memory_are_small(folder: str) -> None:
    free = f"import os\nfree = os.statvfs('{folder}')\nsys.stderr.write(str(free.f_blocks * free.f_frsize))\n"
    assert int(ran(f"#!/usr/bin/env python3\nimport sys\n{free}")) == MAX_TMP_NBYTES


def test_it_can_make_no_namespace_in_which_it_were_root() -> None:
    with one(f"{SHELL}unshare --user --map-root-user true", LIMITS) as sandbox:
        code, errors = sandbox.run(NAME, [])
    assert (code, b"unshare failed" in errors) == (1, True)


def test_it_is_the_first_to_end_where_memory_is_short() -> None:
    assert ran(f"{SHELL}cat /proc/self/oom_score_adj >&2") == "1000\n"


def running(mark: str) -> bool:
    return any(mark.encode() in path.read_bytes() for path in _commands())


def _commands() -> Iterator[Path]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (folder / "cmdline").exists():
            yield folder / "cmdline"


@pytest.mark.parametrize("by_line", [False, True], ids=["words", "lines"])
def test_one_that_hangs_is_ended_with_all_that_it_began(by_line: bool) -> None:
    mark = f"9{time.monotonic_ns()}"
    with one(f"{SHELL}sleep {mark} & sleep {mark}", Limits(1, 64)) as sandbox:
        with pytest.raises(ScriptFailure, match="no answer after 1 s"):
            sandbox.ask(NAME, b"{}\n") if by_line else sandbox.run(NAME, [])
        wait_until(lambda: not running(mark), "the end of all processes", 10)


def test_lines_are_answered_by_one_process_and_it_is_started_again_after_a_failure() -> None:
    counting = (
        PYTHON.replace("for line", "n = 0\nfor line") + "    n += 1\n    answer = n if n < 3 else 1 / 0\n" + ANSWER
    )
    with one(counting, LIMITS) as sandbox:
        assert [sandbox.ask(NAME, b"{}\n") for _ in range(2)] == [b"1\n", b"2\n"]
        with pytest.raises(ScriptFailure, match=r"exit code 1\)[\s\S]*ZeroDivisionError"):
            sandbox.ask(NAME, b"{}\n")
        assert sandbox.ask(NAME, b"{}\n") == b"1\n"


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("print('x' * 100_000, flush=True)", "more than 60000 bytes"),
        ("print('1\\n2', flush=True)", "more than one line"),
        ("sys.exit(7)", "exit code 7"),
    ],
)
def test_an_answer_is_one_line_of_limited_length(program: str, failure: str) -> None:
    with one(f"{PYTHON}    {program}\n", LIMITS) as sandbox, pytest.raises(ScriptFailure, match=failure):
        sandbox.ask(NAME, b"{}\n")


def test_one_that_never_reads_has_no_longer_than_others() -> None:
    """It answers without reading; the second question fills the pipe (64 KiB), and the worker waits."""
    guessing = "#!/usr/bin/env python3\nimport signal\nprint(1, flush=True)\nsignal.pause()\n"
    with one(guessing, Limits(3, 64)) as sandbox:
        assert sandbox.ask(NAME, b"x" * 59_999 + b"\n") == b"1\n"
        with pytest.raises(ScriptFailure):
            sandbox.ask(NAME, b"x" * 59_999 + b"\n")


def test_what_it_writes_before_it_is_asked_is_no_answer(open_folder: Path) -> None:
    os.mkfifo(open_folder / "go")
    early = "print(1, flush=True)\n    open('/data/go').read()\n    print(2, flush=True)\n"
    with one(f"{PYTHON}    {early}", LIMITS, open_folder) as sandbox:
        assert sandbox.ask(NAME, b"{}\n") == b"1\n"
        (open_folder / "go").write_text("")
        process = sandbox._process
        assert process is not None
        assert process.stdout is not None
        answers = process.stdout.fileno()
        wait_until(lambda: bool(select.select([answers], [], [], 0)[0]), "the second line", 10)
        with pytest.raises(ScriptFailure, match="before it was asked"):
            sandbox.ask(NAME, b"{}\n")


def test_the_answer_to_a_question_that_was_interrupted_is_not_taken_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class TimeIsUp(Exception):
        """Like the worker's time limit, in the middle of a call."""

    def interrupt(*_: object) -> object:
        raise TimeIsUp

    echo = f"{PYTHON}    print(asked, flush=True)\n"
    with one(echo, LIMITS) as sandbox:
        assert sandbox.ask(NAME, b"1\n") == b"1\n"
        with monkeypatch.context() as patch, pytest.raises(TimeIsUp):
            patch.setattr("extras.scripts.sandbox.os.read", interrupt)
            sandbox.ask(NAME, b"2\n")
        assert sandbox.ask(NAME, b"3\n") == b"3\n"


@pytest.mark.parametrize(("source", "code"), [("#!/no/such/interpreter\n", 127), ("no program", 127)])
def test_what_cannot_be_run_is_told_by_its_code(source: str, code: int) -> None:
    with one(source, LIMITS) as sandbox:
        assert sandbox.run(NAME, [])[0] == code
