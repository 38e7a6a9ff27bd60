"""Signed statements: one canonical form, and signatures that fit nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.wire import statements

KEY = statements.signing_key("a secret", "tests")
values = st.recursive(
    st.text() | st.integers(-statements.MAX_NUMBER, statements.MAX_NUMBER),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=3),
    max_leaves=8,
)


def test_the_canonical_form_is_the_same_for_any_order_of_keys() -> None:
    assert statements.canonical({"b": "ß", "a": [1, {"d": 2, "c": ""}]}) == '{"a":[1,{"c":"","d":2}],"b":"ß"}'.encode()


@given(st.dictionaries(st.sampled_from("abcdef"), values, max_size=4))
def test_a_statement_keeps_its_signature_through_json(statement: dict[str, Any]) -> None:
    try:
        signature = statements.sign(statement, KEY)
    except UnicodeEncodeError:  # a surrogate, which no form and no column takes
        return
    again = json.loads(json.dumps(statement))
    assert statements.is_signed(again, signature, KEY.public_key())
    assert not statements.is_signed(again | {"z": 1}, signature, KEY.public_key())


@pytest.mark.parametrize("signature", ["", "?", "AAAA", "ü", "A" * 88])
def test_what_is_no_signature_fits_nothing(signature: str) -> None:
    assert not statements.is_signed({"a": 1}, signature, KEY.public_key())


def test_a_secret_has_one_key_for_a_purpose_and_another_secret_another() -> None:
    assert statements.public_key_text(KEY) == statements.public_key_text(statements.signing_key("a secret", "tests"))
    signature = statements.sign({"a": 1}, statements.signing_key("another", "tests"))
    assert not statements.is_signed({"a": 1}, signature, KEY.public_key())
    signature = statements.sign({"a": 1}, statements.signing_key("a secret", "another purpose"))
    assert not statements.is_signed({"a": 1}, signature, KEY.public_key())


@pytest.mark.parametrize("value", [1.5, None, True, 2**53, float("nan")])
def test_what_has_no_canonical_form_is_not_signed(value: object) -> None:
    with pytest.raises(ValueError, match="a statement"):
        statements.canonical({"a": value})
