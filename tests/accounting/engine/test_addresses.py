"""When two addresses are those of one project."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.engine.addresses import address_key, is_same_place

TIDEWATER = "https://tidewater.example.org/science/"
SPELLINGS = Path(__file__).parents[2] / "data" / "cases" / "account-manager" / "addresses.csv"

labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=8)
hosts = st.lists(labels, min_size=2, max_size=4).map(".".join).filter(lambda host: not host.startswith("www."))
segments = st.text("abcXYZ0123456789~_-.%+", min_size=1, max_size=6)


@st.composite
def addresses(draw: st.DrawFn) -> tuple[str, str]:
    """A plain address, and another spelling of it."""
    host, path = draw(hosts), draw(st.lists(segments, max_size=3))
    port = draw(st.sampled_from(["", ":8080"]))
    scheme = draw(st.sampled_from(["http", "https"]))
    default = {"http": ":80", "https": ":443"}[scheme]
    upper = "".join(draw(st.sampled_from([letter, letter.upper()])) for letter in host)
    other = (
        draw(st.sampled_from([scheme, scheme.upper()]))
        + "://"
        + draw(st.sampled_from(["", "www.", "WWW."]))
        + upper
        + draw(st.sampled_from(["", "."]))
        + (port or draw(st.sampled_from(["", default])))
        + "".join(draw(st.sampled_from(["/", "//", "///"])) + segment for segment in path)
        + draw(st.sampled_from(["", "/", "//"]))
    )
    return f"https://{host}{port}/" + "".join(f"{segment}/" for segment in path), other


def test_an_address_has_at_most_255_bytes() -> None:
    longest = "https://a.example.org/".ljust(255, "x")
    assert address_key(longest) and not address_key(f"{longest}x")
    # Two bytes, one character
    assert not address_key(f"{longest[:-1]}ä")


@given(addresses())
def test_all_spellings_of_an_address_have_one_key(pair: tuple[str, str]) -> None:
    plain, other = pair
    assert address_key(other) == address_key(plain) != ""


@given(addresses())
def test_a_key_is_the_key_of_the_address_that_it_makes(pair: tuple[str, str]) -> None:
    key = address_key(pair[0])
    assert address_key(f"https://{key}/") == address_key(f"http://{key}") == key


@given(addresses(), addresses())
def test_addresses_that_differ_in_more_than_spelling_have_different_keys(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert (address_key(one[1]) == address_key(other[1])) == (one[0] == other[0])


@given(st.text(max_size=600))
def test_no_text_is_too_odd_for_a_key(text: str) -> None:
    assert len(address_key(text)) <= len(text.lower())


@pytest.mark.parametrize(
    "row", list(csv.DictReader(SPELLINGS.read_text().splitlines())), ids=lambda row: str(row["address_of_the_client"])
)
def test_the_spellings_that_clients_were_seen_with(row: dict[str, str]) -> None:
    url = row["address_of_the_client"]
    same = row["same_project_as_https://tidewater.example.org/science/"]
    # The path's case is another matter: it is for each project to say that it does not count.
    expected = same.startswith("yes") and "/Science/" not in url
    assert (address_key(url) == address_key(TIDEWATER)) == expected
    assert (address_key(url).lower() == address_key(TIDEWATER)) == same.startswith("yes")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org:443/", "https://example.org/"),
        ("http://example.org:8080/", "http://example.org/"),
        ("http://example.org/a/", "http://example.org/A/"),
        ("http://wwwexample.org/", "http://example.org/"),
        ("http://example.org/www./", "http://example.org/"),
        ("http://example.org.evil.net/", "http://example.org/"),
        ("http://example.org@evil.net/", "http://example.org/"),
    ],
)
def test_other_addresses_have_other_keys(one: str, other: str) -> None:
    assert address_key(one) != address_key(other)


@pytest.mark.parametrize(
    "nothing",
    ["", "http://", " ", "https:///", "http://:80/", "http://./", "example.org/", "https:example.org/", "ftp://a.b/"],
)
def test_what_is_no_web_address_has_no_key(nothing: str) -> None:
    assert address_key(nothing) == ""


@pytest.mark.parametrize(
    ("url", "trusted", "expected"),
    [
        ("https://example.org//a", "https://EXAMPLE.org:443/A/", True),
        ("https://example.org/a/", "https://example.org/", False),
        ("https://example.org/~bob/", "https://example.org/~alice/", False),
        ("https://example.org/", "http://example.org/", True),
        ("http://example.org/", "https://example.org/", False),
        ("https://www.example.org/", "https://example.org/", False),
        ("https://example.org:8443/", "https://example.org/", False),
        ("https://example.org:8080/", "http://example.org:8080/", False),
        ("https://new.example.org/", "https://example.org/", False),
    ],
)
def test_what_is_sent_to_a_place_may_go_to_the_same_one_or_from_http_to_https(
    url: str, trusted: str, expected: bool
) -> None:
    assert is_same_place(url, trusted) == expected


@pytest.mark.parametrize("filling", ["/" * 300, "\x1f", "\x85"], ids=["too long", "control", "control of Latin-1"])
def test_what_no_client_can_have_as_an_address_has_no_key(filling: str) -> None:
    assert address_key(f"{TIDEWATER}{filling}") == ""
