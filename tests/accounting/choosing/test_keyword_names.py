"""The names of BOINC's keywords in other languages."""

from __future__ import annotations

from django.utils import translation

from accounting.choosing.keyword_names import TRANSLATED, keyword_name, keyword_names
from portal.wire.keywords import KEYWORDS


def test_every_marked_name_is_that_of_a_keyword() -> None:
    assert set(TRANSLATED) <= {keyword.name for keyword in KEYWORDS.values()}


def test_a_keyword_has_its_name_in_the_visitors_language() -> None:
    number = next(id_ for id_, keyword in KEYWORDS.items() if keyword.name == "Mathematics and Computer Science")
    with translation.override("de"):
        assert keyword_name(number) == "Mathematik und Informatik"
        assert keyword_names({number}) == ["Mathematik und Informatik"]
