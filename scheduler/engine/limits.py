"""The project server's limits on its input, in addition to those of the tables. Pure."""

from __future__ import annotations

import re
from typing import Final

from portal.languages.messages import Message

MAX_FILE_NBYTES: Final = 1 << 40
"""The size of one file, in or out: 1 TiB."""
MAX_FILES_PER_JOB: Final = 100
"""The number of a workunit's input files, and of its output files."""
MAX_JOBS_PER_SUBMISSION: Final = 100_000
MAX_NAME_CHARS: Final = 200
"""The length of a stored file's name."""
MAX_JOB_NAME_CHARS: Final = 191
MAX_UPLOAD_NAME_CHARS: Final = MAX_JOB_NAME_CHARS + len("_99_r00000000_99")
"""The length of a job's name, with the number of its result, the mark of a restore, and the number of the file."""
MAX_FORMER_NAME_CHARS: Final = 254
"""The length of the name of a job or an output file of BOINC's own server."""
_JOB_NAME: Final = re.compile(r"[A-Za-z0-9_.#@][A-Za-z0-9_.#@-]*")
_MADE_UP: Final = re.compile(
    r"(?:image_.+_[0-9a-f]{32}_[fx]|.+_[0-9]+_in(?:_[0-9]+)?_[0-9a-f]{32}|remote_[0-9a-f]{32})(?:\.gz)?"
)
_OUTPUT: Final = re.compile(r"(.+)_[0-9]{1,2}(?:_r[0-9a-f]{8})?_[0-9]{1,2}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def is_name(text: str, max_chars: int = MAX_NAME_CHARS) -> bool:
    """Whether files, apps and the like may have this name: it goes into paths, addresses and XML unescaped."""
    return len(text) <= max_chars and _NAME.fullmatch(text) is not None and ".." not in text


def is_job_name(text: str, max_chars: int = MAX_NAME_CHARS) -> bool:
    """Whether jobs, and the files of their submitters, may have this name; it must also accept names from programs for
    BOINC's server.

    Paths and XML have it unescaped; addresses have it quoted.
    """
    return len(text) <= max_chars and _JOB_NAME.fullmatch(text) is not None and text != "." and ".." not in text


def is_made_up(name: str) -> bool:
    """Whether the site itself uses such names, for files of batches, container images and other servers: nobody else
    may.
    """
    return _MADE_UP.fullmatch(name) is not None


def job_of_output(name: str) -> str | None:
    """Return the job whose output a file with this name would resemble; None if it resembles no output.

    Clients identify the files of a project by their names alone: they would upload a file that they downloaded under an
    output's name instead of the output.
    """
    match = _OUTPUT.fullmatch(name)
    return None if match is None else match[1]


def is_open_name(text: str) -> bool:
    """Whether a program may use this name for a file: a path in its folder."""
    return len(text) <= MAX_NAME_CHARS and all(map(is_job_name, text.split("/")))


def name_rule(max_chars: int = MAX_NAME_CHARS) -> Message:
    """Return what `is_name` requires, in words that follow "a name of"."""
    return Message("name_rule", number=max_chars)


def job_name_rule(max_chars: int = MAX_NAME_CHARS) -> Message:
    """Return what `is_job_name` requires, in words that follow "a name of"."""
    return Message("job_name_rule", number=max_chars)
