"""A BOINC project that answers web RPCs and scheduler requests over real sockets; what it says can be changed."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import parse_qs, urlsplit

from portal.wire.credentials import client_password_hash
from tests.support.raw_server import RawServer, path_of, reply

EMAIL = "ops@example.org"
PASSWORD = "a secret"
STRONG_KEY = "0123456789abcdef0123456789abcdef"
WEAK_KEY = "7_fedcba9876543210fedcba9876543210"

PLATFORMS = (
    "<platforms><platform><platform_name>windows_x86_64</platform_name></platform>"
    "<platform><platform_name>windows_x86_64</platform_name><plan_class>cuda55</plan_class></platform></platforms>"
)


class FakeProject(RawServer):
    """``config``: the inside of its configuration; ``has_account_info``: whether it tells of accounts; ``status``: of
    what it answers about accounts, if it is no success; ``words``: its error message; ``scheduler``: its address;
    ``accounts``: the hash of each password by login; ``weak_key``: of them all, by which it may tell of the account;
    ``credit``: their total, if it tells; ``refusal``: the number of what it says of unknown keys; ``nonsense``: what it
    answers to a login, as it is;
    ``server_status``: what it says of its daemons, if it does; ``code_key``: the key of its programs.
    """

    def __init__(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(self._reply, host, tls)
        self.config = (
            f"<name>Fake@Home</name><master_url>{self.url}</master_url><web_rpc_url_base>{self.url}</web_rpc_url_base>"
            f"<min_passwd_length>8</min_passwd_length>{PLATFORMS}<keywords>2:0.5 3</keywords>"
        )
        self.etag = ""
        self.has_account_info = True
        self.is_down = False
        self.status = ""
        self.account_name = "Ops+Team"
        self.scheduler = "/cgi"
        self.words = ""
        self.server_status = ""
        self.code_key = ""
        self.accounts = {EMAIL: client_password_hash(PASSWORD, EMAIL)}
        self.wants_consent = False
        self.weak_key = WEAK_KEY
        self.tells_by_weak_key = True
        self.refusal = -136
        self.nonsense = b""
        self.credit = ""

    def asked(self, page: str) -> list[bytes]:
        """The requests for a page."""
        return [request for request in self.requests if urlsplit(path_of(request)).path == page]

    def _reply(self, connection: socket.socket, request: bytes) -> None:
        if self.is_down:
            return
        is_nonsense = self.nonsense and path_of(request).startswith("/lookup_account.php")
        connection.sendall(self.nonsense if is_nonsense else self._answer_to(request))

    def _answer_to(self, request: bytes) -> bytes:
        page = urlsplit(path_of(request))
        query = {name: values[0] for name, values in parse_qs(page.query).items()}
        if page.path == "/get_project_config.php":
            if self.etag and f"If-None-Match: {self.etag}".encode() in request:
                return reply(b"", status="304 Not Modified")
            headers = [f"ETag: {self.etag}"] if self.etag else []
            return reply(f"<project_config>{self.config}</project_config>".encode(), *headers)
        if page.path == "/server_status.php" and self.server_status:
            return reply(self.server_status.encode())
        if self.status and page.path in ("/lookup_account.php", "/am_get_info.php"):
            return reply(b"", status=self.status)
        if page.path == "/lookup_account.php":
            if query.get("email_addr") not in self.accounts:
                return reply(b"<error><error_num>-136</error_num></error>")
            if query.get("passwd_hash") != self.accounts[query["email_addr"]]:
                said = f"<error_msg>{self.words}</error_msg>" if self.words else ""
                return reply(f"<error><error_num>-206</error_num>{said}</error>".encode())
            return reply(f"<account_out><authenticator>{STRONG_KEY}</authenticator></account_out>".encode())
        if page.path == "/create_account.php":
            if self.wants_consent and query.get("consent_flag") != "1":
                return reply(b"<error><error_num>-242</error_num></error>")
            if self.accounts.setdefault(query["email_addr"], query["passwd_hash"]) != query["passwd_hash"]:
                return reply(b"<error><error_num>-137</error_num></error>")
            return reply(f"<account_out><authenticator>{STRONG_KEY}</authenticator></account_out>".encode())
        if page.path == "/show_user.php" and self.credit:
            figures = f"<total_credit>{self.credit}</total_credit><expavg_credit>1.5</expavg_credit>"
            return reply(f"<user><id>{query['userid']}</id>{figures}</user>".encode())
        if page.path == "/am_get_info.php" and self.has_account_info:
            if query.get("account_key") not in (STRONG_KEY, self.weak_key if self.tells_by_weak_key else ""):
                said = f"<error_msg>{self.words}</error_msg>" if self.words else ""
                return reply(f"<error><error_num>{self.refusal}</error_num>{said}</error>".encode())
            info = f"<success/><id>7</id><name>{self.account_name}</name><country>France</country>"
            info += f"<weak_auth>{self.weak_key}</weak_auth>"
            return reply(f"<am_get_info_reply>{info}</am_get_info_reply>".encode())
        if page.path == "/":
            return reply(f"<html><!-- <scheduler>{self.scheduler}</scheduler> --></html>".encode())
        if page.path == "/cgi":
            is_known = any(key.encode() in request for key in (STRONG_KEY, WEAK_KEY))
            inside = "<user_name>Ops Team</user_name><hostid>5</hostid>" if is_known else ""
            if is_known and self.code_key:
                inside += f"<code_sign_key>\n{self.code_key}\n</code_sign_key>"
            words = "No jobs wanted" if is_known else self.words or "Invalid or missing account key."
            return reply(
                f'<scheduler_reply>{inside}<message priority="low">{words}</message></scheduler_reply>'.encode()
            )
        return reply(b"", status="404 Not Found")
