"""What scripts may answer, and what their exit codes say."""

from __future__ import annotations

import json

import pytest

from extras.scripts import wire
from extras.scripts.wire import Reply, ScriptFailure, TryLater


@pytest.mark.parametrize(
    ("ask", "line", "reply"),
    [
        ("check", b'{"answer": true}', Reply(True)),
        ("check", b'{"answer": true, "credit": 3, "outlier": true}', Reply(True, 3.0, is_outlier=True)),
        ("compare", b' {"answer": false}\n', Reply(False)),
        ("assimilate", b'{"answer": true, "keep": true}', Reply(True, keeps=True)),
    ],
)
def test_answers_are_read(ask: str, line: bytes, reply: Reply) -> None:
    assert wire.read_answer(ask, line) == reply


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        ("check", b""),
        ("check", b"true"),
        ("check", b"[" * 50_000),
        ("check", b"{}"),
        ("check", b'{"answer": 1}'),
        ("check", b'{"answer": null}'),
        ("check", b'{"answer": true, "credit": -1}'),
        ("check", b'{"answer": true, "credit": NaN}'),
        ("check", b'{"answer": true, "credit": 1e300}'),
        ("check", b'{"answer": true, "credit": true}'),
        ("check", b'{"answer": true, "outlier": "no"}'),
        ("check", b'{"answer": true, "keep": true}'),
        ("compare", b'{"answer": true, "credit": 1}'),
        ("assimilate", b'{"answer": true, "keep": 1}'),
    ],
)
def test_anything_else_is_the_scripts_failure(ask: str, line: bytes) -> None:
    with pytest.raises(ScriptFailure):
        wire.read_answer(ask, line)


def test_a_script_can_ask_for_later() -> None:
    with pytest.raises(TryLater, match="the database is away"):
        wire.read_answer("compare", b'{"later": "the database is away"}')
    with pytest.raises(TryLater, match=r"\Aa\?b\Z"):
        wire.read_answer("compare", rb'{"later": "\u0000a\ud800b"}')
    with pytest.raises(TryLater):
        wire.read_exit(3, b"")


@pytest.mark.parametrize(("code", "is_yes"), [(0, True), (1, False), (2, False), (125, False)])
def test_exit_codes_are_boincs(code: int, is_yes: bool) -> None:
    assert wire.read_exit(code, b"they differ in line 3\n") == Reply(is_yes)


@pytest.mark.parametrize(
    ("code", "errors"),
    [(126, b""), (127, b"not found"), (137, b"Killed"), (1, b"Traceback (most recent call last):\n")],
)
def test_a_program_that_could_not_run_has_found_nothing_wrong(code: int, errors: bytes) -> None:
    with pytest.raises(ScriptFailure, match=f"exit code {code}"):
        wire.read_exit(code, errors)


def test_words_stand_for_arguments_in_their_order() -> None:
    values = {"files": ["/a", "/b"], "result_id": ["7"], "files2": ["/c"]}
    words = wire.words_of("compare", "result_id files2 files")
    assert wire.arguments(words, values) == ["7", "/c", "/a", "/b"]
    assert wire.words_of("assimilate", "") == ["wu_id", "files"]
    with pytest.raises(ValueError, match="batch_id"):
        wire.words_of("compare", "files batch_id")


def test_a_question_has_a_limit() -> None:
    assert json.loads(wire.question("check", result={"id": 1})) == {"ask": "check", "result": {"id": 1}}
    with pytest.raises(ScriptFailure, match="60000"):
        wire.question("check", text="x" * wire.MAX_LINE_NBYTES)
