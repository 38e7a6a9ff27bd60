"""Versions that are prepared in the browser: their description, files and signatures, until they are stored.

`scheduler.programs.release` reads, signs and releases them as from a folder: a draft is written to a folder for it. So
a version made here is the same as one made by the command.

A draft's row is locked before its files change; the version's rows come after it.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext

from credit.models import AppVersion
from portal.languages.sentences import sentence
from portal.models import User
from portal.wire.purposes import read_content
from scheduler.engine.limits import MAX_FILES_PER_JOB, is_name, name_rule
from scheduler.engine.release_states import ReleaseAction, ReleaseState, after
from scheduler.models import BetaTest, DraftFile, ReleaseDraft
from scheduler.programs import code_signing, release
from scheduler.programs.release import DESCRIPTIONS, Release, ReleaseError
from scheduler.releases.rollout import log, state_of

MAX_FILE_NBYTES: Final = 60 * 1024 * 1024
"""The limit for one uploaded file; larger ones are released by the command."""
MAX_SIGNATURES_NBYTES: Final = 1024 * 1024
MANIFEST_FORMAT: Final = 1


@transaction.atomic
def add_file(draft: ReleaseDraft, name: str, content: File[bytes], **uses: Any) -> DraftFile:
    """Store a program file; one of the same name is replaced, with its signature. Raises ReleaseError."""
    locked = _open(draft)
    if not is_name(name):
        raise ReleaseError(
            gettext("%(name)s is not a name of %(rule)s.") % {"name": repr(name[:200]), "rule": sentence(name_rule())}
        )
    if name in DESCRIPTIONS:
        raise ReleaseError(
            gettext("%(name)s: a program file cannot have this name; it describes versions in folders.")
            % {"name": name}
        )
    content.seek(0)
    given = read_content(content)
    if given.nbytes > MAX_FILE_NBYTES:
        raise ReleaseError(
            gettext("%(name)s: %(size)s bytes; the limit is %(most)s. The command accepts larger files.")
            % {"name": name, "size": given.nbytes, "most": MAX_FILE_NBYTES}
        )
    release.check_program(name, given)
    draft_file = locked.files.filter(name=name).first()
    if draft_file is None and locked.files.count() >= MAX_FILES_PER_JOB:
        raise ReleaseError(gettext("A version has at most %(number)s files.") % {"number": MAX_FILES_PER_JOB})
    content.seek(0)
    path = default_storage.save(f"drafts/releases/{draft.pk}/{name}", content)
    if draft_file is not None:
        _delete_later(draft_file.path)
    file, _ = DraftFile.objects.update_or_create(
        draft=locked,
        name=name,
        defaults={"path": path, "nbytes": given.nbytes, "md5": given.md5, "signature": "", **uses},
    )
    return file


@transaction.atomic
def remove_file(draft: ReleaseDraft, file_id: int) -> None:
    """Remove a file from a draft. Safe to repeat."""
    for file in _open(draft).files.filter(pk=file_id):
        _delete_later(file.path)
        file.delete()


@transaction.atomic
def discard(draft: ReleaseDraft) -> None:
    """Discard a draft and its files; a version created from it stays."""
    locked = ReleaseDraft.objects.select_for_update().get(pk=draft.pk)
    for file in locked.files.all():
        _delete_later(file.path)
    locked.delete()


def _open(draft: ReleaseDraft) -> ReleaseDraft:
    """Lock and return the draft. ReleaseError if it was stored."""
    locked = ReleaseDraft.objects.select_for_update().get(pk=draft.pk)
    if locked.app_version_id is not None:
        raise ReleaseError(gettext("This version is already stored. Its files never change: prepare another version."))
    return locked


def _delete_later(path: str) -> None:
    transaction.on_commit(lambda: default_storage.delete(path))


def described(draft: ReleaseDraft) -> dict[str, Any]:
    """Return the draft as a version.json (docs/how-to/jobs.md)."""
    files = [
        {
            "path": file.name,
            "main_program": file.is_main_program,
            "executable": file.is_executable or file.is_main_program,
            "copy_file": file.is_copied,
            **({"open_name": file.open_name} if file.open_name else {}),
        }
        for file in draft.files.all()
    ]
    return {**draft.fields, "files": files}


@contextmanager
def unpacked(draft: ReleaseDraft, *, whole: bool = True) -> Iterator[Release]:
    """Read the draft as a folder; inside the block its files exist, or are empty (not ``whole``).

    Raises ReleaseError, which names the field.
    """
    with TemporaryDirectory(prefix="release") as name:
        folder = Path(name)
        (folder / "version.json").write_text(json.dumps(described(draft)), encoding="utf-8")
        for file in draft.files.all():
            target = folder / file.name
            if whole:
                with default_storage.open(file.path, "rb") as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
            else:
                target.touch()
        with _without_folder(folder):
            yield release.read_release(folder)


@contextmanager
def _without_folder(folder: Path) -> Iterator[None]:
    """Make errors name the field, and not a temporary folder."""
    try:
        yield
    except ReleaseError as error:
        raise ReleaseError(str(error).replace(f"{folder}/version.json, ", "").replace(str(folder), "")) from error


def check_fields(fields: Mapping[str, Any]) -> None:
    """Raise ReleaseError if a draft may not have these fields, whatever its files will be."""
    if "files" in fields:
        raise ReleaseError(gettext("files: they are uploaded one by one."))
    with TemporaryDirectory(prefix="release") as name, _without_folder(Path(name)):
        folder = Path(name)
        (folder / "program").touch()
        files = [{"path": "program", "main_program": True}]
        (folder / "version.json").write_text(json.dumps({**fields, "files": files}), encoding="utf-8")
        release.check_plan_class(release.read_release(folder))


def fault(draft: ReleaseDraft) -> str:
    """Return why it could not be released as it is, apart from signatures; empty if it could."""
    try:
        with unpacked(draft, whole=False) as folder:
            release.check_plan_class(folder)
    except ReleaseError as error:
        return str(error)
    return ""


def names(draft: ReleaseDraft) -> dict[str, DraftFile]:
    """Return the files by their permanent names. Raises ReleaseError."""
    own = {file.name: file for file in draft.files.all()}
    with unpacked(draft, whole=False) as folder:
        return {file.name: own[file.path.name] for file in folder.files}


def manifest(draft: ReleaseDraft) -> dict[str, Any]:
    """Return what has to be signed where the key is: each file's permanent name and the MD5 to sign.

    ReleaseError while this machine has no public key.
    """
    key = _public_key()
    return {
        "format": MANIFEST_FORMAT,
        "version": str(draft),
        "code_signing_key": key,
        "files": [
            {"name": name, "file": file.name, "nbytes": file.nbytes, "md5": file.md5}
            for name, file in names(draft).items()
        ],
    }


def _public_key() -> str:
    try:
        return code_signing.code_signing_key_text()
    except FileNotFoundError as error:
        raise ReleaseError(
            gettext(
                "This machine has no code-signing key yet. Make one with “manage.py prepare_project”, or put the "
                "public key where CODE_SIGNING_KEY_PUBLIC says."
            )
        ) from error


def sign_here(draft: ReleaseDraft) -> int:
    """Sign all files with this machine's key; return how many. ReleaseError if the key is kept elsewhere."""
    signatures = {}
    for name, file in names(draft).items():
        with default_storage.open(file.path, "rb") as opened:
            content = read_content(opened)
        release.check_program(name, content)
        signature = code_signing.sign_program(content)
        if signature is None:
            raise ReleaseError(gettext("The private key is not on this machine. Sign the manifest where it is."))
        signatures[name] = signature
    return take_signatures(draft, signatures)


@transaction.atomic
def take_signatures(draft: ReleaseDraft, signatures: Mapping[str, str]) -> int:
    """Store signatures by the files' names, permanent or as uploaded; return how many. Either all are valid, or none is
    stored.

    Raises ReleaseError, which names the file.
    """
    _public_key()
    locked = _open(draft)
    by_name = names(locked)
    by_name |= {file.name: file for file in by_name.values()}
    signed: dict[int, DraftFile] = {}
    for name, text in signatures.items():
        if name not in by_name:
            raise ReleaseError(gettext("%(name)s: this draft has no such file.") % {"name": name[:200]})
        file = by_name[name]
        file.signature = release.check_signature(name, text, file.md5)
        signed[file.pk] = file
    DraftFile.objects.bulk_update(signed.values(), ["signature"])
    return len(signed)


def parse_signatures(text: str) -> dict[str, str]:
    """Return signatures by name, from the JSON that sign_manifest writes. Raises ReleaseError."""
    if len(text) > MAX_SIGNATURES_NBYTES:
        raise ReleaseError(gettext("Signatures have at most %(number)s bytes.") % {"number": MAX_SIGNATURES_NBYTES})
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReleaseError(gettext("This is not what sign_manifest writes: %(reason)s") % {"reason": error}) from error
    signatures = given.get("signatures") if isinstance(given, dict) else None
    if not isinstance(signatures, dict) or not all(isinstance(value, str) for value in signatures.values()):
        raise ReleaseError(gettext('This is not what sign_manifest writes: {"signatures": {NAME: TEXT, …}}.'))
    return signatures


@transaction.atomic
def store(
    draft: ReleaseDraft, action: ReleaseAction, user: User, now: dt.datetime, *, with_volunteers: bool = False
) -> AppVersion:
    """Store the version and send it to testers or to all; if repeated, return the version stored the first time.

    A version under test goes only to testers from the first moment that the scheduler can see it. Raises ReleaseError,
    also for a signature that is missing or wrong, and for a version that is stored and in a different state by now; and
    NotPossible.
    """
    locked = ReleaseDraft.objects.select_for_update().get(pk=draft.pk)
    state = after(ReleaseState.DRAFT, action)
    if locked.app_version is not None:
        if (now_in := state_of(locked.app_version)) != state:
            raise ReleaseError(
                gettext("This version is already stored. Its state is %(state)s and stays so.")
                % {"state": now_in.name.lower()}
            )
        return locked.app_version
    signatures = {name: file.signature for name, file in names(locked).items()}
    if unsigned := [name for name, text in signatures.items() if not text]:
        raise ReleaseError(gettext("%(name)s is not signed yet.") % {"name": unsigned[0]})
    with unpacked(locked) as folder:
        version, is_new = release.release_version(folder, signatures)
    if not is_new:
        raise ReleaseError(
            gettext("%(version)s was released before. Give it another version number.") % {"version": version}
        )
    if state == ReleaseState.BETA:
        BetaTest.objects.create(app_version=version, begun_by=user, with_volunteers=with_volunteers, begun_at=now)
    log(version, state)
    locked.app_version = version
    locked.save(update_fields=["app_version"])
    for file in locked.files.all():
        _delete_later(file.path)
    locked.files.all().delete()
    return version
