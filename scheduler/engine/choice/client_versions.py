"""Versions of BOINC's client, and which of them get work. Pure."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from scheduler.engine.reasons import Reason

_TEXT: Final = re.compile(r"(\d{1,3})\.(\d{1,2})(?:\.(\d{1,2}))?")


@lru_cache(maxsize=1024)
def number_of(text: str) -> int:
    """Return 7.20.5 as 72005, as BOINC's server does; 0 if it is not a version."""
    match = _TEXT.match(text)
    if match is None:
        return 0
    major, minor, release = (int(part or 0) for part in match.groups())
    return major * 10_000 + minor * 100 + release


def text_of(number: int) -> str:
    """Return 72005 as 7.20.5; empty for 0, which means any version."""
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}" if number else ""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The lowest and the highest version of BOINC that gets work, as numbers; 0: any.

    Until ``least_from``, older ones still get work, with a notice that says so; None: they never do.
    """

    least: int = 0
    greatest: int = 0
    least_from: dt.datetime | None = None


def may_run(number: int, least: int, greatest: int) -> bool:
    """Whether a client with this number is within the limits; an unknown number is."""
    return not number or ((not least or number >= least) and (not greatest or number <= greatest))


def site_reason(number: int, limits: ClientLimits, now: dt.datetime) -> Reason | None:
    """Return why a client of this version gets no work here; None if it does."""
    if may_run(number, limits.least, limits.greatest):
        return None
    if limits.greatest and number > limits.greatest:
        return Reason.CLIENT_TOO_NEW
    return Reason.CLIENT_TOO_OLD if limits.least_from is None or now >= limits.least_from else None


DOWNLOADS: Final = "https://boinc.berkeley.edu/download.php"
_KEPT: Final = "Tasks that it has can be finished and reported, and are credited."


def refused(reason: Reason, client_version: str, limits: ClientLimits, why: str = "") -> str:
    """Tell the owner why, and what to do; ``why`` is the reason of a block, in the operators' words."""
    match reason:
        case Reason.CLIENT_TOO_OLD:
            least = text_of(limits.least)
            return (
                f"BOINC {client_version} is too old for this project, which needs {least} or newer. Get a new one at "
                f"{DOWNLOADS} . {_KEPT}"
            )
        case Reason.CLIENT_TOO_NEW:
            greatest = text_of(limits.greatest)
            return (
                f"BOINC {client_version} is newer than this project supports so far. Use {greatest} or older, or wait "
                f"until the project supports it. {_KEPT}"
            )
    return f"The operators of this project send this computer no new tasks: {why.rstrip('.')}. {_KEPT}"


def warning(client_version: str, limits: ClientLimits) -> str:
    """Warn the owner of a client that gets work only until a certain day."""
    day = "" if limits.least_from is None else f"{limits.least_from:%Y-%m-%d}"
    return (
        f"From {day} on this project needs BOINC {text_of(limits.least)} or newer; this computer has {client_version}. "
        f"Get a new one at {DOWNLOADS} ."
    )


def is_warned(number: int, limits: ClientLimits, now: dt.datetime) -> bool:
    """Whether the client gets work only until the day from which older ones get none."""
    is_too_old = bool(number and limits.least and number < limits.least)
    return is_too_old and limits.least_from is not None and now < limits.least_from
