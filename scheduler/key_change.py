"""Change the code-signing key: a new pair, signed by the old one, and new signatures of all programs, in one step.

Clients take a new key only with a signature by the one that they hold (BOINC protocol, keys and signatures), so old
keys' changes are kept for ever: a computer that comes back after years is led from key to key (`keys.KeyChain`). The
private keys may be on another machine: `files_to_sign` there becomes a `Succession` by `sign`, which `take` checks.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection, transaction

from portal import signing
from portal.signing import SigningError
from scheduler import catalogue, keys
from scheduler.models import KeyChange, StoredFile

PUBLIC_NAME: Final = "new_key_public"
SIGNATURE_NAME: Final = "new_key_signature"


class KeyChangeError(Exception):
    """A change that is not possible; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Succession:
    """A new public key, the old key's signature of it, and the new one's signatures of the programs by their names."""

    public_key: str
    signature: str
    programs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SignedFile:
    """A program file: its name, its MD5 and the signature by the key in force."""

    name: str
    md5: str
    signature: str


def files_to_sign() -> list[SignedFile]:
    """The program files that computers may still fetch."""
    files = StoredFile.objects.filter(deleted_at=None).exclude(signature="").order_by("name")
    return [SignedFile(*row) for row in files.values_list("name", "md5", "signature")]


def sign(files: Sequence[SignedFile]) -> Succession:
    """Make the next key pair, or take the one of a run that was cut off, and sign with old and new. Needs no database.

    Only what the old key has signed: whoever broke into the site may have put other files on the list. Raises
    KeyChangeError, OSError and SigningError.
    """
    old = _read_private(Path(settings.CODE_SIGNING_KEY))
    for file in files:
        _check_signed(file, old.public_key())
    path = _next_path()
    if not path.exists():
        _write_durably(path, signing.private_key_text(signing.generate_key()), 0o600)
    new = _read_private(path)
    public_key = signing.public_key_text(new).strip()
    return Succession(
        public_key,
        signing.sign(public_key.encode(), old),
        {file.name: signing.sign_md5(file.md5, new) for file in files},
    )


def _check_signed(file: SignedFile, key: signing.PublicKey) -> None:
    # The name becomes that of a file on the machine with the key.
    if not file.name or "/" in file.name:
        raise KeyChangeError(f"{file.name[:80]!r} is not the name of a program file.")
    try:
        is_signed = signing.verify_md5(file.md5, file.signature, key)
    except SigningError as error:
        raise KeyChangeError(f"{file.name}: {error}") from error
    if not is_signed:
        raise KeyChangeError(
            f"{file.name}: the present key has not signed the MD5 {file.md5[:40]}. If you did not release this file,"
            " somebody else has put it on the site. Nothing was signed."
        )


@transaction.atomic
def take(new: Succession, now: dt.datetime) -> int:
    """Make the new key the one in force; how many programs are signed by it now. Safe to repeat.

    Raises KeyChangeError if a signature is wrong or missing: then nothing has changed.
    """
    with connection.cursor() as cursor:
        # A release that is going on ends first, and its files are among those to sign; another one waits.
        cursor.execute("LOCK TABLE scheduler_storedfile IN SHARE ROW EXCLUSIVE MODE")
    current = keys.code_signing_key_text()
    if new.public_key == current:
        return 0
    if KeyChange.objects.filter(old_key=new.public_key).exists():
        raise KeyChangeError("This key was the project's before. Make a new one.")
    try:
        key = signing.parse_public_key(new.public_key)
        if not signing.verify(new.public_key.encode(), new.signature, signing.parse_public_key(current)):
            raise KeyChangeError("The new key is not signed by the one in force: clients would refuse it.")
        files = list(StoredFile.objects.filter(deleted_at=None).exclude(signature=""))
        for file in files:
            signature = new.programs.get(file.name)
            if signature is None:
                raise KeyChangeError(f"{file.name} is not signed: it was released meanwhile. Sign the list anew.")
            if not signing.verify_md5(file.md5, signature, key):
                raise KeyChangeError(f"{file.name}: not the new key's signature of this file.")
            file.signature = signing.clean_signature(signature)
    except SigningError as error:
        raise KeyChangeError(str(error)) from error
    StoredFile.objects.bulk_update(files, ["signature"], batch_size=500)
    KeyChange.objects.create(
        old_key=current, new_key=new.public_key, signature=signing.clean_signature(new.signature), changed_at=now
    )
    transaction.on_commit(catalogue.forget)
    return len(files)


def change_here(now: dt.datetime) -> int:
    """The whole change where the private key is on this machine; also ends one that was cut off half-way."""
    private = Path(settings.CODE_SIGNING_KEY)
    if not private.exists():
        raise KeyChangeError(
            f"The private key {private} is not on this machine: see docs/jobs.md, “Change the key”, for two machines."
        )
    if _public(private) == keys.code_signing_key_text():
        count = take(sign(files_to_sign()), now)
    elif _next_path().exists() and _public(_next_path()) == keys.code_signing_key_text():
        count = 0
    else:
        raise KeyChangeError(f"{private} does not belong to the key in force: nothing can be signed with it.")
    adopt()
    return count


def adopt() -> None:
    """Put the next key in the old one's place, which is kept under a name with the beginning of its MD5.

    At no moment is there none: killed half-way, it may simply be called again.
    """
    private, public = Path(settings.CODE_SIGNING_KEY), Path(settings.CODE_SIGNING_KEY_PUBLIC)
    text = _public(_next_path()) + "\n"
    mark = hashlib.md5(_public(private).encode(), usedforsecurity=False).hexdigest()[:8]
    _keep(private, mark)
    if public.exists():
        _keep(public, mark)
    # The old pair is safe under its new names before anything is replaced.
    _sync_folder(private.parent)
    _write_durably(public, text, 0o644)
    _next_path().replace(private)
    _sync_folder(private.parent)


def _keep(path: Path, mark: str) -> None:
    with suppress(FileExistsError):
        path.with_name(f"{path.name}.old-{mark}").hardlink_to(path)


def _write_durably(path: Path, text: str, mode: int) -> None:
    """The whole file or none, and after a power failure too: a key that clients follow must never be lost."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "w", encoding="ascii") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    part.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write(new: Succession, folder: Path) -> None:
    """To be carried to the site's machine."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {PUBLIC_NAME: new.public_key + "\n", SIGNATURE_NAME: new.signature}
    for name, text in (texts | {f"{name}.sig": text for name, text in new.programs.items()}).items():
        (folder / name).write_text(text, encoding="ascii")


def read(folder: Path) -> Succession:
    """What `write` wrote. Raises OSError and ValueError."""
    return Succession(
        (folder / PUBLIC_NAME).read_text(encoding="ascii").strip(),
        (folder / SIGNATURE_NAME).read_text(encoding="ascii"),
        {path.name.removesuffix(".sig"): path.read_text(encoding="ascii") for path in folder.glob("*.sig")},
    )


def _next_path() -> Path:
    private = Path(settings.CODE_SIGNING_KEY)
    return private.with_name(f"{private.name}.next")


def _read_private(path: Path) -> signing.PrivateKey:
    return signing.parse_private_key(path.read_text(encoding="ascii"))


def _public(path: Path) -> str:
    """The public part of a private key's file, as clients get it."""
    return signing.public_key_text(_read_private(path)).strip()
