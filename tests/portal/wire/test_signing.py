"""Keys and signatures against vectors that a real BOINC client accepted, round trips, and bad texts."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.wire import signing
from portal.wire.signing import SigningError

VECTORS_FILE = Path(__file__).parents[2] / "data" / "protocol" / "signature_vectors.json"
DOCUMENT: dict[str, Any] = json.loads(VECTORS_FILE.read_text(encoding="utf-8"))
KEYS: dict[str, dict[str, str]] = DOCUMENT["keys"]
VECTORS: list[dict[str, str]] = DOCUMENT["vectors"]
VECTOR_IDS = [f"{number} {vector['kind']}" for number, vector in enumerate(VECTORS)]

MANAGER_KEY = signing.parse_private_key(KEYS["account_manager"]["private"])
MANAGER_PUBLIC_TEXT = KEYS["account_manager"]["public"]
URL = b"http://127.0.0.1:8201/"
URL_SIGNATURE = VECTORS[0]["signature"]


def pem(key: signing.PrivateKey | ec.EllipticCurvePrivateKey, password: bytes | None = None) -> str:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


@pytest.mark.parametrize("vector", VECTORS, ids=VECTOR_IDS)
def test_a_signature_is_the_one_the_real_client_accepted(vector: dict[str, str]) -> None:
    data = vector["text"].encode()
    key = signing.parse_private_key(KEYS[vector["key"]]["private"])
    assert hashlib.md5(data).hexdigest() == vector["md5"]
    assert signing.sign(data, key) == vector["signature"]


@pytest.mark.parametrize("vector", VECTORS, ids=VECTOR_IDS)
def test_a_vector_verifies_under_its_own_key_only(vector: dict[str, str]) -> None:
    data = vector["text"].encode()
    verdicts = {
        name: signing.verify(data, vector["signature"], signing.parse_public_key(texts["public"]))
        for name, texts in KEYS.items()
    }
    assert verdicts == {name: name == vector["key"] for name in KEYS}


def test_the_padding_is_type_one_without_a_digest_header() -> None:
    numbers = MANAGER_KEY.public_key().public_numbers()
    signature = int("".join(signing.sign(URL, MANAGER_KEY).split("\n")[:-2]), 16)
    block = pow(signature, numbers.e, numbers.n).to_bytes(128, "big")
    # 128 bytes: 00 01, then ff, then 00 and the MD5's 32 characters: 128 - 2 - 1 - 32 = 93 bytes of ff.
    assert block == b"\x00\x01" + b"\xff" * 93 + b"\x00" + b"be17183d5a73de92ef6fd11c522ee3ed"


@pytest.mark.parametrize("name", KEYS)
def test_a_key_text_survives_reading_and_writing(name: str) -> None:
    private = signing.parse_private_key(KEYS[name]["private"])
    public = signing.parse_public_key(KEYS[name]["public"])
    assert signing.private_key_text(private) == KEYS[name]["private"]
    assert signing.public_key_text(private) == KEYS[name]["public"]
    assert signing.public_key_text(public) == KEYS[name]["public"]


def test_a_generated_key_has_the_size_and_exponent_that_clients_know() -> None:
    key = signing.generate_key()
    assert (key.key_size, key.public_key().public_numbers().e) == (1024, 65537)
    again = signing.parse_private_key(signing.private_key_text(key))
    assert signing.verify(b"abc", signing.sign(b"abc", again), key.public_key())
    assert signing.public_key_text(signing.generate_key()) != signing.public_key_text(key)


def test_a_key_text_has_no_carriage_return_and_ends_with_a_dot_line() -> None:
    text = signing.public_key_text(MANAGER_KEY)
    lines = text.split("\n")
    assert "\r" not in text
    # Bit count, 256 bytes as 8 lines of 64 digits, dot, and nothing after the last line feed.
    assert [len(line) for line in lines] == [4, *[64] * 8, 1, 0]


def test_a_private_key_is_read_from_pem_with_pasted_blanks() -> None:
    pasted = "\r\n" + pem(MANAGER_KEY).replace("\n", "  \r\n  ")
    assert signing.sign(URL, signing.parse_private_key(pasted)) == URL_SIGNATURE


@settings(deadline=None)
@given(data=st.binary(max_size=200), other=st.binary(max_size=200))
def test_a_signature_holds_for_its_data_alone(data: bytes, other: bytes) -> None:
    text = signing.sign(data, MANAGER_KEY)
    assert signing.verify(data, text, MANAGER_KEY.public_key())
    assert signing.verify(other, text, MANAGER_KEY.public_key()) == (other == data)


PASTED_SIGNATURES = {
    "CRLF line ends": URL_SIGNATURE.replace("\n", "\r\n"),
    "indented": "\n\n   " + URL_SIGNATURE.replace("\n", "\n\t   "),
    "without the dot": URL_SIGNATURE.replace(".", "").rstrip(),
    "upper case": URL_SIGNATURE.upper(),
    "one line with blanks": " ".join(URL_SIGNATURE.split()[:-1]),
    "blank lines between": URL_SIGNATURE.replace("\n", "\n\n"),
}


@pytest.mark.parametrize("pasted", PASTED_SIGNATURES.values(), ids=PASTED_SIGNATURES)
def test_a_pasted_signature_is_accepted_and_cleaned(pasted: str) -> None:
    assert signing.verify(URL, pasted, MANAGER_KEY.public_key())
    assert signing.clean_signature(pasted) == URL_SIGNATURE


def test_a_pasted_key_is_accepted_and_cleaned() -> None:
    pasted = "\r\n  " + MANAGER_PUBLIC_TEXT.upper().replace("\n", " \r\n  ")
    assert signing.public_key_text(signing.parse_public_key(pasted)) == MANAGER_PUBLIC_TEXT


BAD_SIGNATURES = {
    "": "signature: the text is empty",
    " \r\n\t": "signature: the text is empty",
    ".": "signature: it has 0 hexadecimal digits, but must have exactly 256",
    URL_SIGNATURE.replace("a9526b", "", 1): "it has 250 hexadecimal digits, but must have exactly 256",
    URL_SIGNATURE.replace("a9526b", "a9526", 1): "the number of hexadecimal digits is odd (255): one is missing",
    URL_SIGNATURE.replace("a9526b", "g9526b", 1): "'g' is not a hexadecimal digit (0-9, a-f)",
    URL_SIGNATURE.replace("a9526b", "٣9526b", 1): "'٣' is not a hexadecimal digit (0-9, a-f)",
    URL_SIGNATURE + URL_SIGNATURE: "signature: there is more text after the dot that ends it",
    f"<url_signature>{URL_SIGNATURE}": "'<' is not a hexadecimal digit (0-9, a-f)",
    "0" * 16_385: "signature: the text has 16385 characters; the limit is 16384",
}


@pytest.mark.parametrize(("text", "message"), BAD_SIGNATURES.items(), ids=BAD_SIGNATURES.values())
def test_a_text_that_is_no_signature_is_refused_with_its_fault(text: str, message: str) -> None:
    with pytest.raises(SigningError) as caught:
        signing.verify(URL, text, MANAGER_KEY.public_key())
    assert message in str(caught.value)
    with pytest.raises(SigningError):
        signing.clean_signature(text)


def test_a_wrong_but_well_formed_signature_is_just_not_valid() -> None:
    public = MANAGER_KEY.public_key()
    assert not signing.verify(URL, URL_SIGNATURE.replace("a9526b", "a9526c", 1), public)
    assert not signing.verify(URL, "0" * 256, public)
    # Larger than the modulus, so it is not the residue of anything.
    assert not signing.verify(URL, "f" * 256, public)


def zeroed(text: str, line: int) -> str:
    lines = text.split("\n")
    lines[line] = "0" * 64
    return "\n".join(lines)


BAD_PUBLIC_KEYS = {
    "empty": ("", "public key: the text is empty"),
    "no bit count": (MANAGER_PUBLIC_TEXT[5:], "public key: the first line must be the number of bits, 1024"),
    "2048 bits": (MANAGER_PUBLIC_TEXT.replace("1024", "2048", 1), "public key: it has 2048 bits"),
    "Arabic bit count": (MANAGER_PUBLIC_TEXT.replace("1024", "١٠٢٤", 1), "the first line must be"),
    "cut": (MANAGER_PUBLIC_TEXT[:300], "hexadecimal digits"),
    "a line missing": (MANAGER_PUBLIC_TEXT.replace("0" * 64 + "\n", "", 1), "it has 448 hexadecimal digits"),
    "stray letter": (MANAGER_PUBLIC_TEXT.replace("e62d", "x62d", 1), "'x' is not a hexadecimal digit"),
    "private key": (KEYS["account_manager"]["private"], "public key: this is a private key"),
    "short modulus": (zeroed(MANAGER_PUBLIC_TEXT, 1), "public key:"),
    "exponent 0": (zeroed(MANAGER_PUBLIC_TEXT, 8), "public key: its numbers are not an RSA key"),
    "exponent even": (MANAGER_PUBLIC_TEXT.replace("10001\n.", "10000\n."), "its numbers are not an RSA key"),
    "huge": ("1024\n" * 4_000, "public key: the text has 20000 characters; the limit is 16384"),
}


@pytest.mark.parametrize(("text", "message"), BAD_PUBLIC_KEYS.values(), ids=BAD_PUBLIC_KEYS)
def test_a_bad_public_key_is_refused_with_its_fault(text: str, message: str) -> None:
    with pytest.raises(SigningError) as caught:
        signing.parse_public_key(text)
    assert message in str(caught.value)


PRIVATE_TEXT = KEYS["account_manager"]["private"]
MANAGER_PEM = pem(MANAGER_KEY)
BAD_PRIVATE_KEYS = {
    "empty": ("\n", "private key: the text is empty"),
    "public key": (MANAGER_PUBLIC_TEXT, "private key: this is a public key"),
    "cut": (PRIVATE_TEXT[:1000], "hexadecimal digits"),
    "encrypted PEM": (pem(MANAGER_KEY, b"secret"), "the PEM text is encrypted"),
    "damaged PEM": (MANAGER_PEM[:200] + MANAGER_PEM[210:], "the PEM text is damaged"),
    "PEM of an elliptic curve": (pem(ec.generate_private_key(ec.SECP256R1())), "a key that is not RSA"),
    "PEM of 2048 bits": (pem(rsa.generate_private_key(65537, 2048)), "private key: it has 2048 bits"),
    "huge": ("-----BEGIN" + "A" * 20_000, "the text has 20010 characters; the limit is 16384"),
}


@pytest.mark.parametrize(("text", "message"), BAD_PRIVATE_KEYS.values(), ids=BAD_PRIVATE_KEYS)
def test_a_bad_private_key_is_refused_with_its_fault(text: str, message: str) -> None:
    with pytest.raises(SigningError) as caught:
        signing.parse_private_key(text)
    assert message in str(caught.value)


# Lines: 0 bit count, 1-4 modulus, 5-8 public exponent, 9-12 d, then two each of p, q, dp, dq and qinv.
@pytest.mark.parametrize("line", [1, 8, 9, 13, 15, 17, 19, 21])
def test_private_numbers_that_do_not_belong_together_are_refused(line: int) -> None:
    with pytest.raises(SigningError, match="private key: its numbers do not match"):
        signing.parse_private_key(zeroed(PRIVATE_TEXT, line))


def test_no_message_repeats_a_private_number() -> None:
    with pytest.raises(SigningError) as caught:
        signing.parse_private_key(zeroed(PRIVATE_TEXT, 9))
    assert not any(line in str(caught.value) for line in PRIVATE_TEXT.split("\n") if len(line) == 64)


def test_a_key_of_another_size_signs_and_verifies_nothing() -> None:
    large = rsa.generate_private_key(65537, 2048)
    with pytest.raises(SigningError, match="2048 bits"):
        signing.sign(URL, large)
    with pytest.raises(SigningError, match="2048 bits"):
        signing.verify(URL, URL_SIGNATURE, large.public_key())
    with pytest.raises(SigningError, match="2048 bits"):
        signing.public_key_text(large)


@settings(deadline=None)
@given(text=st.one_of(st.text(), st.text(alphabet="0123456789abcdef.\n\r -BEGINPRVAT", max_size=2_000)))
def test_any_text_is_read_or_refused_by_the_typed_error(text: str) -> None:
    for read in (signing.parse_public_key, signing.parse_private_key, signing.clean_signature):
        with pytest.raises(SigningError):
            read(text)


@settings(deadline=None)
@given(position=st.integers(0, len(PRIVATE_TEXT) - 1), piece=st.text(alphabet="0123456789abcdef\n.", max_size=4))
def test_a_damaged_private_key_raises_nothing_but_the_typed_error(position: int, piece: str) -> None:
    damaged = PRIVATE_TEXT[:position] + piece + PRIVATE_TEXT[position + len(piece) :]
    try:
        key = signing.parse_private_key(damaged)
    except SigningError:
        return
    assert signing.private_key_text(key) == PRIVATE_TEXT
