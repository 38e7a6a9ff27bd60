"""Mails are written as English is: a sentence behind the greeting begins with a capital."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
GREETING = "Hello {{ name }},"
MAILS = [path for path in sorted(TEMPLATES.rglob("*.txt")) if GREETING in path.read_text()]


@pytest.mark.parametrize("path", MAILS, ids=lambda path: path.stem)
def test_after_the_greeting_a_mail_goes_on_with_a_capital(path: Path) -> None:
    first = path.read_text().split(GREETING)[1].split("\n\n")[1]
    sentences = re.findall(r"\{% (?:blocktranslate|plural)[^%]*%\}(\S)", first)
    assert not [letter for letter in sentences if letter.islower()]
