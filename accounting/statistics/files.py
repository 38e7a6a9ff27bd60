"""The files of a project's export, as they are downloaded: a folder for each project, emptied after the import.

Beside each file are its version and whether it is complete. So an interrupted download resumes where it ended, and a
complete file is not transferred again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from accounting.statistics.store import Source
from accounting.wire.statistics import Kind, records, unpack
from portal.fetch.errors import NotStored, StatusError
from portal.fetch.fetcher import Download, FetchLimits, Version, fetch

SECS: Final = 240.0
"""The time of one attempt for one file: a worker does other things, too. The next attempt resumes."""
_REDIRECTS: Final = 3
_RANGE_NOT_SATISFIABLE: Final = 416
_BLOCK_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class _About:
    url: str = ""
    etag: str = ""
    last_modified: str = ""
    is_whole: bool = False

    @property
    def version(self) -> Version:
        return Version(self.etag, self.last_modified)


def folder_of(project_id: int) -> Path:
    """Return the project's folder."""
    return Path(settings.STATISTICS_IMPORT_DIR) / str(project_id)


def drop(project_id: int) -> None:
    """Remove the downloads. Only while nobody else imports from the project."""
    shutil.rmtree(folder_of(project_id), ignore_errors=True)


def download(project_id: int, url: str) -> Path:
    """Return the file at ``url``: the local one if it is the server's present version, else as it is transferred.
    Blocks.

    Raises FetchError; the part received stays, and the next attempt resumes from it, unless there is no room for it.
    """
    try:
        return _download(project_id, url)
    except StatusError as error:
        if error.status != _RANGE_NOT_SATISFIABLE:
            raise
        # The local file is longer than the server's.
        _about_path(_path(project_id, url)).unlink(missing_ok=True)
        return _download(project_id, url)
    except (NotStored, OSError):
        # Others need the room.
        drop(project_id)
        raise


def _download(project_id: int, url: str) -> Path:
    path = _path(project_id, url)
    path.parent.mkdir(parents=True, exist_ok=True)
    about = _read_about(path)
    if about.url != url or not path.exists():
        about = _About(url)
    limits = FetchLimits(
        wire_bytes=settings.STATISTICS_IMPORT_MAX_BYTES, read_secs=30.0, total_secs=SECS, redirects=_REDIRECTS
    )
    with path.open("r+b" if about.etag else "w+b") as file:
        nbytes = file.seek(0, os.SEEK_END)
        known_version = about.version if about.is_whole and about.etag else None
        into = Download(file, nbytes, about.version, lambda version: _write_about(path, url, version))
        answer = fetch(url, into=into, known=known_version, limits=limits)
        file.flush()
    _write_about(path, url, answer.version, is_whole=True)
    return path


def source_of(paths: dict[Kind, Path]) -> Source:
    """Return the records of downloaded files."""
    return lambda kind, ids, odd: records(kind, unpack(kind, _blocks(paths[kind])), ids, odd)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file, in pieces."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _path(project_id: int, url: str) -> Path:
    return folder_of(project_id) / url.rpartition("/")[2]


def _about_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _read_about(path: Path) -> _About:
    try:
        about: dict[str, Any] = json.loads(_about_path(path).read_text())
        return _About(**about)
    except (OSError, ValueError, TypeError):
        return _About()


def _write_about(path: Path, url: str, version: Version, *, is_whole: bool = False) -> None:
    """Write it atomically, so that it is never half written."""
    about = _About(url, version.etag, version.last_modified, is_whole)
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(asdict(about)))
    new.replace(_about_path(path))
