"""What each key signs and refuses, held against what BOINC's clients of different ages take for a key."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.wire import purposes, signing
from portal.wire.purposes import HEAD_NBYTES, Purpose, content_of, sign, sign_program_again
from portal.wire.signing import SigningError

ROOT = Path(__file__).parents[3]
KEY = signing.generate_key()
KEY_TEXT = signing.public_key_text(KEY).encode()
LINES = KEY_TEXT.rstrip().split(b"\n")
DIGITS = b"0123456789abcdefABCDEF"


def key_nbytes_now(text: bytes) -> int:
    """How many bytes of a key the scanner of version 8 reads: digits and LF, then pairs of digits, LF between them."""
    first, newline, rest = text.partition(b"\n")
    if not newline or not first.isdigit():
        return 0
    place = nbytes = 0
    while place < len(rest):
        if rest[place : place + 1] == b"\n":
            place += 1
        elif len(rest) >= place + 2 and all(digit in DIGITS for digit in rest[place : place + 2]):
            place, nbytes = place + 2, nbytes + 1
        else:
            break
    return nbytes


def key_nbytes_before(text: bytes) -> int:
    """The same of version 7: C's `sscanf("%d")`, anything up to LF, then `sscanf("%2x")` at each second character."""
    _, newline, rest = text.partition(b"\n")
    if not newline or not re.match(rb"[+-]?[0-9]", text.lstrip()) or b"\n" in text[: len(text) - len(text.lstrip())]:
        return 0
    nbytes = 0
    while (rest := rest.lstrip()) and re.match(rb"[0-9A-Fa-f]|[+-][0-9A-Fa-f]", rest):
        rest, nbytes = rest[2:], nbytes + 1
    return nbytes


KEYS = {
    "as it is published": KEY_TEXT,
    "as clients compare it": KEY_TEXT.strip(),
    "without the dot": KEY_TEXT.replace(b".", b""),
    "with a program after it": KEY_TEXT + b"#!/bin/sh\ncurl evil\n",
    "with blank lines before it": b"\n\r\n \t" + KEY_TEXT,
    "after more white space than is looked at": b" " * (HEAD_NBYTES + 1) + KEY_TEXT,
    "with CRLF": KEY_TEXT.replace(b"\n", b"\r\n"),
    "in upper case": KEY_TEXT.upper(),
    "indented": KEY_TEXT.replace(b"\n", b"\n   "),
    "in one line": LINES[0] + b"\n" + b"".join(LINES[1:]),
    "with blank lines in it": LINES[0] + b"\n\n\n" + b"\n\n".join(LINES[1:]),
    "with a sign": b"+" + KEY_TEXT,
    "with more in the first line": KEY_TEXT.replace(b"1024", b"1024 bits", 1),
    "with another number of bits": KEY_TEXT.replace(b"1024", b"7", 1),
    "too short": b"1024\nab",
    "a private one": signing.private_key_text(KEY).encode(),
}


@pytest.mark.parametrize("text", KEYS.values(), ids=KEYS)
def test_no_text_that_a_client_could_take_for_a_key_is_signed_as_a_program(text: bytes) -> None:
    with pytest.raises(SigningError, match="clients would take it for a new code-signing key"):
        sign(Purpose.PROGRAM, content_of(text), KEY)


@settings(deadline=None, max_examples=500)
@given(st.text(alphabet="\t\n\r +-.01afFgx\x00", max_size=14).map(str.encode))
def test_whatever_a_scanner_of_clients_reads_as_a_key_is_refused(text: bytes) -> None:
    for stripped in (text, text.strip()):
        if key_nbytes_now(stripped) or key_nbytes_before(stripped):
            with pytest.raises(SigningError):
                purposes.check(Purpose.PROGRAM, content_of(text))


def test_the_scanners_of_this_test_read_a_real_key_whole() -> None:
    # 128 bytes of the modulus and 128 of the exponent.
    assert key_nbytes_now(KEY_TEXT) == key_nbytes_before(KEY_TEXT) == 256


OTHERS = {
    "the URL of a project": b"https://evil.example.org/\n",
    "an upload certificate": b"<name>job_1_0_r1_0</name><max_nbytes>1000</max_nbytes>",
    "an account key": b"0123456789abcdef0123456789abcdef",
    "the manifest of a version": b'{"format": 1, "version": "1", "code_signing_key": "1024", "files": []}',
    "the list of a key change": b"key 1024abcdef\nprogram_1 00 11\n",
}


@pytest.mark.parametrize(("meaning", "text"), OTHERS.items(), ids=OTHERS)
def test_no_text_of_another_purpose_is_signed_as_a_program(meaning: str, text: bytes) -> None:
    with pytest.raises(SigningError, match=meaning):
        sign(Purpose.PROGRAM, content_of(text), KEY)


PROGRAMS = {
    "a script": b"#!/bin/sh\necho 0 > boinc_finish_called\n",
    "a binary": b"\x7fELF\x02\x01\x01" + bytes(100),
    "a table with a heading": b"# 12 rows\n1 2 3\nab cd\n",
    "one line of numbers": b"1 2 3\n",
    "numbers with names": b"3\nH 0.0 0.0 0.0\n",
    "a page that names a URL": b"See https://example.org/ for more.\n",
    "settings": b'{"rounds": 12}\n',
    "nothing": b"",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_and_their_data_are_signed(text: bytes) -> None:
    assert signing.verify(text, sign(Purpose.PROGRAM, content_of(text), KEY), KEY.public_key())


def test_the_next_key_is_signed_as_clients_compare_it_and_no_other_way() -> None:
    text = KEY_TEXT.strip()
    assert signing.verify(text, sign(Purpose.NEXT_KEY, content_of(text), KEY), KEY.public_key())
    others = [value for value in KEYS.values() if value != text]
    for wrong in [*others, b"", b"https://example.org/", b"#!/bin/sh\n"]:
        with pytest.raises(SigningError):
            sign(Purpose.NEXT_KEY, content_of(wrong), KEY)


def test_an_address_is_signed_as_clients_keep_it_and_nothing_else_is() -> None:
    for right in (b"http://127.0.0.1:8201/", b"https://example.org/science/"):
        assert signing.verify(right, sign(Purpose.PROJECT_URL, content_of(right), KEY), KEY.public_key())
    too_long = b"https://example.org/" + b"a" * 235 + b"/"  # 20 + 235 + 1 = 256 bytes
    elsewhere = (b"https://a.b\\@c.d/", b"https://a.b@c.d/", b"https://a.b?c/", b"https://a.b/\\/")
    simple = (KEY_TEXT, b"example.org/", b"https://example.org", b"https://a.b/ c/", b" https://a.b/", too_long)
    for wrong in (*simple, *elsewhere):
        with pytest.raises(SigningError, match="URL: it must begin with http"):
            sign(Purpose.PROJECT_URL, content_of(wrong), KEY)


def test_a_new_key_signs_again_what_the_old_one_signed_as_a_program_and_no_key() -> None:
    new = signing.generate_key()
    program = content_of(b"#!/bin/sh\n")
    again = sign_program_again(program.md5, sign(Purpose.PROGRAM, program, KEY), KEY, new)
    assert signing.verify_md5(program.md5, again, new.public_key())
    with pytest.raises(SigningError, match="has not signed"):
        sign_program_again(content_of(b"other").md5, sign(Purpose.PROGRAM, program, KEY), KEY, new)
    following = content_of(signing.public_key_text(new).strip().encode())
    with pytest.raises(SigningError, match="the MD5 of a key, not of a program"):
        sign_program_again(following.md5, sign(Purpose.NEXT_KEY, following, KEY), KEY, new)
    # One whose change was given up is known by its MD5 alone.
    third = signing.generate_key()
    with pytest.raises(SigningError, match="the MD5 of a key, not of a program"):
        sign_program_again(following.md5, sign(Purpose.NEXT_KEY, following, KEY), KEY, third, {following.md5})


def test_nothing_in_the_site_signs_without_naming_the_purpose() -> None:
    """`signing.sign` and `signing.sign_md5` are called by `purposes` alone."""
    callers = set()
    for folder in ("portal", "accounting", "credit", "scheduler", "emulator"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "signing" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr in ("sign", "sign_md5")
                    and ast.unparse(node.value) == "signing"
                ):
                    callers.add(path.relative_to(ROOT).as_posix())
                if isinstance(node, ast.ImportFrom) and node.module == "portal.wire.signing":
                    assert not {"sign", "sign_md5"} & {alias.name for alias in node.names}, path
    assert callers == {"portal/wire/purposes.py"}
