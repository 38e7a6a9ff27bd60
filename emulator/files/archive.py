"""Extract the files that make up a scenario from a ZIP of a client's data folder. Pure: bytes in, bytes out.

Nothing is written to a disk, and only those files are unpacked. The data folder may be inside other folders, or be the
archive itself. The archive's content is limited, because it comes from strangers.
"""

import io
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

from emulator.files.client_state import STATE_FILE
from emulator.files.job_log import JOB_LOG
from emulator.files.sections import SETTINGS_BYTES_MAX, STATE_BYTES_MAX, ScenarioFileError
from emulator.files.time_log import LOG_BYTES_MAX, TIME_LOG_FILE

ENTRIES_MAX: Final = 20_000
FILES_MAX: Final = 500  # files that are read
BYTES_MAX: Final = 64 << 20  # unpacked size of all that are read
RATIO_MAX: Final = 200  # ratio of the size of a file to that of its packed form
RATIO_FREE_BYTES: Final = 1 << 20  # a file up to this size may be packed as tightly as it likes
APP_CONFIG_FILE: Final = "app_config.xml"
SETTINGS_FILES: Final = ("global_prefs.xml", "global_prefs_override.xml", "cc_config.xml")

_APP_CONFIG: Final = re.compile(r"projects/[^/]+/app_config\.xml")
_ENTRY: Final = b"PK\x01\x02"  # begins an archive's entry for each of its files
_ENCRYPTED: Final = 1


def bytes_max_of(name: str) -> int | None:
    """The maximum size of a file of a data folder, by its path from there; None for one that is not read."""
    if name == STATE_FILE:
        return STATE_BYTES_MAX
    if name in SETTINGS_FILES or name == APP_CONFIG_FILE or _APP_CONFIG.fullmatch(name):
        return SETTINGS_BYTES_MAX
    if name == TIME_LOG_FILE or JOB_LOG.fullmatch(name):
        return LOG_BYTES_MAX
    return None


def unpack(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return the files that make up a scenario, by their path from the data folder, and the number of others.

    Raises ScenarioFileError for anything but a ZIP, without client_state.xml, or beyond a limit.
    """
    # Each entry costs memory as soon as the archive is opened, so they are counted first.
    if data.count(_ENTRY) > ENTRIES_MAX:
        raise ScenarioFileError("ZIP", "", 0, "zip_files_limit", limit=ENTRIES_MAX)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _DAMAGED:
        raise ScenarioFileError("ZIP", "", 0, "no_zip") from None
    with archive:
        return _unpack(archive)


# Errors of zipfile for bytes that are no sound archive or entry: a wrong checksum, a broken or cut-off stream, an
# unknown version or method of packing, an encrypted one in spite of its flags, a seek before the file's start, a wrong
# header.
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
)


def _unpack(archive: zipfile.ZipFile) -> tuple[dict[str, bytes], int]:
    # Python's is_dir fails for an empty name.
    files_and_folders = [info for info in archive.infolist() if info.filename]
    entries = {_path(info.filename): info for info in files_and_folders if not info.is_dir()}
    folder = _data_folder(entries)
    read = {
        name: info
        for path, info in entries.items()
        if path.startswith(folder) and bytes_max_of(name := path.removeprefix(folder)) is not None
    }
    if len(read) > FILES_MAX:
        raise ScenarioFileError("ZIP", "", 0, "zip_read_limit", limit=FILES_MAX)
    files: dict[str, bytes] = {}
    for name, info in read.items():
        files[name] = _content(archive, info, name)
        if sum(map(len, files.values())) > BYTES_MAX:
            raise ScenarioFileError("ZIP", "", 0, "zip_size_limit", limit_mib=BYTES_MAX >> 20)
    return files, len(entries) - len(files)


def _path(name: str) -> str:
    """Return an entry's path with Unix separators. Raises ScenarioFileError for one that leaves the archive."""
    path = name.replace("\\", "/")
    if path.startswith("/") or re.match(r"[A-Za-z]:", path) or ".." in path.split("/"):
        raise ScenarioFileError(name[:100], "", 0, "zip_path_outside")
    return path.removeprefix("./")


def _data_folder(paths: Mapping[str, object]) -> str:
    """Return the folder that has client_state.xml, with a slash at its end; "" for the archive itself."""
    folders = [path.removesuffix(STATE_FILE) for path in paths if path == STATE_FILE or path.endswith(f"/{STATE_FILE}")]
    if not folders:
        raise ScenarioFileError(STATE_FILE, "", 0, "zip_without_state")
    highest = min(path.count("/") for path in folders)
    folders = [path for path in folders if path.count("/") == highest]
    if len(folders) > 1:
        raise ScenarioFileError(STATE_FILE, "", 0, "zip_several_clients")
    return folders[0]


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> bytes:
    limit = bytes_max_of(name)
    assert limit is not None
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise ScenarioFileError(name[:100], "", 0, "zip_link")
    if info.flag_bits & _ENCRYPTED:
        raise ScenarioFileError(name[:100], "", 0, "zip_encrypted")
    if info.file_size > limit:
        raise ScenarioFileError(name[:100], "", 0, "file_size_limit", limit_mib=limit >> 20)
    if info.file_size > max(RATIO_FREE_BYTES, RATIO_MAX * info.compress_size):
        raise ScenarioFileError(name[:100], "", 0, "zip_ratio_limit", limit=RATIO_MAX)
    try:
        with archive.open(info) as file:
            return file.read(limit + 1)
    except _DAMAGED:
        raise ScenarioFileError(name[:100], "", 0, "zip_damaged") from None
