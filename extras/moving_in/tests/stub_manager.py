"""An account manager that answers as Science United does: one volunteer, one computer, one project."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from portal.wire import signing
from tests.support.stub_server import StubServer

HOST_NUMBER = 77
_PREFERENCES = """<global_preferences>
    <mod_time>1700000000</mod_time>
    <max_ncpus_pct>100</max_ncpus_pct>
<cpu_usage_limit>100</cpu_usage_limit>
<run_if_user_active>1</run_if_user_active>
<suspend_cpu_usage>0</suspend_cpu_usage>
</global_preferences>
"""


@dataclass
class StubManager(StubServer):
    """A running server; use it as a context manager. ``login``: e-mail address and what clients send for a password."""

    login: tuple[str, str]
    authenticator: str
    key: signing.PrivateKey
    project_url: str
    project_key: str
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                reply = manager.reply(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_arguments: object) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        self.url = f"http://127.0.0.1:{self.port}/"
        self.serve(server)

    def reply(self, request: str) -> str:
        self.requests.append(request)
        said = first(request, "authenticator"), (first(request, "name"), first(request, "password_hash"))
        if said[0] != self.authenticator and said[1] != self.login:
            return "<acct_mgr_reply>\n<error_num>-1</error_num><error_msg>no account found</error_msg></acct_mgr_reply>"
        return (
            "<acct_mgr_reply>\n<name>Science United</name>\n"
            f"<authenticator>{self.authenticator}</authenticator>\n"
            f"<signing_key>\n{signing.public_key_text(self.key.public_key())}</signing_key>\n"
            "<repeat_sec>43200</repeat_sec>\n<dynamic/>\n<user_name>Volunteer</user_name>\n"
            f"<user_keywords>\n</user_keywords>\n{_PREFERENCES}"
            f"<account>\n<url>{self.project_url}</url>\n"
            f"<url_signature>\n{signing.sign(self.project_url.encode(), self.key)}</url_signature>\n"
            f"<authenticator>{self.project_key}</authenticator>\n</account>\n"
            f"<opaque><host_id>{HOST_NUMBER}</host_id></opaque>\n</acct_mgr_reply>\n"
        )


def first(text: str, tag: str) -> str:
    """The text of the first element of this name; empty if there is none."""
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return found[1].strip() if found else ""
