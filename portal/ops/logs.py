"""Log lines: JSON in production, readable text on a terminal; in UTC; without secrets.

A request has one line, written by ``log_request`` without structlog's chain, as it is on the hot path. All other
lines, including the libraries', go through the chain below and carry the request's or the task's id.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import logging.config
import re
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson
import structlog
from django.http import HttpRequest
from structlog.typing import EventDict, Processor, WrappedLogger

USER_AGENT_CHARS = 100
SEGMENT_CHARS = 24
_SECRET_NAMES = re.compile(r"passw|secret|authenticator|token|cookie|session|csrf|signature|(^|_)key$|hash$", re.I)
# Client keys, password hashes and host tokens are 32 hexadecimal digits or more.
_HEX = re.compile(r"\b[0-9A-Fa-f]{32,}\b")
# PostgreSQL's DETAIL quotes the row that broke a constraint, with all that is in it.
_ROW_CONTENTS = re.compile(r"^\s*(DETAIL|CONTEXT|PARAMETERS):.*$", re.M)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_as_json = True


def utc_now_text() -> str:
    """The time in UTC, to the millisecond, such as 2026-11-21T10:15:30.123Z."""
    secs, ms = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second_text(secs)}.{ms:03d}Z"


@lru_cache(maxsize=4)
def _second_text(secs: int) -> str:
    """Unix time as text; cached, as hundreds of lines have the same second."""
    return dt.datetime.fromtimestamp(secs, dt.UTC).isoformat()[:19]


def _json_line(event: dict[str, object]) -> str:
    """An event as the json module writes it, made by orjson if that gives the same.

    Input from outside may contain control characters that only json escapes, and numbers, such as one of thirty digits,
    that orjson refuses.
    """
    try:
        line = orjson.dumps(event).decode()
    except TypeError:
        return json.dumps(event)
    return line if line.isascii() and "\x7f" not in line else json.dumps(event)


def log_request(fields: dict[str, object]) -> None:
    """Write a request's line. ``fields`` contain no query string, body, cookie or header except the user agent.

    Straight to standard error, as Python's logging would double the cost of a line.
    """
    if _as_json:
        event = {"time": utc_now_text(), "level": "info", "event": "request", **fields}
        line = _json_line(event)
    else:
        line = "{time} {method} {path} {status} {ms} ms {request_id}".format(time=utc_now_text()[11:-1], **fields)
    sys.stderr.write(f"{line}\n")


def loggable_path(request: HttpRequest) -> str:
    """The path without parts that may be secret: text captured by a route, or long parts of an unknown path."""
    # A line feed would begin a forged line.
    path = _UNPRINTABLE.sub("?", request.path)
    match = request.resolver_match
    if match is None:
        parts = (part if len(part) <= SEGMENT_CHARS else f"{part[:4]}…" for part in path[:300].split("/"))
        return "/".join(parts)[:100]
    captured: list[tuple[object, object]] = [*enumerate(match.args), *match.kwargs.items()]
    for name, value in captured:
        if isinstance(value, str) and value:
            path = path.replace(_UNPRINTABLE.sub("?", value), f"<{name}>")
    return path[:200]


def _add_time(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["time"] = utc_now_text()
    return event


def _hide_paths(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the whole path that Django's own lines quote by the harmless one."""
    request = getattr(event.get("_record"), "request", None)
    if isinstance(request, HttpRequest):
        event["event"] = str(event["event"]).replace(request.path, loggable_path(request))
    return event


def _hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Blank values that are named like a secret or look like one, in case a message or an exception quotes them."""
    for name, value in event.items():
        if name in ("_record", "request_id", "task_id"):
            continue
        if value is None or isinstance(value, int | float):
            continue
        if _SECRET_NAMES.search(name):
            event[name] = "[hidden]"
        elif isinstance(value, str):
            event[name] = _ROW_CONTENTS.sub("[row contents hidden]", _HEX.sub("[hidden]", value))
    return event


_COMMON: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    _add_time,
    # Plain tracebacks: the ones with local variables would show passwords.
    structlog.processors.format_exc_info,
    _hide_paths,
    _hide_secrets,
]


class _ToStderr(logging.Handler):
    """Writes to the current standard error, as ``log_request`` does."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except Exception:
            # As in logging's own handlers: a line that cannot be written must not stop the program.
            self.handleError(record)


def configure(options: dict[str, Any]) -> None:
    """Set up this process's logging; Django calls it with the setting LOGGING: {"json": bool, "level": name}."""
    global _as_json
    _as_json = options["json"]
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if options["json"]
        else structlog.dev.ConsoleRenderer(colors=False, timestamp_key="time")
    )
    formatter: Callable[..., logging.Formatter] = structlog.stdlib.ProcessorFormatter
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "chain": {
                    "()": formatter,
                    "foreign_pre_chain": _COMMON,
                    "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
                },
            },
            "handlers": {
                "chain": {"()": _ToStderr, "formatter": "chain"},
            },
            "root": {"handlers": ["chain"], "level": options["level"]},
            "loggers": {
                # Django's own handlers would mail errors, and print them a second time.
                "django": {"handlers": [], "level": options["level"], "propagate": True},
                # 4xx replies are in the request's line already, and strangers may cause any number of them.
                "django.request": {"level": "ERROR"},
                "django.security.DisallowedHost": {"level": "CRITICAL"},
                # It warns of other servers' bad headers with the full address, which may contain an account key.
                "urllib3": {"level": "ERROR"},
                # It lists each letter that goes into a file, and so reveals what is written there.
                "fontTools": {"level": "WARNING"},
            },
        }
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_COMMON,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
