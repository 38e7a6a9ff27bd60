"""Limits of what the project server takes, beside those that the tables check. Pure."""

from __future__ import annotations

from typing import Final

MAX_FILE_NBYTES: Final = 1 << 40
"""One file, in or out: 1 TiB."""
MAX_FILES_PER_JOB: Final = 100
"""Input files of a workunit, and output files."""
MAX_JOBS_PER_SUBMISSION: Final = 100_000
