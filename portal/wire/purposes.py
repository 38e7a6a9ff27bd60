"""What each of BOINC's signing keys may sign: one kind of text for each purpose, and nothing with another meaning.

A signature does not state its purpose: it covers the MD5 of a text, and clients accept it wherever that text fits. So a
program file that reads as a key would be a change of the code-signing key, signed by the project. Everything that
signs calls `sign`, which checks the text first.

Pure: text and bytes in, signatures out. Every refusal is a SigningError that says what the text was taken for.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Final

from portal.languages.messages import Message
from portal.wire import signing
from portal.wire.signing import PrivateKey, SigningError

MAX_URL_NBYTES: Final = 255
HEAD_NBYTES: Final = 64 * 1024
"""How much of a text is checked. Clients keep 4,095 bytes of a key, and 255 of an address."""


class Purpose(StrEnum):
    """The purpose of a signature. The first two are the code-signing key's, the last the account manager's."""

    PROGRAM = "a program file"
    NEXT_KEY = "the next code-signing key"
    PROJECT_URL = "the URL of a project"


# All that clients of any age scan: some skip white space, a sign and further text in the first line, and white space
# before the digits, too. One byte is enough for them: the rest is what was in their memory.
_KEY: Final = re.compile(rb"\s*[+-]?[0-9][^\n]*\n\s*[+-]?[0-9A-Fa-f]")
# Programs disagree on where the host ends in an address with a backslash, or with an @ before its first slash.
_URL: Final = re.compile(rb"https?://[^\s<>\\/@?#]+/(?:[^\s<>\\]*/)?")
_OTHER_TEXTS: Final[Mapping[Message, re.Pattern[bytes]]] = {
    Message("text_url"): re.compile(rb"\s*https?://\S+\s*\Z", re.IGNORECASE),
    Message("text_upload_certificate"): re.compile(rb"\s*<name>[^<]*</name>\s*<max_nbytes>"),
    Message("text_account_key"): re.compile(rb"\s*(?:[0-9]+_)?[0-9A-Fa-f]{32}\s*\Z"),
    Message("text_manifest"): re.compile(rb'\s*\{[^}]*"code_signing_key"\s*:'),
    Message("text_key_list"): re.compile(rb"\s*key [0-9A-Fa-f]+\s*\n"),
}


@dataclass(frozen=True, slots=True)
class Content:
    """Content to be signed: its beginning without leading white space, its size, its MD5, and its SHA-256."""

    head: bytes
    nbytes: int
    md5: str
    sha256: str


def read_content(file: IO[bytes]) -> Content:
    """The content of a file, from its current position to its end."""
    digest, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    head, nbytes = b"", 0
    while chunk := file.read(256 * 1024):
        digest.update(chunk)
        sha256.update(chunk)
        nbytes += len(chunk)
        if len(head) < HEAD_NBYTES:
            head = (head + chunk).lstrip()[:HEAD_NBYTES]
    return Content(head, nbytes, digest.hexdigest(), sha256.hexdigest())


def content_of(text: bytes) -> Content:
    """The content of a text."""
    return read_content(io.BytesIO(text))


def check(purpose: Purpose, content: Content) -> None:
    """Raise SigningError unless the content may be signed for this purpose."""
    match purpose:
        case Purpose.PROGRAM:
            _check_program(content)
        case Purpose.NEXT_KEY:
            _check_next_key(content)
        case Purpose.PROJECT_URL:
            _check_project_url(content)


def sign(purpose: Purpose, content: Content, key: PrivateKey) -> str:
    """Return the signature of the content. Raises SigningError if this purpose does not sign it."""
    check(purpose, content)
    return signing.sign_md5(content.md5, key)


def sign_program_again(md5: str, signature: str, old: PrivateKey, new: PrivateKey, keys: Collection[str] = ()) -> str:
    """Return the new key's signature of a program that the old key signed; the program itself is not needed.

    ``keys``: the MD5s of all texts of keys that the old one signed, also for cancelled changes. Raises SigningError if
    the old key did not sign it as a program.
    """
    if not signing.verify_md5(md5, signature, old.public_key()):
        raise SigningError(Message("md5_not_signed", md5=md5[:40]))
    # By then the old key has signed one more text, which is public.
    digests = {content_of(text).md5 for key in (old, new) for text in _texts_of(key)}
    if md5.lower() in digests.union(keys):
        raise SigningError(Message("md5_of_key"))
    return signing.sign_md5(md5, new)


def _texts_of(key: PrivateKey) -> tuple[bytes, bytes]:
    text = signing.public_key_text(key).encode()
    return text, text.strip()


def _check_program(content: Content) -> None:
    if _KEY.match(content.head):
        raise SigningError(Message("program_like_key"))
    for meaning, pattern in _OTHER_TEXTS.items():
        if pattern.match(content.head):
            raise SigningError(Message("program_like_other_text", meaning=meaning))


def _check_next_key(content: Content) -> None:
    text = content.head.decode("ascii", "replace")
    # Exactly what is sent: clients strip white space before they compare, and accept no other line ends.
    exact = signing.public_key_text(signing.parse_public_key(text)).strip()
    if content.nbytes != len(content.head) or text != exact:
        raise SigningError(Message("key_not_clean"))


def _check_project_url(content: Content) -> None:
    if content.nbytes > MAX_URL_NBYTES or not _is_url(content):
        raise SigningError(Message("url_unsignable", limit=MAX_URL_NBYTES))


def _is_url(content: Content) -> bool:
    return content.nbytes == len(content.head) and _URL.fullmatch(content.head) is not None
