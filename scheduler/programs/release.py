"""Releases a version of an app from a folder with its program files and a version.toml (docs/how-to/jobs.md).

A version's files never change once it is released, and releasing it again does nothing.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from django.core.exceptions import ValidationError
from django.core.files import File
from django.core.validators import ProhibitNullCharactersValidator
from django.db import transaction
from django.utils.translation import gettext

from credit.models import App, AppVersion, Platform, ProcessorType
from credit.models.versions import API_VERSION, FILE_PREFIX, MAX_CMDLINE_NBYTES
from portal.audit import signed_log
from portal.languages.sentences import sentence
from portal.models import SignedEntry
from portal.wire.purposes import Content, Purpose, check, read_content
from portal.wire.signing import SigningError, clean_signature
from portal.wire.statements import Statement
from scheduler.engine.limits import MAX_FILES_PER_JOB, MAX_NAME_CHARS
from scheduler.files.store import StoringError, check_name, store_file
from scheduler.models import PlanClass, StoredFile, VersionFile
from scheduler.programs import code_signing, containers

DESCRIPTIONS: Final = ("version.toml", "version.json")
MAX_VERSION_NUM: Final = 100_000_000
MAX_CLIENT_VERSION: Final = 9_999_999
_MAX_WHOLE: Final = 2**53
"""Whole numbers below this are exact as floats."""
_VERSION_FIELDS: Final = {
    "app": str,
    "version_num": int,
    "platform": str,
    "plan_class": str,
    "processor_type": str,
    "avg_ncpus": float,
    "gpu_usage": float,
    "min_gpu_ram_bytes": int,
    "min_client_version": int,
    "max_client_version": int,
    "api_version": str,
    "cmdline": str,
    "is_wrapper": bool,
    "needs_network": bool,
    "dont_throttle": bool,
    "file_prefix": str,
    "files": list,
    "new_app": dict,
}
_FILE_FIELDS: Final = {
    "path": str,
    "name": str,
    "open_name": str,
    "main_program": bool,
    "executable": bool,
    "copy_file": bool,
}
_APP_FIELDS: Final = {"user_friendly_name": str, "description": str, "one_result_per_user": bool}
_APP_COLUMNS: Final = {field.name: field for field in App._meta.concrete_fields}
_VERSION_COLUMNS: Final = (
    "processor_type",
    "avg_ncpus",
    "gpu_usage",
    "min_gpu_ram_bytes",
    "min_client_version",
    "max_client_version",
    "api_version",
    "cmdline",
    *("is_wrapper", "needs_network", "dont_throttle", "file_prefix"),
)
_FILE_COLUMNS: Final = ("open_name", "is_main_program", "is_copied")


class ReleaseError(Exception):
    """A version that cannot be released; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of a version. ``name``: its permanent name on the site and in clients."""

    path: Path
    name: str
    open_name: str
    is_main_program: bool
    is_executable: bool
    is_copied: bool


@dataclass(frozen=True, slots=True)
class Release:
    """The content of a folder. ``new_app``: fields of the app if it does not exist yet.

    ``api_version``: of the BOINC interface that the program was built with, ``""`` if none; ``cmdline``: arguments that
    clients add to those of each job (BOINC protocol, job description).
    """

    app: str
    version_num: int
    platform: str
    plan_class: str
    processor_type: str
    avg_ncpus: float
    gpu_usage: float
    min_gpu_ram_bytes: int
    min_client_version: int
    max_client_version: int
    api_version: str
    cmdline: str
    is_wrapper: bool
    needs_network: bool
    dont_throttle: bool
    file_prefix: str
    files: tuple[ReleaseFile, ...]
    new_app: Mapping[str, Any]


def read_release(folder: Path) -> Release:
    """Read a folder's description and check that its files exist. Raises ReleaseError."""
    path = next((folder / name for name in DESCRIPTIONS if (folder / name).is_file()), None)
    if path is None:
        raise ReleaseError(
            gettext("%(folder)s contains neither %(names)s.") % {"folder": folder, "names": " / ".join(DESCRIPTIONS)}
        )
    try:
        text = path.read_text(encoding="utf-8")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path}: {error}") from error
    if not isinstance(fields, dict):
        raise ReleaseError(f"{path}: " + gettext("not a table of fields."))
    given = _typed(fields, _VERSION_FIELDS, str(path), ("app", "version_num", "platform", "files"))
    _check_version(given, str(path))
    _check_start(given.get("api_version", ""), given.get("cmdline", ""), str(path))
    if not re.fullmatch(FILE_PREFIX.removesuffix("$"), given.get("file_prefix", "")):
        raise ReleaseError(f"{path}, file_prefix: " + gettext("at most 16 letters (A to Z, a to z), digits, _ and -."))
    files = tuple(_read_file(file, folder, given, f"{path}, files[{n}]") for n, file in enumerate(given["files"]))
    if sum(file.is_main_program for file in files) != 1:
        raise ReleaseError(
            f"{path}, files: " + gettext("exactly one of them must be the main program (main_program = true).")
        )
    return Release(
        app=given["app"],
        version_num=given["version_num"],
        platform=given["platform"],
        plan_class=given.get("plan_class", ""),
        processor_type=given.get("processor_type", ProcessorType.CPU),
        avg_ncpus=given.get("avg_ncpus", 1.0),
        gpu_usage=given.get("gpu_usage", 0.0),
        min_gpu_ram_bytes=given.get("min_gpu_ram_bytes", 0),
        min_client_version=given.get("min_client_version", 0),
        max_client_version=given.get("max_client_version", 0),
        api_version=given.get("api_version", ""),
        cmdline=given.get("cmdline", ""),
        is_wrapper=given.get("is_wrapper", False),
        needs_network=given.get("needs_network", False),
        dont_throttle=given.get("dont_throttle", False),
        file_prefix=given.get("file_prefix", ""),
        files=files,
        new_app=_new_app(given.get("new_app", {}), f"{path}, new_app"),
    )


def _new_app(fields: Any, where: str) -> dict[str, Any]:
    """Return the fields of an app that may have to be created. Raises ReleaseError."""
    given = _typed(fields, _APP_FIELDS, where, ())
    for name, value in given.items():
        try:
            _APP_COLUMNS[name].clean(value, None)
            ProhibitNullCharactersValidator()(value)
            str(value).encode()
        except ValidationError as error:
            raise ReleaseError(f"{where}, {name}: {' '.join(error.messages)}") from error
        except UnicodeEncodeError as error:
            raise ReleaseError(f"{where}, {name}: {error}") from error
    return given


def _check_version(given: Mapping[str, Any], where: str) -> None:
    limits = {"version_num": (1, MAX_VERSION_NUM), "avg_ncpus": (0, 1024), "gpu_usage": (0, 64)}
    limits |= {"min_gpu_ram_bytes": (0, 2**50)}
    limits |= {"min_client_version": (0, MAX_CLIENT_VERSION), "max_client_version": (0, MAX_CLIENT_VERSION)}
    for name, (low, high) in limits.items():
        if not low <= given.get(name, low) <= high:
            raise ReleaseError(
                f"{where}, {name}: " + gettext("a number from %(low)s to %(high)s.") % {"low": low, "high": high}
            )
    least, most = given.get("min_client_version", 0), given.get("max_client_version", 0)
    if least > most > 0:
        raise ReleaseError(
            f"{where}, max_client_version: "
            + gettext("less than min_client_version (%(least)s), so no computer would get it.") % {"least": least}
        )
    type_ = given.get("processor_type", ProcessorType.CPU)
    if type_ not in list(ProcessorType):
        raise ReleaseError(
            f"{where}, processor_type: " + gettext("one of %(names)s.") % {"names": ", ".join(ProcessorType)}
        )
    if (type_ == ProcessorType.CPU) == (given.get("gpu_usage", 0) > 0):
        raise ReleaseError(f"{where}, gpu_usage: " + gettext("more than 0 for a GPU type, otherwise 0."))
    if type_ == ProcessorType.CPU and given.get("avg_ncpus", 1) == 0:
        raise ReleaseError(
            f"{where}, avg_ncpus: " + gettext("more than 0 if no GPU is used, or the version would never be sent.")
        )
    if not 1 <= len(given["files"]) <= MAX_FILES_PER_JOB:
        raise ReleaseError(f"{where}, files: " + gettext("1 to %(number)s of them.") % {"number": MAX_FILES_PER_JOB})
    for name in ("app", "platform", "plan_class"):
        if text := given.get(name, ""):
            _check(text, f"{where}, {name}", 64)


def _check_start(api_version: str, cmdline: str, where: str) -> None:
    if not re.fullmatch(API_VERSION.removesuffix("$"), api_version):
        raise ReleaseError(
            f"{where}, api_version: "
            + gettext("three numbers from 0 to 999 with dots between them, such as 7.20.0, or empty.")
        )
    # Clients store it unescaped in their own files: the start of a tag would make them lose it at their next start.
    if not cmdline.isprintable() or "<" in cmdline:
        raise ReleaseError(f"{where}, cmdline: " + gettext("one line without control characters and without <."))
    if len(escape(cmdline).encode()) > MAX_CMDLINE_NBYTES:
        raise ReleaseError(
            f"{where}, cmdline: "
            + gettext("more than %(number)s bytes, which is all that clients read (& counts as 5, > as 4).")
            % {"number": MAX_CMDLINE_NBYTES}
        )


def _check(name: str, where: str, max_chars: int = MAX_NAME_CHARS) -> None:
    try:
        check_name(name, max_chars)
    except StoringError as error:
        raise ReleaseError(f"{where}: {error}") from error


def _read_file(fields: Any, folder: Path, version: Mapping[str, Any], where: str) -> ReleaseFile:
    given = _typed(fields, _FILE_FIELDS, where, ("path",))
    path = folder / given["path"]
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise ReleaseError(
            f"{where}, path: " + gettext("%(name)s is not a file of this folder.") % {"name": given["path"]}
        )
    plan_class = f"__{version['plan_class']}" if version.get("plan_class") else ""
    default = f"{version['app']}_{version['version_num']}_{version['platform']}{plan_class}_{path.name}"
    name = given.get("name", default)
    _check(name, f"{where}, name")
    open_name = given.get("open_name", "")
    if open_name:
        _check(open_name, f"{where}, open_name")
    is_main = given.get("main_program", False)
    is_copied = given.get("copy_file", bool(open_name))
    return ReleaseFile(path, name, open_name, is_main, given.get("executable", is_main), is_copied)


def _typed(fields: Any, types: Mapping[str, type], where: str, needed: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields, checked by type; ReleaseError for an unknown, missing or unusable one."""
    if not isinstance(fields, dict):
        raise ReleaseError(f"{where}: " + gettext("not a table of fields."))
    if unknown := sorted(set(fields) - set(types)):
        raise ReleaseError(
            f"{where}, {unknown[0]}: " + gettext("unknown. Known: %(names)s.") % {"names": ", ".join(types)}
        )
    for name in needed:
        if name not in fields:
            raise ReleaseError(f"{where}, {name}: " + gettext("missing."))
    made = {}
    for name, value in fields.items():
        expected = types[name]
        if expected is float and type(value) is int and abs(value) < _MAX_WHOLE:
            value = float(value)
        if type(value) is not expected or (isinstance(value, float) and not math.isfinite(value)):
            raise ReleaseError(
                f"{where}, {name}: "
                + gettext("%(value)s is not of type %(type)s.") % {"value": repr(value), "type": expected.__name__}
            )
        made[name] = value
    return made


def sign_files(release: Release, signatures: Path | None = None) -> dict[str, str]:
    """Return the signature of each file by its name: made here or, with a folder, read from NAME.sig there and checked.

    Raises ReleaseError if the private key is kept elsewhere and there is no folder, or if a signature is wrong.
    """
    made = {}
    for file in release.files:
        content = content_to_sign(file)
        if signatures is None:
            signature = code_signing.sign_program(content)
            if signature is None:
                raise ReleaseError(
                    "The private key is not on this machine: sign the files where it is, and give --signatures FOLDER."
                )
        else:
            signature = _read_signature(signatures / f"{file.name}.sig", content)
        made[file.name] = signature
    return made


def content_to_sign(file: ReleaseFile) -> Content:
    """Return the content of a program file. Raises ReleaseError if it cannot be signed as a program."""
    with file.path.open("rb") as opened:
        content = read_content(opened)
    check_program(file.name, content)
    return content


def check_program(name: str, content: Content) -> None:
    """Raise ReleaseError, with the name, if a signature of this file would mean something else to clients."""
    try:
        check(Purpose.PROGRAM, content)
    except SigningError as error:
        raise ReleaseError(f"{name}: {sentence(error.message)}") from error


def _read_signature(path: Path, content: Content) -> str:
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError as error:
        raise ReleaseError(f"{path}: " + gettext("missing.")) from error
    except ValueError as error:
        raise ReleaseError(f"{path}: {error}") from error
    return check_signature(str(path), text, content.md5)


def check_signature(name: str, text: str, md5: str) -> str:
    """Return the signature as stored. Raises ReleaseError, with the name, if it does not sign this MD5 by the key."""
    try:
        signature = clean_signature(text)
        is_right = code_signing.is_signed_md5(md5, signature)
    except SigningError as error:
        raise ReleaseError(f"{name}: {sentence(error.message)}") from error
    if not is_right:
        raise ReleaseError(
            gettext("%(name)s: not the signature of this file by the project's key; clients would refuse it.")
            % {"name": name}
        )
    return signature


@transaction.atomic
def release_version(release: Release, signatures: Mapping[str, str]) -> tuple[AppVersion, bool]:
    """Store the files and create the version; return it, and whether it is new. Safe to repeat.

    Raises ReleaseError if a version of this number has other files or fields, a file's name was used before, a file may
    not be signed as a program, or the version is the app's first for containers and an open job could leave its
    container.
    """
    check_plan_class(release)
    contents = {program.name: content_to_sign(program) for program in release.files}
    app, _ = App.objects.get_or_create(
        name=release.app, defaults={"user_friendly_name": release.app.title(), **release.new_app}
    )
    if PlanClass.objects.filter(name=release.plan_class, needs_docker=True).exists():
        _check_open_jobs(app)
    platform, _ = Platform.objects.get_or_create(name=release.platform)
    version, is_new = AppVersion.objects.get_or_create(
        app=app,
        platform=platform,
        plan_class=release.plan_class,
        version_num=release.version_num,
        defaults=_version_fields(release),
    )
    stored = {file.name: _store(file, signatures[file.name]) for file in release.files}
    for file in stored.values():
        # Checked only now: if the key had changed while the files were signed, they would keep the old key's
        # signatures.
        if not code_signing.is_signed_md5(file.md5, file.signature):
            raise ReleaseError(
                gettext("%(name)s is not signed with the project's key. Sign it with the key in force.")
                % {"name": file.name}
            )
    if is_new:
        VersionFile.objects.bulk_create(
            VersionFile(app_version=version, file=stored[file.name], **_file_fields(file)) for file in release.files
        )
        signed_log.append(SignedEntry.Kind.RELEASE, _logged(version, contents))
    elif _released(version) != _described(release):
        raise ReleaseError(
            gettext("%(version)s was released before, with other content. Give it another version number.")
            % {"version": version}
        )
    return version, is_new


def _logged(version: AppVersion, contents: Mapping[str, Content]) -> Statement:
    """Return a release's entry in the signed log; with SHA-256, because two files can be made to have the same MD5."""
    files = [{"name": name, "nbytes": content.nbytes, "sha256": content.sha256} for name, content in contents.items()]
    return {"version": str(version), "action": "stored", "files": files}


def check_plan_class(release: Release) -> None:
    """Raise ReleaseError if its plan class does not exist, or is for another type of processor."""
    if not release.plan_class:
        return
    plan = PlanClass.objects.filter(name=release.plan_class).first()
    if plan is None:
        raise ReleaseError(
            gettext("There is no plan class %(name)s. Make it in the admin first.") % {"name": release.plan_class}
        )
    if plan.processor_type != release.processor_type:
        raise ReleaseError(
            gettext("processor_type: %(type)s, but plan class %(name)s is for %(wanted)s.")
            % {"type": release.processor_type, "name": plan.name, "wanted": plan.processor_type}
        )


def _check_open_jobs(app: App) -> None:
    if (fault := containers.fault_of_open_jobs(app)) is not None:
        name, message = fault
        raise ReleaseError(
            gettext("%(job)s: %(reason)s. This job of the app is open, and could leave a container: cancel it first.")
            % {"job": name, "reason": sentence(message)}
        )


def _store(file: ReleaseFile, signature: str) -> StoredFile:
    try:
        with file.path.open("rb") as content:
            return store_file(file.name, File(content), signature=signature, is_executable=file.is_executable)
    except StoringError as error:
        raise ReleaseError(str(error)) from error


def _version_fields(release: Release) -> dict[str, Any]:
    return {name: getattr(release, name) for name in _VERSION_COLUMNS}


def _file_fields(file: ReleaseFile) -> dict[str, Any]:
    return {name: getattr(file, name) for name in _FILE_COLUMNS}


def _described(release: Release) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    return _version_fields(release), {file.name: _file_fields(file) for file in release.files}


def _released(version: AppVersion) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    files = VersionFile.objects.filter(app_version=version).select_related("file")
    return (
        {name: getattr(version, name) for name in _VERSION_COLUMNS},
        {file.file.name: {name: getattr(file, name) for name in _FILE_COLUMNS} for file in files},
    )
