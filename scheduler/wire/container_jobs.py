"""Restrictions on jobs that run in containers, because BOINC's docker_wrapper passes them to a shell. Pure.

The wrapper puts a job's arguments between double quotes in a command line, and reads its own options among them. Its
job.toml may add arguments for Docker and folders of the computer to mount. So a submitter could leave the container by
either.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, Final

from portal.languages.messages import Message
from scheduler.wire.job_fields import InputFile, JobError, SubmittedJob

MAX_COMMAND_NBYTES: Final = 900
"""The wrapper has a buffer of 1,024 bytes for them."""
MAX_SETTINGS_NBYTES: Final = 2000
SETTINGS: Final = "job.toml"
_SHELL: Final = re.compile(r"[\"`$\\!]")
# The client removes single quotes before the wrapper sees its arguments.
_OPTION: Final = re.compile(r"(?:^|[\s'])--(?:config|dockerfile|sporadic)(?=[\s']|$)")
_WORKDIR: Final = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*){1,10}")
MAX_VERBOSE: Final = 2


def check(jobs: list[SubmittedJob], stored: Callable[[str], bytes]) -> Iterator[JobError]:
    """Yield the faults of jobs of an app whose programs run in containers; checks no more jobs than are consumed.

    ``stored``: returns the beginning of a stored file.
    """
    for number, job in enumerate(jobs):
        yield from _faults(job, f"jobs[{number}]", stored)


def _faults(job: SubmittedJob, where: str, stored: Callable[[str], bytes]) -> list[JobError]:
    faults = []
    if (message := command_fault(job.fields["command_line"])) is not None:
        faults.append(JobError(f"{where}.command_line", message))
    for file in job.inputs:
        if not is_settings(file.open_name):
            continue
        try:
            read_settings(_text(file, stored))
        except JobError as error:
            faults.append(JobError(f"{where}.input_files, {error.field}", error.message))
    return faults


def _text(file: InputFile, stored: Callable[[str], bytes]) -> str:
    if file.remote is not None:
        raise JobError(SETTINGS, Message("container_settings_remote"))
    content = file.content
    if isinstance(content, str):
        return content
    if content is not None and content.nbytes > MAX_SETTINGS_NBYTES:
        raise JobError(SETTINGS, Message("no_text", number=MAX_SETTINGS_NBYTES))
    return decoded(content.read() if content is not None else stored(file.name))


def is_settings(open_name: str) -> bool:
    """Whether the wrapper reads this file as its settings, including on systems that ignore case."""
    return open_name.lower() == SETTINGS


def decoded(raw: bytes) -> str:
    """Return the text of a job.toml. Raises JobError."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise JobError(SETTINGS, Message("no_utf8", reason=error)) from error


def command_fault(command_line: str) -> Message | None:
    if _SHELL.search(command_line) or _OPTION.search(command_line):
        return Message("container_command", characters='" ` $ \\ !', options="--config, --dockerfile, --sporadic")
    if len(command_line.encode()) > MAX_COMMAND_NBYTES:
        return Message("container_command_limit", nbytes=MAX_COMMAND_NBYTES)
    return None


def read_settings(text: str) -> dict[str, Any]:
    """Return the settings of a job.toml that stay within the container. Raises JobError, which names the field."""
    if len(text) > MAX_SETTINGS_NBYTES:
        raise JobError(SETTINGS, Message("no_text", number=MAX_SETTINGS_NBYTES))
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise JobError(SETTINGS, Message("container_no_toml", reason=error)) from error
    checks = {
        "workdir": lambda value: isinstance(value, str) and _WORKDIR.fullmatch(value) is not None,
        "use_gpu": lambda value: isinstance(value, bool),
        "verbose": lambda value: type(value) is int and 0 <= value <= MAX_VERBOSE,
    }
    for name, value in given.items():
        place = ascii(name[:40])[1:-1]
        if name not in checks:
            raise JobError(f"{SETTINGS}, {place}", Message("container_setting_unknown", names=", ".join(checks)))
        if not checks[name](value):
            raise JobError(f"{SETTINGS}, {place}", Message("container_setting_value", most=MAX_VERBOSE))
    return given


def render_settings(settings: dict[str, Any]) -> str:
    """Render a job.toml from the settings that were read, so that it contains nothing else, however the wrapper reads
    TOML.
    """
    lines = []
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else value
        lines.append(f"{name} = {text}\n")
    return "".join(lines)
