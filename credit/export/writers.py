"""Renders the files of the export as bytes: one row of the database in, one record out. Pure.

Readers go line by line: the tags that begin and end a record are at column 0, and each element has its own line. So
nothing that a volunteer entered, or a computer reported, may introduce a line feed or a tag. Rows come from
PostgreSQL's COPY, where values are separated by tabs and need no conversion. Source of the format: BOINC's
sched/db_dump.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from typing import Final

HEAD: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'
_NULL: Final = b"\\N"
# Characters that must not appear unescaped in XML, and COPY's backslashes.
_SPECIAL: Final = bytes({*range(9), *range(10, 32), 127, *b"&<>\\"})
# First bytes in UTF-8 of characters that must not appear there, or that some readers treat as line ends.
_BEGINNINGS: Final = (b"\xc2", b"\xe2\x80", b"\xef\xbf")
_ILLEGAL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]")
_COPIED: Final = re.compile(rb"\\(.)")
_BLANKS: Final = {letter: b" " for letter in (b"b", b"f", b"n", b"r", b"t", b"v")}

Record = Callable[[bytes], bytes]


def user(row: bytes) -> bytes:
    """Render <user> from id, name, create_time, total_credit, expavg_credit, expavg_time, cpid, teamid or NULL."""
    id_, name, created, total, recent, recent_at, cpid, team = _fields(row)
    return (
        b"<user>\n <id>%b</id>\n <name>%b</name>\n <create_time>%b</create_time>\n"
        b" <total_credit>%b</total_credit>\n <expavg_credit>%b</expavg_credit>\n <expavg_time>%b</expavg_time>\n"
        b" <cpid>%b</cpid>\n%b</user>\n"
    ) % (
        id_,
        name or b"Anonymous",
        created,
        _decimal(total),
        _decimal(recent),
        recent_at,
        cpid,
        b"" if team == _NULL else b" <teamid>%b</teamid>\n" % team,
    )


_TEAM_TAGS: Final = (
    "id", "type", "name", "userid", "total_credit", "expavg_credit", "expavg_time", "founder_name", "create_time",
    "url", "description", "country",
)  # fmt: skip
_OF_FOUNDER: Final = ("userid", "founder_name")
_OPTIONAL: Final = ("url", "description")
_NUMBERS: Final = ("total_credit", "expavg_credit")


def team(row: bytes) -> bytes:
    """Render <team> from the columns `_TEAM_TAGS`; the founder is left out if NULL, texts if empty."""
    lines = [b"<team>\n"]
    for tag, value in zip(_TEAM_TAGS, _fields(row), strict=True):
        if (tag in _OF_FOUNDER and value == _NULL) or (tag in _OPTIONAL and not value):
            continue
        shown = _decimal(value) if tag in _NUMBERS else value
        lines.append(b" <%b>%b</%b>\n" % (tag.encode(), shown, tag.encode()))
    lines.append(b"</team>\n")
    return b"".join(lines)


_HOST: Final = (
    b"<host>\n"
    + b"".join(
        b"    <%b>%%b</%b>\n" % (tag, tag)
        for tag in (
            b"id", b"userid", b"total_credit", b"expavg_credit", b"expavg_time", b"p_vendor", b"p_model", b"os_name",
            b"os_version",
        )
    )
    + b"    <misc><![CDATA[%b]]></misc>\n"
    + b"".join(
        b"    <%b>%%b</%b>\n" % (tag, tag)
        for tag in (
            b"create_time", b"rpc_time", b"timezone", b"ncpus", b"p_fpops", b"p_iops", b"p_membw", b"m_nbytes",
            b"m_cache", b"m_swap", b"d_total", b"d_free", b"n_bwup", b"n_bwdown", b"avg_turnaround",
            b"credit_per_cpu_sec", b"host_cpid",
        )
    )
    + b"</host>\n"
)  # fmt: skip
_HOST_MISC: Final = 9
# Credit, speeds and the turnaround, which PostgreSQL may write with an exponent.
_HOST_NUMBERS: Final = (2, 3, 14, 15, 16, 24)
_numbers_of: Final = itemgetter(*_HOST_NUMBERS)


def host(row: bytes) -> bytes:
    """Render <host> from the columns of `_HOST`, in its order. Unknown values are NULL, and written as 0."""
    parts = row.split(b"\t")
    if _is_special(row):
        misc = _json(parts[_HOST_MISC])
        parts = [b"0" if part == _NULL else _text(part) for part in parts]
        parts[_HOST_MISC] = misc
    if b"e" in b"".join(_numbers_of(parts)):
        for place in _HOST_NUMBERS:
            parts[place] = _decimal(parts[place])
    return _HOST % tuple(parts)


def gone_user(row: bytes) -> bytes:
    """Render <user> from id and cpid, for somebody who is no longer published."""
    return b"<user>\n    <id>%b</id>\n    <cpid>%b</cpid>\n</user>\n" % tuple(row.split(b"\t"))


def gone_host(row: bytes) -> bytes:
    """Render <host> from number and cross-project id, for a computer that is no longer published."""
    return b"<host>\n    <id>%b</id>\n    <host_cpid>%b</host_cpid>\n</host>\n" % tuple(row.split(b"\t"))


@dataclass(frozen=True, slots=True)
class FileKind:
    """One of the compressed files: its name, its outer element, and its renderer of records."""

    name: str
    root: str
    record: Record = field(compare=False)

    @property
    def begin(self) -> bytes:
        return HEAD + f"<{self.root}>\n".encode()

    @property
    def end(self) -> bytes:
        return f"</{self.root}>\n".encode()


USERS: Final = FileKind("user.gz", "users", user)
TEAMS: Final = FileKind("team.gz", "teams", team)
HOSTS: Final = FileKind("host.gz", "hosts", host)
GONE_USERS: Final = FileKind("user_deleted.gz", "users_deleted", gone_user)
GONE_HOSTS: Final = FileKind("host_deleted.gz", "hosts_deleted", gone_host)
KINDS: Final = (USERS, TEAMS, HOSTS, GONE_USERS, GONE_HOSTS)
TABLES: Final = "tables.xml"
NAMES: Final = (TABLES, *(kind.name for kind in KINDS))


@dataclass(frozen=True, slots=True)
class ProjectSums:
    """The sums in tables.xml for the whole project: volunteers, computers and credit, published or not."""

    update_time: int
    nusers: int
    nteams: int
    nhosts: int
    nusers_deleted: int
    nhosts_deleted: int
    total_credit: float


def tables(sums: ProjectSums, apps: Iterable[str]) -> bytes:
    """Render tables.xml; ``apps``: their display names."""
    counts = {
        "nusers_total": sums.nusers,
        "nteams_total": sums.nteams,
        "nhosts_total": sums.nhosts,
        "nusers_deleted_total": sums.nusers_deleted,
        "nhosts_deleted_total": sums.nhosts_deleted,
    }
    names = (_escaped(" ".join(name.split()).encode()).decode() for name in apps)
    lines = [HEAD.decode(), "<tables>\n", f"    <update_time>{sums.update_time}</update_time>\n"]
    lines += [f"    <{tag}>{count}</{tag}>\n" for tag, count in counts.items()]
    lines.append(f"    <total_credit>{_decimal(repr(sums.total_credit).encode()).decode()}</total_credit>\n")
    lines.append("    <applications>\n")
    lines += [f"        <application>\n            <name>{name}</name>\n        </application>\n" for name in names]
    lines.append("    </applications>\n    <badges>\n    </badges>\n</tables>\n")
    return "".join(lines).encode()


def _fields(row: bytes) -> Sequence[bytes]:
    parts = row.split(b"\t")
    if _is_special(row):
        return [part if part == _NULL else _text(part) for part in parts]
    return parts


def _is_special(value: bytes) -> bool:
    """Whether anything in it needs closer inspection. Few rows do, and a pattern takes ten times as long."""
    if len(value.translate(None, _SPECIAL)) != len(value):
        return True
    return not value.isascii() and any(beginning in value for beginning in _BEGINNINGS)


def _text(value: bytes) -> bytes:
    """Return a value of COPY as the text of an element: on one line, without control characters, escaped."""
    if not _is_special(value):
        return value
    return _escaped(_uncopied(value))


def _escaped(text: bytes) -> bytes:
    text = _ILLEGAL.sub(b"", text)
    return text.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _json(value: bytes) -> bytes:
    """Return a JSON value of COPY, fit for a CDATA section on one line."""
    return _ILLEGAL.sub(b"", _uncopied(value)).replace(b"]]>", b"]]\\u003e")


def _uncopied(value: bytes) -> bytes:
    """Undo COPY's backslashes; line feeds, tabs and the like become blanks."""
    return _COPIED.sub(lambda match: _BLANKS.get(match[1], match[1]), value)


def _decimal(value: bytes) -> bytes:
    """Return a number written by PostgreSQL or Python without its exponent; no digit is lost."""
    return format(Decimal(value.decode()), "f").encode() if b"e" in value else value
