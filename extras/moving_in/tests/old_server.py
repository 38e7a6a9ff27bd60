"""BOINC's own server as a client meets it: one volunteer with one computer, and the tasks that its database has."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from extras.moving_in.engine.jobs import folder_of
from extras.moving_in.tests.old_work import FANOUT, OldWork
from portal.wire import signing
from tests.support.mini_project import SLEEPER
from tests.support.stub_server import StubServer

USER: Final = 7
HOST: Final = 70
KEY: Final = f"{USER:032x}"
DEADLINE: Final = 2_000_000_000
PROGRAM: Final = SLEEPER.format(python=Path(sys.executable).resolve())


def text_of(xml: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", xml, re.DOTALL)
    return found[1].strip() if found else ""


@dataclass
class OldServer(StubServer):
    """A context manager. ``work``: its database and folder; ``tasks``: names of results that are sent at once."""

    work: OldWork
    port: int
    tasks: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        server = _Server(("127.0.0.1", self.port), _Handler)
        server.project = self
        self.serve(server)

    def page(self, path: str) -> bytes | None:
        if path == "/fold/":
            return f"<title>Fold</title>\n<!-- <scheduler>{self.work.cgi}cgi</scheduler> -->\n".encode()
        match = re.fullmatch(r"/fold/download/(?:[0-9a-f]+/)?([^/]+)", path)
        if match is None:
            return None
        folder = self.work.folder / "download"
        paths = [
            path for path in (folder / match[1], folder / folder_of(match[1], FANOUT) / match[1]) if path.is_file()
        ]
        return paths[0].read_bytes() if paths else None

    def scheduler_reply(self, request: str) -> str:
        self.requests.append(request)
        assert text_of(request, "authenticator") == KEY
        parts = [f"<hostid>{HOST}</hostid>\n" if text_of(request, "hostid") == "0" else ""]
        if "<code_sign_key>" not in request:
            parts.append(f"<code_sign_key>\n{signing.public_key_text(self.work.code_key)}</code_sign_key>\n")
        if float(text_of(request, "cpu_req_secs") or 0) > 0 and self.tasks:
            parts.append(self._app())
            parts += [self._task(name) for name in self.tasks]
            self.tasks = []
        return (
            f"<scheduler_reply>\n<scheduler_version>720</scheduler_version>\n<master_url>{self.work.url}</master_url>\n"
            f"<request_delay>2</request_delay>\n<project_name>Fold</project_name>\n<userid>{USER}</userid>\n"
            f"<user_name>Volunteer</user_name>\n<user_total_credit>7000</user_total_credit>\n{''.join(parts)}"
            "</scheduler_reply>\n"
        )

    def _app(self) -> str:
        ((xml, platform),) = self._rows(
            "SELECT v.xml_doc, p.name FROM app_version v JOIN platform p ON p.id = v.platformid LIMIT 1"
        )
        version = xml.decode().replace("<dont_throttle/>\n", "").replace(
            "</app_version>",
            f"<platform>{platform.decode()}</platform>\n<avg_ncpus>1</avg_ncpus>\n<flops>1e9</flops>\n</app_version>",
        )  # fmt: skip
        return f"<app>\n<name>fold</name>\n<user_friendly_name>Folding</user_friendly_name>\n</app>\n{version}"

    def _task(self, name: str) -> str:
        ((workunit, xml, inputs),) = self._rows(
            "SELECT w.name, r.xml_doc_in, w.xml_doc FROM result r, workunit w WHERE w.id = workunitid AND r.name = %s",
            name,
        )
        about = (
            f"<workunit>\n<name>{workunit.decode()}</name>\n<app_name>fold</app_name>\n<version_num>105</version_num>\n"
            "<rsc_fpops_est>2e10</rsc_fpops_est>\n<rsc_fpops_bound>1e14</rsc_fpops_bound>\n"
            "<rsc_memory_bound>1e8</rsc_memory_bound>\n<rsc_disk_bound>1e7</rsc_disk_bound>\n"
        )
        result = (
            f"<result>\n<name>{name}</name>\n<wu_name>{workunit.decode()}</wu_name>\n<version_num>105</version_num>\n"
            f"<report_deadline>{DEADLINE}</report_deadline>\n<plan_class></plan_class>\n"
        )
        return inputs.decode().replace("<workunit>\n", about) + xml.decode().replace("<result>\n", result)

    def _rows(self, statement: str, *params: Any) -> list[tuple[bytes, ...]]:
        with self.work.project.connection.cursor() as cursor:
            cursor.execute(statement, params)
            return [
                tuple(value if isinstance(value, bytes) else str(value).encode() for value in row)
                for row in cursor.fetchall()
            ]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    project: OldServer


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        content = self.server.project.page(self.path)
        if content is None:
            self.send_error(404)
        else:
            self._answer(content)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/fold_cgi/cgi":
            self._answer(self.server.project.scheduler_reply(body.decode("utf-8", "replace")).encode())
        else:
            self.send_error(404)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""
