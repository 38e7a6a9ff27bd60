"""BOINC's key texts and signatures, which a client checks before it trusts a project's address or program.

Keys are RSA with exactly 1024 bits (the client has fixed fields of 128 bytes). A signature is the RSA private
operation, with PKCS#1 v1.5 padding and no DigestInfo header, on the 32 lower-case hexadecimal characters of
the data's MD5. Source: BOINC protocol, keys and signatures.

Pure: text and bytes in, keys, text or a boolean out. People paste these texts, so the parser accepts blanks,
CRLF and upper case. Every refusal is a SigningError that says what is wrong with the text.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from portal.languages.messages import Message, MessageError

PrivateKey = rsa.RSAPrivateKey
PublicKey = rsa.RSAPublicKey

KEY_BITS: Final = 1024
PUBLIC_EXPONENT: Final = 65537
MAX_TEXT_CHARS: Final = 16_384

_KEY_BYTES: Final = KEY_BITS // 8
_HALF_BYTES: Final = _KEY_BYTES // 2
_LINE_DIGITS: Final = 64
# Bytes of each number, in the order of the text.
_PUBLIC_LAYOUT: Final = (_KEY_BYTES, _KEY_BYTES)  # modulus, public exponent
_PRIVATE_LAYOUT: Final = (
    *_PUBLIC_LAYOUT,
    _KEY_BYTES,
    *[_HALF_BYTES] * 5,
)  # d, p, q, d mod p-1, d mod q-1, 1/q
_PEM_MARK: Final = "-----BEGIN"
PUBLIC: Final = Message("name_public_key")
PRIVATE: Final = Message("name_private_key")
SIGNATURE: Final = Message("name_signature")


class SigningError(MessageError, ValueError):
    """A key, a signature or a program file that cannot be used; the message names it and its fault."""


def generate_key() -> PrivateKey:
    """Return a new random private key of the only size that BOINC clients accept."""
    return rsa.generate_private_key(public_exponent=PUBLIC_EXPONENT, key_size=KEY_BITS)


def public_key_text(key: PrivateKey | PublicKey) -> str:
    """Return the public key in the clients' format: bit count, hexadecimal lines of 64 digits, a dot; LF only.

    Raises SigningError for a key of another size.
    """
    numbers = _public_key(key).public_numbers()
    return _key_text((numbers.n, numbers.e), _PUBLIC_LAYOUT)


def private_key_text(key: PrivateKey) -> str:
    """Return the private key in BOINC's layout, which `parse_private_key` reads back. Keep it secret."""
    _check_size(key.key_size, PRIVATE)
    own = key.private_numbers()
    shared = own.public_numbers
    values = (shared.n, shared.e, own.d, own.p, own.q, own.dmp1, own.dmq1, own.iqmp)
    return _key_text(values, _PRIVATE_LAYOUT)


def parse_public_key(text: str) -> PublicKey:
    """Read a public key in BOINC's layout. Raises SigningError."""
    modulus, exponent = _key_numbers(text, _PUBLIC_LAYOUT, PUBLIC)
    try:
        key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    except ValueError as error:
        raise SigningError(Message("key_no_rsa", name=PUBLIC)) from error
    _check_size(key.key_size, PUBLIC)
    return key


# Checking whether its numbers match takes much longer than signing with it.
@lru_cache(maxsize=4)
def parse_private_key(text: str) -> PrivateKey:
    """Read a private key in BOINC's layout or as unencrypted PEM. Raises SigningError."""
    _check_length(text, PRIVATE)
    if _PEM_MARK in text:
        return _parse_pem(text)
    n, e, d, p, q, dmp1, dmq1, iqmp = _key_numbers(text, _PRIVATE_LAYOUT, PRIVATE)
    numbers = rsa.RSAPrivateNumbers(p, q, d, dmp1, dmq1, iqmp, rsa.RSAPublicNumbers(e, n))
    try:
        key = numbers.private_key()
    except ValueError as error:
        raise SigningError(Message("key_numbers", name=PRIVATE)) from error
    _check_size(key.key_size, PRIVATE)
    return key


def sign(data: bytes, key: PrivateKey) -> str:
    """Return the signature of `data` as text: hex lines of 64 digits, then a line with a dot; LF only."""
    return sign_md5(_md5_text(data).decode(), key)


def sign_md5(md5: str, key: PrivateKey) -> str:
    """Like `sign`, for data whose MD5 is known, as 32 lower-case hexadecimal digits."""
    _check_size(key.key_size, PRIVATE)
    if not re.fullmatch(r"[0-9a-f]{32}", md5):
        raise SigningError(Message("signed_no_md5", md5=repr(md5[:40])))
    return _hex_lines(key.sign(md5.encode(), padding.PKCS1v15(), NoDigestInfo()))


def verify(data: bytes, signature_text: str, public_key: PublicKey) -> bool:
    """Return whether this is the key's signature of `data`; SigningError if the text is not a signature."""
    return verify_md5(_md5_text(data).decode(), signature_text, public_key)


def verify_md5(md5: str, signature_text: str, public_key: PublicKey) -> bool:
    """Like `verify`, for data whose MD5 is known."""
    signature = _signature_bytes(signature_text)
    _check_size(public_key.key_size, PUBLIC)
    try:
        signed = public_key.recover_data_from_signature(signature, padding.PKCS1v15(), None)
    except InvalidSignature:
        return False
    return signed == md5.encode()


def clean_signature(signature_text: str) -> str:
    """Return a pasted signature in the form that clients need (flush left, LF only). Raises SigningError."""
    return _hex_lines(_signature_bytes(signature_text))


def _md5_text(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode("ascii")


def _hex_lines(data: bytes) -> str:
    digits = data.hex()
    lines = [digits[start : start + _LINE_DIGITS] for start in range(0, len(digits), _LINE_DIGITS)]
    return "\n".join([*lines, ".", ""])


def _key_text(values: Sequence[int], layout: Sequence[int]) -> str:
    packed = b"".join(value.to_bytes(size, "big") for value, size in zip(values, layout, strict=True))
    return f"{KEY_BITS}\n{_hex_lines(packed)}"


def _public_key(key: PrivateKey | PublicKey) -> PublicKey:
    public = key.public_key() if isinstance(key, rsa.RSAPrivateKey) else key
    _check_size(public.key_size, PUBLIC)
    return public


def _check_size(bits: int, name: Message) -> None:
    if bits != KEY_BITS:
        raise SigningError(Message("key_size", name=name, bits=str(bits), known=str(KEY_BITS)))


def _check_length(text: str, name: Message) -> None:
    if len(text) > MAX_TEXT_CHARS:
        raise SigningError(Message("key_chars_limit", name=name, number=str(len(text)), limit=str(MAX_TEXT_CHARS)))


def _lines(text: str, name: Message) -> list[str]:
    """The lines without blanks, up to the dot that ends the text; nothing may follow the dot."""
    _check_length(text, name)
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    if not lines:
        raise SigningError(Message("key_empty", name=name))
    if "." in lines[:-1]:
        raise SigningError(Message("key_after_dot", name=name))
    return lines[:-1] if lines[-1] == "." else lines


def _hex_bytes(lines: Sequence[str], name: Message) -> bytes:
    """The bytes of the lines' hexadecimal digits; blanks inside a line are ignored."""
    digits = re.sub(r"\s", "", "".join(lines))
    stray = re.search(r"[^0-9A-Fa-f]", digits)
    if stray:
        raise SigningError(Message("key_stray_character", name=name, character=repr(stray.group())))
    if len(digits) % 2:
        raise SigningError(Message("key_odd_digits", name=name, number=len(digits)))
    return bytes.fromhex(digits)


def _signature_bytes(text: str) -> bytes:
    data = _hex_bytes(_lines(text, SIGNATURE), SIGNATURE)
    if len(data) != _KEY_BYTES:
        raise SigningError(_wrong_length(SIGNATURE, len(data), _KEY_BYTES))
    return data


def _key_numbers(text: str, layout: Sequence[int], name: Message) -> list[int]:
    """The numbers of a key text in BOINC's layout. Raises SigningError."""
    first, *rest = _lines(text, name) or [""]
    if not re.fullmatch(r"[0-9]{1,6}", first):
        raise SigningError(Message("key_first_line", name=name, bits=str(KEY_BITS)))
    _check_size(int(first), name)
    data = _hex_bytes(rest, name)
    if len(data) != sum(layout):
        raise SigningError(_wrong_length(name, len(data), sum(layout)))
    numbers = []
    for size in layout:
        numbers.append(int.from_bytes(data[:size], "big"))
        data = data[size:]
    return numbers


def _wrong_length(name: Message, nbytes: int, needed_nbytes: int) -> Message:
    keys = {sum(_PUBLIC_LAYOUT): PUBLIC, sum(_PRIVATE_LAYOUT): PRIVATE}
    if nbytes in keys and name != SIGNATURE:
        return Message("key_is_other", name=name, other=keys[nbytes])
    return Message("key_wrong_length", name=name, number=2 * nbytes, needed=2 * needed_nbytes)


def _parse_pem(text: str) -> PrivateKey:
    lines = "\n".join(line.strip() for line in text.strip().splitlines())
    try:
        key = load_pem_private_key(lines.encode(), password=None)
    except TypeError as error:
        raise SigningError(Message("pem_encrypted")) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(Message("pem_damaged")) from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise SigningError(Message("pem_no_rsa"))
    _check_size(key.key_size, PRIVATE)
    return key
