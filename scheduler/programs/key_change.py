"""Changes the code-signing key: a new pair, signed by the old one, and new signatures of all programs, in one step.

Clients accept a new key only with a signature by the key that they hold (BOINC protocol, keys and signatures). So the
changes of old keys are kept for ever: a computer that returns after years is led from key to key
(`scheduler.programs.code_signing.KeyChain`).

The private keys may be on another machine. There `sign` makes a `Succession` of the site's `SigningList`, and `take`
checks it on the site. The list also says which key is in force, so nothing is signed with another key, and no key is
adopted before its time.
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
from django.utils.translation import gettext

from portal.audit import signed_log
from portal.languages.sentences import sentence
from portal.models import SignedEntry
from portal.wire import purposes, signing
from portal.wire.purposes import Purpose, content_of, sign_program_again
from portal.wire.signing import SigningError
from scheduler.models import KeyChange, StoredFile
from scheduler.programs import catalogue, code_signing

PUBLIC_NAME: Final = "new_key_public"
SIGNATURE_NAME: Final = "new_key_signature"


class KeyChangeError(Exception):
    """A change that is not possible; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Succession:
    """A new public key, the old key's signature of it, and the new key's signatures of the programs by name."""

    public_key: str
    signature: str
    programs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SignedFile:
    """A program file: its name, its MD5 and the signature by the key in force."""

    name: str
    md5: str
    signature: str


@dataclass(frozen=True, slots=True)
class SigningList:
    """The list to sign: the public key in force, and the program files that computers may still fetch."""

    key_in_force: str
    files: Sequence[SignedFile]

    def text(self) -> str:
        """Return the list as text: a line `key HEX`, and a line `NAME MD5 HEX` for each file."""
        lines = [f"key {_one_line(self.key_in_force)}\n"]
        lines += [f"{file.name} {file.md5} {_one_line(file.signature)}\n" for file in self.files]
        return "".join(lines)


def _one_line(text: str) -> str:
    """Join the lines of a key or a signature, without the dot at the end."""
    return "".join(text.split()).rstrip(".")


def signing_list() -> SigningList:
    """Return what this site needs signatures for. Raises FileNotFoundError if it has no key yet."""
    files = StoredFile.objects.filter(deleted_at=None).exclude(signature="").order_by("name")
    rows = files.values_list("name", "md5", "signature")
    return SigningList(code_signing.code_signing_key_text(), [SignedFile(*row) for row in rows])


def parse_signing_list(text: str) -> SigningList:
    """Parse the text of `SigningList.text`. Raises KeyChangeError with the first invalid line."""
    first, *rows = [line.split() for line in text.splitlines() if line.strip()] or [[]]
    if len(first) != 2 or first[0] != "key":
        raise KeyChangeError(
            gettext("The list does not begin with the key in force. Make it again on the site, with --list.")
        )
    if wrong := [row for row in rows if len(row) != 3]:
        raise KeyChangeError(
            gettext("“%(line)s” is not a name, an MD5 and a signature.") % {"line": " ".join(wrong[0])[:80]}
        )
    return SigningList(first[1], [SignedFile(*row) for row in rows])


def sign(site_list: SigningList) -> Succession:
    """Make the next key pair, or resume an interrupted run's, and sign with the old and the new key. Needs no database.

    Only if the old key is the one in force, and only what it has signed: anyone who broke into the site may have put
    other files on the list. Raises KeyChangeError, OSError and SigningError.
    """
    path = _next_path()
    if not _is_of(Path(settings.CODE_SIGNING_KEY), site_list):
        raise KeyChangeError(_why_not_in_force(site_list))
    old = _read_private(Path(settings.CODE_SIGNING_KEY))
    for file in site_list.files:
        _check_signed(file, old.public_key())
    if not path.exists():
        _write_durably(path, signing.private_key_text(signing.generate_key()), 0o600)
    new = _read_private(path)
    public_key = signing.public_key_text(new).strip()
    content = content_of(public_key.encode())
    signed_keys = _note_signed_key(content.md5)
    return Succession(
        public_key,
        purposes.sign(Purpose.NEXT_KEY, content, old),
        {file.name: sign_program_again(file.md5, file.signature, old, new, signed_keys) for file in site_list.files},
    )


def _note_signed_key(md5: str) -> set[str]:
    """Record the new key and return the MD5s of all keys signed on this machine.

    If a change is abandoned, the signature of its key still exists, and must not be mistaken for a program's.
    """
    path = Path(settings.CODE_SIGNING_KEY)
    path = path.with_name(f"{path.name}.signed-keys")
    keys = set(path.read_text(encoding="ascii").split()) if path.exists() else set()
    if md5 not in keys:
        keys.add(md5)
        _write_durably(path, "\n".join(sorted(keys)) + "\n", 0o600)
    return keys


def _why_not_in_force(site_list: SigningList) -> str:
    private, following = Path(settings.CODE_SIGNING_KEY), _next_path()
    if _is_of(following, site_list):
        return f"The site has taken the key {following} already: adopt it (--adopt) before you change the key again."
    for old in sorted(private.parent.glob(f"{private.name}.old-*")):
        if _is_of(old, site_list):
            return (
                f"{private} is not in force at the site, but {old} still is. Move {private} to {following} and {old} to"
                f" {private}, and repeat this step. Nothing was signed."
            )
    return f"{private} does not match the key in force at the site: nothing can be signed with it."


def _check_signed(file: SignedFile, key: signing.PublicKey) -> None:
    # The name becomes a file name on the machine with the key.
    if not file.name or "/" in file.name:
        raise KeyChangeError(f"{file.name[:80]!r} is not the name of a program file.")
    try:
        is_signed = signing.verify_md5(file.md5, file.signature, key)
    except SigningError as error:
        raise KeyChangeError(f"{file.name}: {sentence(error.message)}") from error
    if not is_signed:
        raise KeyChangeError(
            f"{file.name}: the present key has not signed the MD5 {file.md5[:40]}. If you did not release this file,"
            " somebody else has put it on the site. Nothing was signed."
        )


@transaction.atomic
def take(new: Succession, now: dt.datetime) -> int:
    """Make the new key the one in force; return how many programs it signs now. Safe to repeat.

    Raises KeyChangeError if a signature is wrong or missing: then nothing has changed.
    """
    with connection.cursor() as cursor:
        # A release in progress ends first, and its files are among those to sign; a later one waits.
        cursor.execute("LOCK TABLE scheduler_storedfile IN SHARE ROW EXCLUSIVE MODE")
    current = code_signing.code_signing_key_text()
    if new.public_key == current:
        return 0
    try:
        # Checked first, because the database rejects some texts that are not keys.
        key = signing.parse_public_key(new.public_key)
        purposes.check(Purpose.NEXT_KEY, content_of(new.public_key.encode()))
        if KeyChange.objects.filter(old_key=new.public_key).exists():
            raise KeyChangeError(gettext("This key was the project's before. Make a new one."))
        if not signing.verify(new.public_key.encode(), new.signature, signing.parse_public_key(current)):
            raise KeyChangeError(gettext("The new key is not signed by the one in force: clients would refuse it."))
        files = list(StoredFile.objects.filter(deleted_at=None).exclude(signature=""))
        for file in files:
            signature = new.programs.get(file.name)
            if signature is None:
                raise KeyChangeError(
                    gettext("%(name)s is not signed: it was released meanwhile. Sign the list again.")
                    % {"name": file.name}
                )
            if not signing.verify_md5(file.md5, signature, key):
                raise KeyChangeError(
                    gettext("%(name)s: not the new key's signature of this file.") % {"name": file.name}
                )
            file.signature = signing.clean_signature(signature)
    except SigningError as error:
        raise KeyChangeError(sentence(error.message)) from error
    StoredFile.objects.bulk_update(files, ["signature"], batch_size=500)
    KeyChange.objects.create(
        old_key=current, new_key=new.public_key, signature=signing.clean_signature(new.signature), changed_at=now
    )
    signed_log.append(
        SignedEntry.Kind.KEY, {"old_key": current, "new_key": new.public_key, "programs": len(files)}, now
    )
    transaction.on_commit(catalogue.forget)
    return len(files)


def change_here(now: dt.datetime) -> int:
    """Make the whole change where the private key is on this machine; also completes an interrupted one."""
    private = Path(settings.CODE_SIGNING_KEY)
    if not private.exists():
        raise KeyChangeError(
            f"The private key {private} is not on this machine: see docs/how-to/jobs.md, “Change the key”, for two"
            " machines."
        )
    site_list = signing_list()
    # Otherwise it was interrupted between the two, and the site already has the next key.
    count = 0 if _is_of(_next_path(), site_list) else take(sign(site_list), now)
    adopt(signing_list())
    return count


def adopt(site_list: SigningList) -> None:
    """Put the next key in the old one's place. The old one is kept under a name with the beginning of its MD5.

    Only once the site has taken it: otherwise the next change would be signed with a key that no client has ever had.
    There is always a key in place: if this was killed half-way, it can simply be called again. Raises KeyChangeError if
    the site has not taken it; then nothing has changed.
    """
    private, public = Path(settings.CODE_SIGNING_KEY), Path(settings.CODE_SIGNING_KEY_PUBLIC)
    if not _is_of(_next_path(), site_list):
        if not _is_of(private, site_list):
            raise KeyChangeError(f"Neither {private} nor {_next_path()} matches the key in force at the site.")
        if _next_path().exists():
            raise KeyChangeError(
                f"When this list was made, the site had not taken the next key: {private} was still in force, and stays"
                " in its place. Take the new key on the site (--take), make the list again (--list), and adopt by it."
            )
        return
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
    """Write the complete file or nothing, even with a power failure: a key that clients follow must never be lost."""
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
    """Write the files to carry to the site's machine."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {PUBLIC_NAME: new.public_key + "\n", SIGNATURE_NAME: new.signature}
    for name, text in (texts | {f"{name}.sig": text for name, text in new.programs.items()}).items():
        (folder / name).write_text(text, encoding="ascii")


def read(folder: Path) -> Succession:
    """Read what `write` wrote. Raises OSError and ValueError."""
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


def _is_of(path: Path, site_list: SigningList) -> bool:
    """Whether this private key exists, and matches the key in force."""
    return path.exists() and _one_line(_public(path)) == _one_line(site_list.key_in_force)


def _public(path: Path) -> str:
    """Return the public part of a private key's file, as clients get it."""
    return signing.public_key_text(_read_private(path)).strip()
