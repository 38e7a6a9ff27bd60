"""Stored texts are read where they were put, with the secret of then, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.wire.sealing import Place, UnsealableError, origin, seal, unseal

PLACE: Place = ("project", 7, "shared_account_key", "https://example.org")


@given(st.text())
def test_a_text_comes_back_and_is_sealed_differently_each_time(text: str) -> None:
    sealed = seal("secret", PLACE, text.encode("utf-8", "replace").decode())
    assert unseal("secret", PLACE, sealed) == text.encode("utf-8", "replace").decode()
    assert sealed.isascii() and sealed != seal("secret", PLACE, text.encode("utf-8", "replace").decode())


@pytest.mark.parametrize(
    "place",
    [
        ("project", 8, "shared_account_key", "https://example.org"),
        ("project", "7", "shared_account_key", "https://example.org"),
        ("project", 7, "account_key", "https://example.org"),
        ("userproject", 7, "shared_account_key", "https://example.org"),
        ("project", 7, "shared_account_key", "http://example.org"),
        ("project", 7, "shared_account_key", "https://example.org:8443"),
        ("project", 7, "shared_account_keyhttps://example.org"),
    ],
)
def test_it_is_read_in_no_other_place(place: Place) -> None:
    with pytest.raises(UnsealableError):
        unseal("secret", place, seal("secret", PLACE, "a key"))


def test_it_is_read_with_no_other_secret_and_not_if_a_bit_is_changed() -> None:
    sealed = seal("secret", PLACE, "a key")
    with pytest.raises(UnsealableError):
        unseal("another", PLACE, sealed)
    for changed in (b"", b"?", sealed[:-4], sealed[:20] + (b"A" if sealed[20:21] != b"A" else b"B") + sealed[21:]):
        with pytest.raises(UnsealableError):
            unseal("secret", PLACE, changed)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://Example.org/science/", "https://example.org"),
        ("HTTPS://example.org:443/", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
        ("http://example.org:443/", "http://example.org:443"),
        ("https://example.org:8443/a", "https://example.org:8443"),
        ("https://example.org?x=/", "https://example.org"),
        ("https://evil.org\\@example.org/", "https://evil.org"),
        ("https://a@example.org/", "https://a@example.org"),
        ("", "://"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, wanted: str) -> None:
    assert origin(url) == wanted
