"""The states of workunits and results, defined once for models, rules and SQL.

The numbers are BOINC's, so that people who know its database can read ours. docs/reference/states.md lists every
transition.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class ServerState(IntEnum):
    """How far a result has come on the server."""

    UNSENT = 2
    IN_PROGRESS = 4
    OVER = 5


class Outcome(IntEnum):
    """How a result ended; INIT until then."""

    INIT = 0
    SUCCESS = 1
    COULD_NOT_SEND = 2
    CLIENT_ERROR = 3
    NO_REPLY = 4
    DIDNT_NEED = 5
    VALIDATE_ERROR = 6
    CLIENT_DETACHED = 7


class ValidateState(IntEnum):
    """The validator's decision on a result."""

    INIT = 0
    VALID = 1
    INVALID = 2
    NO_CHECK = 3
    INCONCLUSIVE = 4
    TOO_LATE = 5


class AssimilateState(IntEnum):
    """Whether a workunit's canonical output has been assimilated."""

    INIT = 0
    READY = 1
    DONE = 2


class FileDeleteState(IntEnum):
    """Whether the files of a workunit are still needed."""

    INIT = 0
    READY = 1
    DONE = 2
    ERROR = 3


class WorkunitError(IntFlag):
    """Why a workunit ended without a canonical result; bits of its ``error_mask``."""

    COULD_NOT_SEND = 1
    TOO_MANY_ERROR_RESULTS = 2
    TOO_MANY_SUCCESS_RESULTS = 4
    TOO_MANY_TOTAL_RESULTS = 8
    CANCELLED = 16
