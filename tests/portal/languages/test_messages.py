"""What is stored is a code with its arguments; each reader gets the sentence in their language."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext, override

from accounting.models import StatisticsImport
from portal.fetch.errors import StatusError
from portal.languages.messages import MAX_TEXT_CHARS, VERBATIM, Message, at_place, declare, declared
from portal.languages.sentences import sentence
from portal.languages.sources import APPS, modules
from tests.support.accounting_factories import make_project

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
OWN = {VERBATIM, "at_place"}
"""Of no app: they have no words."""
SENTENCES = sorted(set(declared()) - OWN)


def calls() -> Iterator[tuple[str, str, set[str]]]:
    """Each call in the product that names a code: where it is, the code, and the arguments that are given with it."""
    for app in APPS:
        for path in modules(Path(settings.BASE_DIR), app):
            for node in ast.walk(ast.parse(path.read_text())):
                for call, code in _codes(node):
                    given = {keyword.arg or "**" for keyword in call.keywords}
                    yield f"{path}:{call.lineno}", code, given


def _codes(node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    if isinstance(node, ast.Call):
        for argument in node.args:
            choices = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
            for choice in choices:
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str) and choice.value in declared():
                    yield node, choice.value


def test_every_sentence_gets_the_arguments_that_it_names() -> None:
    wrong = []
    for place, code, given in calls():
        named = set(_PLACEHOLDER.findall(declared()[code]))
        if not (given == named or ("**" in given and given - {"**"} <= named)):
            wrong.append((place, code, sorted(given), sorted(named)))
    assert wrong == []


def test_every_code_is_used() -> None:
    sources = "".join(
        path.read_text() for app in APPS for path in modules(Path(settings.BASE_DIR), app) if path.name != "messages.py"
    )
    assert [code for code in SENTENCES if f'"{code}"' not in sources] == []


def test_every_code_has_a_sentence() -> None:
    """Whatever is made into a message by its code, or raised by one, is declared."""
    unknown = []
    for app in APPS:
        for path in modules(Path(settings.BASE_DIR), app):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Message" and node.args:
                    code = node.args[0]
                    if isinstance(code, ast.Constant) and code.value not in declared():
                        unknown.append(f"{path}:{node.lineno}: {code.value!r}")
    assert unknown == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_sentence_is_made_in_each_language(language: str) -> None:
    with override(language):
        for code in SENTENCES:
            args = {name: f"⟨{name}⟩" for name in _PLACEHOLDER.findall(declared()[code])}
            shown = sentence(Message.from_json(json.loads(json.dumps(Message(code, **args).to_json()))))
            assert shown != code and all(value in shown for value in args.values())
            if language == "en":
                assert shown == str(Message(code, **args))
            elif any(character.isalpha() for character in _PLACEHOLDER.sub("", declared()[code])):
                assert gettext(declared()[code]) != declared()[code], code


def test_a_code_has_one_sentence() -> None:
    code = SENTENCES[0]
    with pytest.raises(ValueError, match="two sentences"):
        declare({code: "Something else"})
    assert declared()[code] != "Something else"


@pytest.mark.parametrize(
    ("message", "english", "german"),
    [
        (
            StatusError("a.example.org", 503).message,
            "a.example.org: answered with status 503",
            "a.example.org: antwortete mit Status 503",
        ),
        # Numbers are written as the language does, also within a message that another one has.
        (
            Message(
                "account_not_asked", why=at_place("a.example.org", Message("fetch_body_limit", limit_nbytes=2097152))
            ),
            "The project could not be asked: a.example.org: sent more than the limit of 2,097,152 bytes.",
            "Das Projekt konnte nicht abgefragt werden: a.example.org: hat mehr als die erlaubten "
            "2\u202f097\u202f152 Bytes gesendet.",
        ),
        # What the project itself says stays as it is.
        (
            Message("ask_error", host="a.example.org", words="-1, Go away, 100%"),
            "a.example.org answered with an error (-1, Go away, 100%).",
            "a.example.org hat mit einem Fehler geantwortet (-1, Go away, 100%).",
        ),
        (Message(VERBATIM, text="Something else, 100%"), "Something else, 100%", "Something else, 100%"),
        # A code that is no longer known, and one whose sentence asks for something else by now
        (Message("gone_since", number=3), "gone_since", "gone_since"),
        (Message("fetch_status"), "fetch_status", "fetch_status"),
        (Message("fetch_status", other=1), "fetch_status", "fetch_status"),
    ],
)
def test_a_message_is_shown_in_the_readers_language(message: Message, english: str, german: str) -> None:
    again = Message.from_json(json.loads(json.dumps(message.to_json())))
    assert again == message
    with override("de"):
        assert str(again) == english
        assert sentence(again) == german


def test_what_a_column_cannot_hold_is_cut() -> None:
    message = Message(VERBATIM, text="a\0b\ud800" + "x" * 1000)
    assert len(message.args["text"]) == MAX_TEXT_CHARS and message.args["text"].startswith("a\ufffdb?xx")
    assert len(Message(VERBATIM, text=["x"] * 1000).args["text"]) == 50
    assert Message("ask_error", host=["ä" * 300] * 50, words="").to_json() == {"code": "ask_error", "args": {}}


@pytest.mark.system
@pytest.mark.django_db
def test_a_column_holds_a_message_or_nothing() -> None:
    row = StatisticsImport.objects.create(project=make_project("Alpha"))
    assert StatisticsImport.objects.get().trouble is None
    row.trouble_since, row.trouble = (
        timezone.now(),
        at_place("host.gz", Message("export_records_limit", limit=5_000_000)),
    )
    row.full_clean()
    row.save()
    row.refresh_from_db()
    assert str(row.trouble) == "host.gz: has more records than the limit of 5,000,000"
    assert StatisticsImport.objects.filter(trouble__code="at_place").exists()
    # Rows of other programs, or of another time
    for data, shown in (({"code": "gone_since", "args": {"a": 1}}, "gone_since"), ("words", "words"), ({}, "{}")):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE accounting_statisticsimport SET trouble = %s::jsonb", [json.dumps(data)])
        assert str(StatisticsImport.objects.get().trouble) == shown
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE accounting_statisticsimport SET trouble = %s::jsonb", [json.dumps("x" * 20_000)])
