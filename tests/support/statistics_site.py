"""A project's statistics export as files on a real server, which may change, break off and lie."""

from __future__ import annotations

import gzip
import hashlib
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.raw_server import RawServer, path_of, reply

DAY = 86_400
NOON = 1_772_366_400
"""2026-03-01 12:00 UTC."""
_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class HostRecord:
    """A computer as the project has it; ``cpid``: its own, of which the address makes the exported one."""

    id: int
    total: object
    cpid: str = "a" * 32
    email: str = "alice@example.org"
    made_at: object = NOON - 100 * DAY
    average: object = 1.5

    def text(self) -> str:
        return (
            f"<host>\n    <id>{self.id}</id>\n    <userid>5</userid>\n    <total_credit>{self.total}</total_credit>\n"
            f"    <expavg_credit>{self.average}</expavg_credit>\n    <expavg_time>{NOON}.123456</expavg_time>\n"
            "    <p_vendor>Genuine &lt;b&gt;</p_vendor>\n"
            '    <misc><![CDATA[{"coprocs": "<host_cpid>' + "0" * 32 + '</host_cpid>"}]]></misc>\n'
            f"    <create_time>{self.made_at}</create_time>\n    <rpc_time>{NOON}</rpc_time>\n"
            f"    <host_cpid>{md5(self.cpid + self.email)}</host_cpid>\n</host>\n"
        )


@dataclass(frozen=True)
class UserRecord:
    """An account as the project has it."""

    id: int
    total: object
    cpid: str
    email: str = "alice@example.org"

    def text(self) -> str:
        return (
            f"<user>\n <id>{self.id}</id>\n <name>Alice</name>\n <create_time>{NOON}</create_time>\n"
            f" <total_credit>{self.total}</total_credit>\n <expavg_credit>0.5</expavg_credit>\n"
            f" <expavg_time>{NOON}</expavg_time>\n <cpid>{md5(self.cpid + self.email)}</cpid>\n</user>\n"
        )


def packed(root: str, texts: Iterable[str]) -> bytes:
    return gzip.compress(f"{_HEAD}<{root}>\n{''.join(texts)}</{root}>\n".encode(), mtime=0)


class StatisticsSite(RawServer):
    """``files``: by name; ``breaks_after``: bytes of a file after which its connection ends; ``is_down``."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.files: dict[str, bytes] = {}
        self.breaks_after: int | None = None
        self.has_etags = True
        self.is_down = False
        self.publish(NOON)

    def publish(self, time: int, hosts: Iterable[HostRecord] = (), users: Iterable[UserRecord] = ()) -> None:
        """An export of this time."""
        host_texts, user_texts = [host.text() for host in hosts], [user.text() for user in users]
        self.files = {
            "tables.xml": (
                f"{_HEAD}<tables>\n    <update_time>{time}</update_time>\n"
                f"    <nusers_total>{len(user_texts)}</nusers_total>\n"
                f"    <nhosts_total>{len(host_texts)}</nhosts_total>\n</tables>\n"
            ).encode(),
            "user.gz": packed("users", user_texts),
            "host.gz": packed("hosts", host_texts),
        }

    def asked(self, name: str) -> list[bytes]:
        """The requests for a file."""
        return [request for request in self.requests if urlsplit(path_of(request)).path == f"/stats/{name}"]

    def _reply(self, connection: socket.socket, request: bytes) -> None:
        name = urlsplit(path_of(request)).path.removeprefix("/stats/")
        if self.is_down:
            return
        content = self.files.get(name)
        if content is None:
            connection.sendall(reply(b"", status="404 Not Found"))
            return
        etag = f'"{md5(content.hex())}"'
        headers = [f"ETag: {etag}"] if self.has_etags else []
        if self.has_etags and f"If-None-Match: {etag}".encode() in request:
            connection.sendall(reply(b"", *headers, status="304 Not Modified"))
            return
        match = re.search(rb"Range: bytes=(\d+)-\r\nIf-Range: ([^\r]+)|$", request)
        begin = int(match[1]) if match and match[1] and match[2].decode() == etag else 0
        status = "206 Partial Content" if begin else "200 OK"
        if begin:
            headers.append(f"Content-Range: bytes {begin}-{len(content) - 1}/{len(content)}")
        answer = reply(content[begin:], *headers, status=status)
        if self.breaks_after is not None and name.endswith(".gz"):
            answer = answer[: answer.index(b"\r\n\r\n") + 4 + self.breaks_after]
        connection.sendall(answer)
