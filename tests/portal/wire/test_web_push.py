"""Web Push: the examples of the RFCs, and what is refused."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec

from portal.wire.web_push import (
    MAX_TEXT_BYTES,
    PushKeyError,
    encoded,
    encrypt,
    encrypt_with,
    new_key_text,
    parse_browser_keys,
    parse_key,
    public_key_text,
)
from tests.support.push_browser import PushBrowser, unpadded

# RFC 8291, 5 and appendix A
TEXT = b"When I grow up, I want to be a watermelon"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_rfc_comes_out_byte_for_byte() -> None:
    body = encrypt_with(TEXT, parse_browser_keys(P256DH, AUTH), parse_key(SENDER), unpadded(SALT))
    assert encoded(body) == BODY


def test_a_browser_reads_what_was_encrypted_for_it_and_no_other_browser_does() -> None:
    browser = PushBrowser()
    for text in (b"", b"x", bytes(MAX_TEXT_BYTES)):
        assert browser.decrypted(encrypt(text, browser.keys)) == text
    with pytest.raises(InvalidTag):
        PushBrowser().decrypted(encrypt(b"x", browser.keys))


def test_each_message_has_a_key_and_a_salt_of_its_own() -> None:
    browser = PushBrowser()
    first, second = encrypt(b"x", browser.keys), encrypt(b"x", browser.keys)
    assert first[:16] != second[:16] and first[21:86] != second[21:86]


def test_the_longest_message_fits_what_every_push_service_takes() -> None:
    assert len(encrypt(bytes(MAX_TEXT_BYTES), PushBrowser().keys)) <= 4096
    with pytest.raises(ValueError, match=f"at most {MAX_TEXT_BYTES} bytes"):
        encrypt(bytes(MAX_TEXT_BYTES + 1), PushBrowser().keys)


@pytest.mark.parametrize(
    ("p256dh", "auth", "field"),
    [
        ("", AUTH, "p256dh"),
        (P256DH[:-4], AUTH, "p256dh"),
        (P256DH + "AAAA" * 100, AUTH, "p256dh"),
        # 65 bytes that are no point of the curve
        (encoded(b"\x04" + bytes(64)), AUTH, "p256dh"),
        (encoded(b"\x02" + unpadded(P256DH)[1:]), AUTH, "p256dh"),
        (P256DH, "", "auth"),
        (P256DH, "*" * 22, "auth"),
        (P256DH, "ä" * 22, "auth"),
        (P256DH, encoded(bytes(15)), "auth"),
    ],
)
def test_keys_that_are_none_are_refused_by_name(p256dh: str, auth: str, field: str) -> None:
    with pytest.raises(PushKeyError, match=field):
        parse_browser_keys(p256dh, auth)


@pytest.mark.parametrize("text", ["", "secret", encoded(bytes(32)), encoded(b"\xff" * 32)])
def test_a_key_of_ones_own_that_is_none_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(PushKeyError) as caught:
        parse_key(text)
    assert not text or text not in str(caught.value)


def test_the_key_as_it_is_kept_is_the_same_key() -> None:
    text = new_key_text()
    key = parse_key(text)
    assert isinstance(key, ec.EllipticCurvePrivateKey) and public_key_text(key) == public_key_text(parse_key(text))
    assert len(unpadded(public_key_text(key))) == 65 and new_key_text() != text
