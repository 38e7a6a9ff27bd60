"""Reads settings from environment variables; a bad value ends the program with one line that names the variable.

An empty variable counts as unset: the default holds. docs/reference/settings.md lists the variables.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


class SettingError(SystemExit):
    """A setting that cannot be used. Uncaught, it prints its message and no traceback, and exits with 1."""


def refuse(name: str, value: str, advice: str) -> NoReturn:
    """End the program: this value of the variable cannot be used. ``advice`` says what can."""
    raise SettingError(f"Setting {name}={value[:100]!r} cannot be used: {advice}.")


def text(name: str, default: str = "") -> str:
    """The variable without surrounding white space."""
    return os.environ.get(name, "").strip() or default


def words(name: str, default: list[str]) -> list[str]:
    """A list whose items are separated by commas."""
    given = text(name)
    return [part.strip() for part in given.split(",") if part.strip()] if given else default


def words_among(name: str, default: list[str], *, may_be_none: bool = False) -> list[str]:
    """Some of a few words, separated by commas or blanks; at least one, or "none" if that is allowed."""
    given = text(name, " ".join(default)).replace(",", " ").split()
    if may_be_none and given == ["none"]:
        return []
    if not given or not set(given) <= set(default):
        refuse(name, " ".join(given), f"give one or more of {', '.join(default)}")
    return [word for word in default if word in given]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Networks such as 10.1.0.0/16 or single addresses, separated by commas."""
    try:
        return [ip_network(part) for part in words(name, [])]
    except ValueError:
        refuse(name, text(name), "give networks such as 10.1.0.0/16 or fd00::/8, separated by commas")


def addresses(name: str, *, most: int) -> list[str]:
    """Addresses of web sites, each ending in a slash, separated by commas, without repetitions."""
    given = list(dict.fromkeys(words(name, [])))
    if len(given) > most:
        refuse(name, text(name), f"give at most {most}")
    for part in given:
        if not _is_address(part):
            refuse(name, part, "give addresses such as https://example.org/project/, separated by commas")
    return given


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_plain = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_plain = is_plain and not (parts.query or parts.fragment or parts.username) and len(text) <= 200
    return is_plain and parts.scheme in ("http", "https") and text.endswith("/")


def former_paths(name: str) -> list[str]:
    """Paths that a project had on another server: its own, ending in a slash, its scheduler's, its handler's."""
    given = words(name, [])
    for part in given:
        if not re.fullmatch(r"/([\w.~-]+/)*([\w.~-]+)?", part, re.ASCII) or ".." in part or len(part) > 200:
            refuse(name, part, "give paths such as /fold/, /fold_cgi/cgi and /fold_cgi/file_upload_handler")
    return given


def contact(name: str) -> str:
    """A contact link, from an e-mail address or a page with https; empty: none."""
    given = text(name)
    if not given or (given.startswith("https://") and _is_address(given)):
        return given
    try:
        validate_email(given)
    except ValidationError:
        refuse(name, given, "give an e-mail address, or an address such as https://example.org/contact/")
    return f"mailto:{given}"


def switch(name: str, default: bool) -> bool:
    """On or off: 1/0, true/false, yes/no, on/off."""
    given = text(name)
    if not given:
        return default
    if given.lower() not in _ON + _OFF:
        refuse(name, given, "give 1 (on) or 0 (off)")
    return given.lower() in _ON


def client_version(name: str) -> str:
    """A version of BOINC's client such as 7.16.0; empty: none."""
    given = text(name)
    if given and not re.fullmatch(r"\d{1,3}\.\d{1,2}(\.\d{1,2})?", given):
        refuse(name, given, "give a version of BOINC such as 7.16.0")
    return given


def day(name: str) -> dt.datetime | None:
    """The beginning (UTC) of a day such as 2027-03-01; empty: None."""
    given = text(name)
    if not given:
        return None
    try:
        return dt.datetime.combine(dt.date.fromisoformat(given), dt.time(), dt.UTC)
    except ValueError:
        refuse(name, given, "give a day such as 2027-03-01")


def choice(name: str, default: str, among: list[str]) -> str:
    """One of a few words."""
    given = text(name, default)
    if given not in among:
        refuse(name, given, f"give {' or '.join(among)}")
    return given


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    given = text(name)
    if not given:
        return default
    advice = f"give a whole number from {low} to {high}"
    if len(given) > 20:
        refuse(name, given, advice)
    try:
        value = int(given)
    except ValueError:
        refuse(name, given, advice)
    if not low <= value <= high:
        refuse(name, given, advice)
    return value


def number(name: str, default: float, *, low: float, high: float) -> float:
    """A finite number from ``low`` to ``high``, both included; 200e9 is a way to write one."""
    given = text(name)
    if not given:
        return default
    advice = f"give a number from {low:g} to {high:g}"
    try:
        value = float(given)
    except ValueError:
        refuse(name, given, advice)
    if not (math.isfinite(value) and low <= value <= high):
        refuse(name, given, advice)
    return value


def secret(name: str) -> str:
    """The variable ``name``, or the content of the file that ``name``_FILE names."""
    file = text(f"{name}_FILE")
    if not file:
        return text(name)
    try:
        content = Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{name}_FILE", file, f"the file cannot be read ({type(error).__name__})")
    return content or refuse(f"{name}_FILE", file, "the file is empty")


def database(url: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's settings for a PostgreSQL URL; the URL itself, which may hold a password, is never shown.

    It is read as libpq reads it: ``host`` may be a socket's folder; options after the "?" (sslmode …) go to libpq
    unchanged. It names one address: whatever stands in front of several servers knows which of them takes writes.

    ``name``: the setting's, for errors.
    """
    try:
        if url.partition("://")[0] not in ("postgres", "postgresql"):
            raise ValueError
        options = conninfo_to_dict(url)
        if "," in str(options.get("host", "")) or not _is_port(str(options.get("port", ""))):
            raise ValueError
    except (ValueError, ProgrammingError):
        raise SettingError(
            f"Setting {name} cannot be used: give postgresql://user:password@host:port/database, with one host "
            "(docs/how-to/high-availability.md)."
        ) from None
    keys = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    read = {part: str(options.pop(key, "")) for part, key in keys.items()}
    return {"ENGINE": "portal.databases.postgresql", **read, "OPTIONS": options}


def _is_port(text: str) -> bool:
    """Whether this is a port, or empty for libpq's default."""
    return not text or (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535)


def mail(url: str) -> dict[str, Any]:
    """Django's e-mail settings for a URL like smtp+tls://user:password@host:587, which is never shown."""
    try:
        return dict(environ.Env.email_url_config(url))
    except (ValueError, ImproperlyConfigured):
        raise SettingError(
            "Setting EMAIL_URL cannot be used: give smtp+tls://user:password@host:587 or consolemail://."
        ) from None
