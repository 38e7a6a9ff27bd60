"""Make a scenario from a folder of a client's files, or from uploaded files.

`client_state.xml` describes the computer and its projects; preferences, cc_config.xml and app_config.xml have the
owner's settings. The emulation continues from the moment at which the client wrote its state file. Applications that
this computer cannot run are left out. `Scenario.notes` lists omissions and assumptions, `Scenario.unused` the content
of the files that changes nothing. No Django, no clock; only `read_folder` reads files.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from emulator.engine.scenario import Preferences, Scenario
from emulator.files import client_settings
from emulator.files.archive import APP_CONFIG_FILE, FILES_MAX, bytes_max_of, unpack
from emulator.files.assembly import Assembly, url_folder
from emulator.files.client_settings import CcConfig
from emulator.files.client_state import STATE_FILE, read_state
from emulator.files.job_log import JOB_LOG, read_job_log
from emulator.files.sections import STATE_BYTES_MAX, ScenarioFileError
from emulator.files.time_log import TIME_LOG_FILE, read_time_log
from emulator.files.unused import Tally
from portal.languages.messages import Message

__all__ = ["read_folder", "read_path", "read_upload", "read_zip", "url_folder"]

APP_CONFIGS_MAX: Final = 200
ZIP_BYTES_MAX: Final = 64 << 20  # packed; a site takes less

_PREFERENCE_FILES: Final = ("global_prefs.xml", "global_prefs_override.xml")
_CC_CONFIG_FILE: Final = "cc_config.xml"


def read_folder(path: Path) -> Scenario:
    """Return the scenario of a folder (or of the client_state.xml in it), as a client's data folder has them.

    Raises ScenarioError: a ScenarioFileError names file, line and tag. OSError if a file cannot be read.
    """
    folder = path if path.is_dir() else path.parent
    state = path / STATE_FILE if path.is_dir() else path
    if not state.is_file():
        raise ScenarioFileError(STATE_FILE, "", 0, "no_state_file", folder=folder)
    files = {STATE_FILE: _read(state, STATE_BYTES_MAX)}
    others = [*_PREFERENCE_FILES, _CC_CONFIG_FILE, TIME_LOG_FILE]
    others += sorted(path.name for path in folder.glob("job_log_*.txt"))[:FILES_MAX]
    configs = sorted((folder / "projects").glob(f"*/{APP_CONFIG_FILE}"))[: APP_CONFIGS_MAX + 1]
    others += [path.relative_to(folder).as_posix() for path in configs]
    for name in others:
        limit = bytes_max_of(name)
        if limit is not None and (folder / name).is_file():
            files[name] = _read(folder / name, limit)
    return replace(read_upload(files), name=folder.resolve().name)


def read_path(path: Path) -> Scenario:
    """Return the scenario of a folder, of the client_state.xml in it, or of a ZIP of it.

    Raises ScenarioError, and OSError if a file cannot be read.
    """
    if path.suffix.lower() != ".zip":
        return read_folder(path)
    return replace(read_zip(_read(path, ZIP_BYTES_MAX)), name=path.stem)


def read_zip(data: bytes) -> Scenario:
    """Return the scenario of a ZIP of a client's data folder. Raises ScenarioError, as `read_folder`.

    Only the files that `read_folder` would read are unpacked, in memory. Account files, which have the volunteer's
    keys, are not among them.
    """
    if len(data) > ZIP_BYTES_MAX:
        raise ScenarioFileError("ZIP", "", 0, "file_size_limit", limit_mib=ZIP_BYTES_MAX >> 20)
    files, nothers = unpack(data)
    scenario = read_upload(files)
    notes = [Message("files_read", files=sorted(files)), *scenario.notes]
    if nothers:
        notes.append(Message("files_not_opened", number=nothers))
    return replace(scenario, notes=tuple(notes))


def _read(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        return file.read(bytes_max + 1)  # one more, so that the reader sees that it is too large


def read_upload(files: Mapping[str, bytes]) -> Scenario:
    """Return the scenario of files by name: client_state.xml, and any of those that `read_folder` reads.

    An app_config.xml may stand in a folder of the client's name for its project (`example.org_p/app_config.xml`);
    else it is for the projects that have all its applications. Raises ScenarioError, as `read_folder`.
    """
    if STATE_FILE not in files:
        raise ScenarioFileError(STATE_FILE, "", 0, "state_file_missing")
    names = {STATE_FILE, *_PREFERENCE_FILES, _CC_CONFIG_FILE, TIME_LOG_FILE}
    app_configs = sorted(name for name in files if name not in names and name.endswith(APP_CONFIG_FILE))
    job_logs = sorted(name for name in files if JOB_LOG.fullmatch(name))
    for name in files:
        if name not in (*names, *app_configs, *job_logs):
            raise ScenarioFileError(
                name[:100], "", 0, "unknown_file", names=[*sorted(names), "app_config.xml", "job_log_….txt"]
            )
    if len(app_configs) > APP_CONFIGS_MAX:
        raise ScenarioFileError(APP_CONFIG_FILE, "", 0, "too_many_of_them", limit=APP_CONFIGS_MAX)
    tally = Tally()
    state = read_state(files[STATE_FILE], tally)
    preferences = Preferences()
    for name in _PREFERENCE_FILES:
        if name in files:
            preferences = client_settings.read_preferences(files[name], name, state.venue, preferences, tally)
    cc_config = CcConfig()
    if _CC_CONFIG_FILE in files:
        cc_config = client_settings.read_cc_config(files[_CC_CONFIG_FILE], _CC_CONFIG_FILE, tally)
    configs = [client_settings.read_app_config(files[name], name, tally) for name in app_configs]
    assembly = Assembly(state, preferences, cc_config, configs)
    if TIME_LOG_FILE in files:
        assembly.follow(read_time_log(files[TIME_LOG_FILE], state.now))
    for name in job_logs:
        assembly.measure(name, read_job_log(files[name], name))
    return replace(assembly.scenario(), unused=tally.unused())
