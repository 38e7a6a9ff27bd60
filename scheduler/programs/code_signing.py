"""The code-signing key: the pair, its signatures, and the messages for clients with an older key.

Clients keep the key and check every program with it (BOINC protocol, keys and signatures), so its private part may be
kept on another machine. `scheduler.programs.key_change` changes it. The key that signs addresses of projects is
separate: either can be kept offline alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

from portal.wire import signing
from portal.wire.key_files import make_pair_if_missing
from portal.wire.purposes import Content, Purpose, sign
from scheduler.models import KeyChange
from scheduler.wire.replies import render_code_sign_key

MAX_CHANGES: Final = 1000


def make_if_missing() -> bool:
    """Create the code-signing pair if neither part exists; return whether it was created."""
    return make_pair_if_missing(Path(settings.CODE_SIGNING_KEY), Path(settings.CODE_SIGNING_KEY_PUBLIC))


def code_signing_key_text() -> str:
    """Return the public key in force, without the LF at its end. FileNotFoundError before `make_if_missing`.

    It is the file's, or the one that it was changed to since: a change is one transaction of the database, with the
    signatures of all programs, and web servers may get the new file later.
    """
    return in_force(KeyChange.objects.all())


def in_force(changes: Iterable[KeyChange]) -> str:
    """Return the key at the end of the changes that begin with the file's."""
    text = _read(str(settings.CODE_SIGNING_KEY_PUBLIC))
    successors = {change.old_key: change.new_key for change in changes}
    for _ in range(MAX_CHANGES):
        if text not in successors:
            break
        text = successors[text]
    return text


@lru_cache(maxsize=4)
def _read(path: str) -> str:
    return Path(path).read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class KeyStep:
    """The part of a reply about the key.

    ``reaches_current``: the client then has the key in force, and accepts programs.
    """

    xml: str
    reaches_current: bool


_NOTHING_NEW: Final = KeyStep("", True)
_STRANGER: Final = KeyStep("", False)


@dataclass(frozen=True, slots=True)
class KeyChain:
    """The key in force, and what clients with another one are sent; rendered once.

    ``steps``: by the key that they have. Each step leads to the next key: a client that missed several changes takes
    one at each request, because each key has only signed the next one.
    """

    current: str = ""
    first: KeyStep = _STRANGER
    steps: dict[str, KeyStep] = field(default_factory=dict)

    def step(self, held: str) -> KeyStep:
        """Return what to send a client that holds this key; an empty key: it has none yet."""
        if held == self.current:
            return _NOTHING_NEW
        if not held:
            return self.first
        if (same := held.split()) == self.current.split():
            return _NOTHING_NEW
        return self.steps.get("".join(same), _STRANGER)

    def knows(self, held: str) -> bool:
        """Whether this key is or was the project's, or the project has no key yet."""
        return self.step(held) is not _STRANGER


def chain() -> KeyChain:
    changes = list(KeyChange.objects.all())
    current = in_force(changes)
    steps = {
        "".join(change.old_key.split()): KeyStep(
            render_code_sign_key(change.new_key, change.signature), change.new_key == current
        )
        for change in changes
    }
    return KeyChain(current, KeyStep(render_code_sign_key(current), True), steps)


def was_changed_to(held: str) -> bool:
    """Whether the project's key was ever changed to this one. Reads a single row, because anybody may name any key."""
    return KeyChange.objects.filter(new_key=held.strip()).exists()


def sign_program(content: Content) -> str | None:
    """Return the signature of a program file; None if the private key is kept elsewhere.

    Raises SigningError if clients could take the file for something else (`portal.wire.purposes`).
    """
    private = Path(settings.CODE_SIGNING_KEY)
    if not private.exists():
        return None
    return sign(Purpose.PROGRAM, content, signing.parse_private_key(private.read_text(encoding="ascii")))


def has_private_key() -> bool:
    """Whether this machine can sign."""
    return Path(settings.CODE_SIGNING_KEY).exists()


def is_signed_md5(md5: str, signature: str) -> bool:
    """Whether clients will accept this signature of content with this MD5. SigningError if it is not a signature."""
    return signing.verify_md5(md5, signature, signing.parse_public_key(code_signing_key_text()))
