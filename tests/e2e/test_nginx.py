"""The site behind Debian's nginx, by the files in deploy/: who answers what, slow clients, restarts, smuggling."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import select
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from email.message import Message
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings
from pytest_django import Settings

from credit.export.run import export
from portal import __version__
from portal.clients.messages import refusal
from portal.models import Host
from portal.rest import problems
from portal.wire.boinc_errors import ERR_PROJECT_DOWN, ERR_XML_PARSE
from scheduler.models import StoredFile, Upload
from tests.support.boinc_client import BoincClient
from tests.support.nginx_deployment import ADDRESS_HEADER, DEPLOY, Deployment, Program
from tests.support.open_files import files_enough
from tests.support.upload_requests import ADDRESS, make_task, read_reply, size_query, upload_body
from tests.support.upload_sockets import received_nbytes
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

MIB: Final = 1024 * 1024
SECS: Final = 8
"""After which slow clients are to be ended."""
LOGIN_FAILURES: Final = 3
PER_CUSTOMER: Final = 100
"""Requests of one address at once, as in deploy/nginx.conf."""
NSLOW: Final = 2_000
NO_HEADERS: Final[Mapping[str, str]] = {}


@pytest.fixture(scope="module")
def deployment(
    nginx: str, django_db_setup: None, site_var_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    times = {
        "client_header_timeout 10s;": f"client_header_timeout {SECS}s;",
        "client_body_timeout 20s;": f"client_body_timeout {SECS}s;",
        "keepalive_timeout 15s;": f"keepalive_timeout {SECS}s;",
    }
    limits = {"CLIENT_BODY_SECS": str(SECS), "CLIENT_LOGIN_FAILURES": str(LOGIN_FAILURES)}
    more = {"UPLOAD_SECRET": settings.UPLOAD_SECRET}
    with Deployment(site_var_dir, tmp_path_factory.mktemp("deployment"), times, **limits, **more) as running:
        yield running


def connect(deployment: Deployment, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(deployment.address, timeout=60, source_address=(source, 0))


def head(path: str, nbytes: int | None = None, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
    """The head of a POST with this many bytes, or of a GET."""
    method, length = ("GET", "") if nbytes is None else ("POST", f"Content-Length: {nbytes}\r\n")
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{length}{more}\r\n".encode()


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    came = b""
    try:
        while part := connection.recv(65536):
            came += part
    except ConnectionResetError:
        pass
    return came


def send(deployment: Deployment, text: bytes, source: str = "127.0.0.1") -> tuple[int, bytes]:
    """Status and content of the reply to this request."""
    with connect(deployment, source) as connection:
        connection.sendall(text)
        reply = HTTPResponse(connection)
        reply.begin()
        return reply.status, reply.read()


def ask(
    deployment: Deployment, path: str, body: bytes | None = None, headers: Mapping[str, str] = NO_HEADERS
) -> tuple[int, bytes]:
    """The same, of a POST with this body, or of a GET."""
    return send(deployment, head(path, None if body is None else len(body), headers) + (body or b""))


def nlines(program: Program, path: str) -> int:
    """How many requests for this path the program has logged."""
    return program.log().count(f'"path":"{path}"')


def words(location: str) -> str:
    """What nginx says in this location of its own."""
    match = re.search(rf'location @{location} {{[^}}]*set \$words "(.*)";', (DEPLOY / "nginx.conf").read_text())
    assert match
    return match[1]


def as_xml(path: str) -> str:
    """What a program asks: without a format these three lead people to a page."""
    also_for_people = ("/project/show_user.php", "/project/show_host_detail.php", "/project/apps.php")
    return f"{path}?format=xml" if path in also_for_people else path


@contextmanager
def stopped(program: Program) -> Iterator[None]:
    program.stop()
    yield
    program.start()


@pytest.mark.parametrize("path", [*settings.CLIENT_PATHS])
def test_what_clients_ask_is_answered_by_the_event_loop(deployment: Deployment, path: str) -> None:
    before = nlines(deployment.clients, path), nlines(deployment.web, path)
    status, _ = ask(deployment, as_xml(path), b"<nothing/>\n")
    assert status == 200
    assert (nlines(deployment.clients, path), nlines(deployment.web, path)) == (before[0] + 1, before[1])


@pytest.mark.parametrize("path", ["/", "/account/login/", "/api/v1/schema/", "/project/", "/rpc.php/", "/admin/login/"])
def test_what_people_ask_is_answered_by_the_pages_service(deployment: Deployment, path: str) -> None:
    before = nlines(deployment.clients, path), nlines(deployment.web, path)
    ask(deployment, path)
    assert (nlines(deployment.clients, path), nlines(deployment.web, path)) == (before[0], before[1] + 1)


def test_pages_come_compressed_and_replies_to_clients_do_not(deployment: Deployment) -> None:
    def is_compressed(path: str) -> bool:
        answer = ask(deployment, path, headers={"Accept-Encoding": "gzip"})[1]
        return answer.startswith(b"\x1f\x8b")

    assert is_compressed("/") and is_compressed("/api/v1/schema/")
    assert not is_compressed("/get_project_config.php")


def test_what_a_client_claims_as_its_address_is_dropped(deployment: Deployment) -> None:
    def look_up(email: str, source: str, claimed: str) -> bytes:
        names = {"X-Forwarded-For": claimed, "Forwarded": f"for={claimed}", "X-Real-IP": claimed}
        query = f"/lookup_account.php?email_addr={email}@example.org"
        return send(deployment, head(query, headers=names), source)[1]

    tries = [look_up(f"nobody{n}", "127.0.0.77", f"192.0.2.{n}") for n in range(LOGIN_FAILURES + 1)]
    # The failures of one address, whatever it claims, add up; and are nobody else's.
    assert len(set(tries[:LOGIN_FAILURES])) == 1 and tries[LOGIN_FAILURES] != tries[0]
    assert look_up("nobody", "127.0.0.78", "127.0.0.77") == tries[0]


def test_nothing_of_the_proxys_own_headers_is_lost_in_a_location() -> None:
    conf = (DEPLOY / "nginx.conf").read_text()
    # nginx inherits these only where a location has none of its own.
    assert len(re.findall(r"^ {4}proxy_set_header ", conf, re.M)) == conf.count("proxy_set_header") == 5


def test_a_cut_upload_goes_on_where_it_stopped(deployment: Deployment, studio: Host) -> None:
    make_task("t", studio, max_nbytes=3 * MIB)
    content = os.urandom(2 * MIB)
    whole = upload_body("t_0", content, max_nbytes=3 * MIB)
    with connect(deployment) as connection:
        connection.sendall(head(ADDRESS, len(whole)) + whole[: MIB + 5])
        connection.shutdown(socket.SHUT_RDWR)
    here = received_nbytes(deployment, "t_0")
    assert here < len(content)
    rest = upload_body("t_0", content, offset=here, max_nbytes=3 * MIB)
    assert read_reply(ask(deployment, ADDRESS, rest)[1]) == "0"
    upload = Upload.objects.get()
    assert upload.completed_at is not None and upload.md5 == hashlib.md5(content).hexdigest()


def test_a_file_is_sent_by_nginx(deployment: Deployment) -> None:
    content = os.urandom(MIB)
    deployment.files_dir.mkdir(exist_ok=True)
    (deployment.files_dir / "a program").write_bytes(content)
    StoredFile.objects.create(name="program", path="a program", nbytes=MIB, md5=hashlib.md5(content).hexdigest())
    assert ask(deployment, "/project/download/program") == (200, content)
    assert ask(deployment, "/project/download/program", headers={"Range": "bytes=1000000-"}) == (
        206,
        content[1_000_000:],
    )
    assert ask(deployment, "/stored/a%20program")[0] == 404


def test_the_statistics_are_sent_by_nginx_as_by_the_site(deployment: Deployment, settings: Settings) -> None:
    path = "/project/stats/user.gz"
    assert ask(deployment, path)[0] == 404
    settings.MEDIA_ROOT = deployment.files_dir
    export()
    heads = {}
    for method in ("GET", "HEAD"):  # nginx sends the file, and what the site says of it
        asked = urllib.request.Request(f"{deployment.url.rstrip('/')}{path}", method=method)
        asked.add_header("Accept-Encoding", "gzip")
        with urllib.request.urlopen(asked, timeout=20) as reply:
            names = ("ETag", "Content-Length", "Last-Modified", "Content-Type", "Cache-Control", "Content-Encoding")
            heads[method] = {name: reply.headers[name] for name in names}
    by_nginx, by_site = heads.values()
    assert by_nginx == by_site and by_nginx["ETag"].startswith('"') and by_nginx["Content-Encoding"] is None
    content = ask(deployment, path)[1]
    assert len(content) == int(by_nginx["Content-Length"])
    assert ask(deployment, path, headers={"If-None-Match": by_nginx["ETag"]})[0] == 304
    assert ask(deployment, path, headers={"Range": "bytes=10-"}) == (206, content[10:])
    assert b"<update_time>" in ask(deployment, "/project/stats/tables.xml")[1]


@pytest.mark.parametrize(
    ("path", "nbytes", "is_asked"),
    # The site itself reads the beginning of the first.
    [("/rpc.php", 3 * MIB, True), ("/lookup_account.php", MIB + 1, True), ("/lookup_account.php", 3 * MIB, False)],
)
def test_a_request_over_the_limit_is_refused_in_boincs_words(
    deployment: Deployment, path: str, nbytes: int, is_asked: bool
) -> None:
    before = nlines(deployment.clients, path)
    status, content = ask(deployment, path, bytes(nbytes))
    assert status == 200 and f"<error_num>{ERR_XML_PARSE}</error_num>" in content.decode()
    assert nlines(deployment.clients, path) == before + is_asked


def test_a_request_far_over_the_limit_is_refused_before_it_is_sent(deployment: Deployment) -> None:
    told = refusal("scheduler_reply", ERR_XML_PARSE, words("too_long")).body
    assert send(deployment, head("/project/scheduler", 2 * 1024**3)) == (200, told)


SLOW: Final = {
    "nothing": b"",
    "half a head": b"POST /rpc.php HTTP/1.1\r\nHost: 127.0",
    "no body": head("/rpc.php", 1000),
    "half a body": head("/project/scheduler", 1000) + b"<scheduler_request>",
    "no upload": head(ADDRESS, 1000),
    "half an upload": head(ADDRESS, 1000) + b"<data_server_request>\n",
    "a page": head("/account/login/", 1000),
    "nothing more": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


def check_all_is_answered(deployment: Deployment) -> None:
    """By the site: what nginx says of its own has status 200, too."""
    asked = [("/healthz", None), ("/account/login/", None), ("/rpc.php", b"<x>"), (ADDRESS, size_query("none_0"))]
    replies = [ask(deployment, path, body) for path, body in asked]
    assert [status for status, _ in replies] == [200] * 4
    assert [content for _, content in replies if words("try_later").encode() in content] == []


def test_slow_clients_stop_nobody_and_are_ended(deployment: Deployment) -> None:
    nsockets = 200
    with ExitStack() as stack:
        slow: dict[socket.socket, str] = {}
        for number in range(nsockets):
            kind = [*SLOW][number % len(SLOW)]
            # Of several addresses, as one has a limit.
            connection = stack.enter_context(connect(deployment, f"127.0.0.{2 + number % 4}"))
            connection.sendall(SLOW[kind])
            slow[connection] = kind
        check_all_is_answered(deployment)
        ended = [kind for kind in map(slow.get, select.select([*slow], [], [], 0)[0]) if kind != "nothing more"]
        assert not ended
        # Those of uploads are the event loop's: they may trickle, which nginx would put up with.
        replies = {kind: rest_of(connection) for connection, kind in trickling(slow)}
    assert set(replies) == set(SLOW)
    for kind in ("no upload", "half an upload"):
        assert b"<status>1</status>" in replies[kind]
    assert b"HTTP/1.1 200 OK" in replies["nothing more"]


def test_two_thousand_slow_clients_stop_nobody(
    nginx: str, django_db_setup: None, site_var_dir: Path, tmp_path: Path
) -> None:
    # Long enough that all are held, whatever this machine does meanwhile.
    times = {
        "client_header_timeout 10s;": "client_header_timeout 300s;",
        "client_body_timeout 20s;": "client_body_timeout 300s;",
    }
    kinds = [kind for kind in SLOW if kind != "nothing more"]
    with (
        files_enough(4 * NSLOW),
        Deployment(site_var_dir, tmp_path, times, CLIENT_BODY_SECS="300") as deployment,
        ExitStack() as stack,
    ):
        held = select.poll()
        for number in range(NSLOW):
            connection = stack.enter_context(connect(deployment, f"127.0.0.{2 + number % 40}"))
            connection.sendall(SLOW[kinds[number % len(kinds)]])
            held.register(connection, select.POLLIN | select.POLLHUP)
        check_all_is_answered(deployment)
        assert held.poll(0) == []


def trickling(slow: dict[socket.socket, str]) -> Iterator[tuple[socket.socket, str]]:
    """Each as its server ends it; a byte each second goes out on those that send an upload."""
    left = dict(slow)
    end = time.monotonic() + 10 * SECS
    while left:
        assert time.monotonic() < end, set(left.values())
        for connection in select.select([*left], [], [], 1)[0]:
            yield connection, left.pop(connection)
        for connection, kind in left.items():
            if kind == "half an upload":
                try:
                    connection.send(b"x")
                except ConnectionError:
                    continue  # its end is seen above


def test_an_address_has_a_limit_and_is_told_so_in_boincs_words(deployment: Deployment) -> None:
    told = refusal("data_server_reply", ERR_PROJECT_DOWN, words("try_later")).body
    with ExitStack() as stack:
        for number in range(PER_CUSTOMER):
            connection = stack.enter_context(connect(deployment))
            connection.sendall(head(ADDRESS, 1000, {ADDRESS_HEADER: f"2001:db8:10a:2::{number:x}"}))

        def is_refused() -> bool:
            return ask(deployment, ADDRESS, b"x", {ADDRESS_HEADER: "2001:db8:10a:2:ffff::1"}) == (200, told)

        wait_until(is_refused, "the network's limit to be reached", 5)
        for other in ("2001:db8:10a:3::1", "127.0.0.9"):
            assert ask(deployment, ADDRESS, size_query("none_0"), {ADDRESS_HEADER: other})[1] != told
        # Its pages have none.
        assert ask(deployment, "/healthz", headers={ADDRESS_HEADER: "2001:db8:10a:2::1"}) == (
            200,
            f"ok {__version__}\n".encode(),
        )


def test_an_address_has_few_large_requests_at_once(deployment: Deployment) -> None:
    told = refusal("scheduler_reply", ERR_PROJECT_DOWN, words("try_later")).body
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(connect(deployment, "127.0.0.10")).sendall(head("/project/scheduler", 10_000_000))
        large = head("/project/scheduler", 10_000_000)
        wait_until(lambda: send(deployment, large, "127.0.0.10") == (200, told), "the limit to be reached", 5)
        small = head("/project/scheduler", 3) + b"<x>"
        assert send(deployment, small, "127.0.0.10")[1] != told


def test_while_the_event_loop_is_down_clients_are_told_in_their_own_words(deployment: Deployment) -> None:
    with stopped(deployment.clients):
        for path, route in settings.CLIENT_PATHS.items():
            told = refusal(route.root, ERR_PROJECT_DOWN, words("try_later")).body
            assert ask(deployment, path, b"<x/>") == (200, told), path
            assert ask(deployment, path) == (200, told), path
        assert ask(deployment, "/account/login/")[0] == 200


@pytest.mark.parametrize("how", ["restarted", "killed"])
def test_during_a_restart_every_path_of_clients_answers_in_its_own_words(deployment: Deployment, how: str) -> None:
    over = threading.Event()

    def ask_on_and_on(number: int) -> set[tuple[str, int, str]]:
        """What was answered, but for what is right: path, status, and how the reply begins."""
        wrong = set()
        routes = itertools.cycle([*settings.CLIENT_PATHS.items()][number:] + [*settings.CLIENT_PATHS.items()][:number])
        while not over.is_set():
            path, route = next(routes)
            body = size_query("none_0") + b" " * 20_000 if path == ADDRESS else b"<x/>"
            status, content = ask(deployment, as_xml(path), body)
            if status != 200 or not content.startswith((f"<{route.root}>".encode(), b"<?xml", b"<error>")):
                wrong.add((path, status, content[:100].decode()))
            # All threads together ask a hundred times a second. Without a pause they would take the processors from
            # the site that restarts, and see no more of it.
            time.sleep(0.05)
        return wrong

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ask_on_and_on, number) for number in range(8)]
        try:
            for _ in range(2):
                if how == "killed":
                    deployment.clients.kill()
                else:
                    deployment.clients.stop()
                deployment.clients.start()
        finally:
            over.set()
        assert set().union(*[each.result() for each in asking]) == set()


def test_an_upload_that_a_restart_cuts_off_is_told_so_in_its_own_words(deployment: Deployment, studio: Host) -> None:
    told = refusal("data_server_reply", ERR_PROJECT_DOWN, words("try_later")).body
    make_task("t", studio, max_nbytes=3 * MIB)
    whole = upload_body("t_0", os.urandom(2 * MIB), max_nbytes=3 * MIB)
    with connect(deployment) as connection:
        connection.sendall(head(ADDRESS, len(whole)) + whole[:MIB])
        wait_until(lambda: Upload.objects.exists(), "the upload to begin", 20)
        deployment.clients.kill()
        try:
            connection.sendall(whole[MIB:])
            reply = HTTPResponse(connection)
            reply.begin()
            answer = reply.status, reply.read()
        finally:
            deployment.clients.start()
    assert answer == (200, told)


def test_while_the_pages_are_down_people_are_told_and_clients_answered(deployment: Deployment) -> None:
    with stopped(deployment.web):
        status, content = ask(deployment, "/account/login/")
        assert status == 503 and b"being restarted" in content
        assert b"acct_mgr_reply" in ask(deployment, "/rpc.php", b"<x>")[1]


@pytest.mark.parametrize(("path", "nbytes"), [("/api/v1/hosts/", 3 * MIB), ("/api/v1/batches/", 18 * MIB)])
def test_a_body_that_nginx_refuses_is_a_problem_to_programs(deployment: Deployment, path: str, nbytes: int) -> None:
    before = nlines(deployment.web, path)
    assert_is_problem(deployment, head(path, nbytes), HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    assert nlines(deployment.web, path) == before


def test_while_the_site_is_down_programs_are_told_so_as_a_problem(deployment: Deployment) -> None:
    with stopped(deployment.web):
        for text in (head("/api/v1/"), head("/api/v1/batches/", 0), head("/api/none/")):
            headers = assert_is_problem(deployment, text, HTTPStatus.SERVICE_UNAVAILABLE)
            assert headers["Retry-After"] == "60"


def assert_is_problem(deployment: Deployment, text: bytes, status: HTTPStatus) -> Message:
    """The head fields of an answer that is problem details (RFC 9457), with the members that the site's own have."""
    with connect(deployment) as connection:
        connection.sendall(text)
        reply = HTTPResponse(connection)
        reply.begin()
        problem = json.loads(reply.read())
    assert (reply.status, reply.headers["Content-Type"]) == (status, problems.CONTENT_TYPE)
    assert problem == json.loads(problems.problem_reply(status, problem["detail"]).content)
    return reply.headers


def test_a_real_client_hears_of_a_restart_and_attaches_after_it(
    deployment: Deployment, boinc_client: BoincClient
) -> None:
    email, password = "dora@example.org", "seven green boats"
    assert "account key" in boinc_client.command("--create_account", deployment.url, email, password, "Dora")
    with stopped(deployment.clients):
        assert "project down" in boinc_client.attach_manager(deployment.url, email, password)
        assert words("try_later") in boinc_client.log()
    boinc_client.attach_manager(deployment.url, email, password)
    wait_until(lambda: Host.objects.filter(owner__email=email).exists(), "the first contact", 20)


INNER: Final = b"GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def _probe(*lines: bytes, body: bytes = INNER, method: bytes = b"POST") -> Callable[[bytes], bytes]:
    def request(path: bytes) -> bytes:
        headers = b"".join(lines)
        first = b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" % (method, path)
        return first + headers + b"\r\n" + body

    return request


LENGTH: Final = b"Content-Length: %d\r\n" % len(INNER)
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
LAST: Final = b"0\r\n\r\n"
PROBES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "length, then chunked": _probe(b"Content-Length: %d\r\n" % len(LAST + INNER), CHUNKED, body=LAST + INNER),
    "chunked, then length": _probe(CHUNKED, b"Content-Length: 5\r\n", body=LAST + INNER),
    "chunked alone": _probe(CHUNKED, body=LAST + INNER),
    "two lengths": _probe(b"Content-Length: 0\r\n", LENGTH),
    "two lengths, the longer first": _probe(LENGTH, b"Content-Length: 0\r\n"),
    "the same length twice": _probe(LENGTH, LENGTH),
    "a list of lengths": _probe(b"Content-Length: 0, %d\r\n" % len(INNER)),
    "a signed length": _probe(b"Content-Length: +0\r\n"),
    "a negative length": _probe(b"Content-Length: -1\r\n"),
    "an empty length": _probe(b"Content-Length:\r\n"),
    "a hexadecimal length": _probe(b"Content-Length: 0x0\r\n"),
    "a space before the colon": _probe(b"Transfer-Encoding : chunked\r\n", LENGTH, body=LAST + INNER),
    "a space before the length's colon": _probe(b"Content-Length : 0\r\n", LENGTH),
    "a folded line": _probe(b"X-A: b\r\n Transfer-Encoding: chunked\r\n", LENGTH, body=LAST + INNER),
    "a folded length": _probe(b"Content-Length:\r\n %d\r\n" % len(INNER)),
    "a folded first line": _probe(b" Content-Length: 0\r\n", LENGTH),
    "a bare line feed": _probe(b"X-A: b\n", CHUNKED, LENGTH, body=LAST + INNER),
    "a bare carriage return": _probe(b"X-A: b\rTransfer-Encoding: chunked\r\n", LENGTH, body=LAST + INNER),
    "a NUL": _probe(b"X-A: b\x00\r\n", LENGTH),
    "another coding": _probe(b"Transfer-Encoding: xchunked\r\n", LENGTH),
    "two codings": _probe(b"Transfer-Encoding: gzip, chunked\r\n", body=LAST + INNER),
    "a vertical tab": _probe(b"Transfer-Encoding:\x0bchunked\r\n", LENGTH, body=LAST + INNER),
    "underscores": _probe(b"Transfer_Encoding: chunked\r\n", b"Content_Length: 0\r\n", LENGTH),
    "an endless chunk": _probe(CHUNKED, body=b"ffffffffffffffffff\r\n" + INNER),
    "a chunk longer than it says": _probe(CHUNKED, body=b"1\r\nxx\r\n" + LAST + INNER),
    "chunks with line feeds": _probe(CHUNKED, body=b"1\nx\n0\n\n" + INNER),
    "a chunk's extension with a line feed": _probe(CHUNKED, body=b"1;\nx\r\n0\r\n\r\n" + INNER),
    "a trailer": _probe(CHUNKED, body=b"0\r\nContent-Length: 5\r\n\r\n" + INNER),
    "a body that nobody expects": _probe(LENGTH, method=b"GET"),
    "a body of a HEAD": _probe(LENGTH, method=b"HEAD"),
    "a body after no length": _probe(),
    "another protocol": _probe(
        b"Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", LENGTH
    ),
    "a name for the connection": _probe(b"Connection: close, Content-Length\r\n", LENGTH),
    "a wait for leave": _probe(b"Expect: 100-continue\r\n", LENGTH),
    "two versions": lambda path: b"GET %s HTTP/1.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n" % (path, LENGTH) + INNER,
    "an old version": lambda path: b"POST %s HTTP/1.0\r\n%s%s\r\n" % (path, CHUNKED, LENGTH) + LAST + INNER,
    "no version": lambda path: b"GET %s\r\n" % path + INNER,
    "a line feed in the address": lambda path: (
        b"GET %s%%20HTTP/1.1%%0d%%0a%%0d%%0aGET%%20/smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path
    ),
}


@pytest.mark.parametrize("path", [b"/rpc.php", ADDRESS.encode(), b"/healthz", b"/unknown/"])
def test_no_request_hides_another(deployment: Deployment, path: bytes) -> None:
    before = nrequests(deployment)
    for name, probe in PROBES.items():
        with connect(deployment) as connection:
            connection.sendall(probe(path))
            reply = rest_of(connection)
        assert reply.count(b"HTTP/1.1 ") - reply.count(b"HTTP/1.1 100 ") <= 1, name
        # Who asks next on the same connections to the site is answered rightly.
        assert b"acct_mgr_reply" in ask(deployment, "/rpc.php", b"<x>")[1], name
        assert ask(deployment, "/account/login/")[0] == 200, name
    assert nrequests(deployment) - before <= 3 * len(PROBES)
    for log in (deployment.clients.log(), deployment.web.log()):
        assert '"path":"/smuggled"' not in log
    assert nlines(deployment.clients, "/rpc.php") >= len(PROBES) <= nlines(deployment.web, "/account/login/")


def nrequests(deployment: Deployment) -> int:
    """How many requests both services have logged."""
    return sum(program.log().count('"event":"request"') for program in (deployment.clients, deployment.web))
