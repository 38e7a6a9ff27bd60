"""The smallest real BOINC project: what the end-to-end tests let a real client compute for.

A loopback web server with a master page, a scheduler, downloads and uploads (BOINC protocol: project, files,
jobs on the client). Its one application is a program without BOINC's library that runs for a given number of
seconds and counts primes in the first half of the first second: clients report how long it ran, and other tests need
the processors. Uploads are checked by certificate, size and MD5, and the count itself by a sieve.

One instance per test, driven through its methods; everything that a client asked for is kept to be looked at.
"""

import hashlib
import re
import secrets
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from portal.wire import signing
from tests.support.stub_server import StubServer

APP_NAME = "primes"
VERSION = 100
FLOPS = 1_000_000_000
MAX_OUTPUT_BYTES = 10_000
MAX_BODY_BYTES = 1_000_000
REQUEST_DELAY_SECS = 2

# Inputs and outputs are copied to and from the slot; without "boinc_finish_called" the client would start the
# program again (BOINC protocol, what a job program must do).
PROGRAM = """\
#!{python} -IS
import sys, time
source, target = sys.argv[1:]
begin = time.monotonic()
limit, primes = 2, 0
while time.monotonic() < begin + 0.5:
    for number in range(limit, limit + 1000):
        divisor = 2
        while divisor * divisor <= number and number % divisor:
            divisor += 1
        primes += divisor * divisor > number
    limit += 1000
time.sleep(max(0, begin + float(open(source).read()) - time.monotonic()))
open(target, "w").write(f"{{primes}} primes below {{limit}}\\n")
open("boinc_finish_called", "w").write("0\\n")
"""

# The same without the work: it only takes its time.
SLEEPER = """\
#!{python} -IS
import sys, time
source, target = sys.argv[1:]
time.sleep(float(open(source).read()))
open(target, "w").write("slept\\n")
open("boinc_finish_called", "w").write("0\\n")
"""


@dataclass(frozen=True)
class Report:
    """What the client says of a finished job in a scheduler request; state 5 is "done and uploaded"."""

    name: str
    state: int
    exit_status: int
    elapsed_secs: float


@dataclass
class Job:
    """One job: its name on the wire, how long it runs, and what came back."""

    name: str
    secs: float
    sent: bool = False
    output: bytes | None = None
    report: Report | None = None

    @property
    def input_bytes(self) -> bytes:
        return f"{self.secs:g}\n".encode()

    @property
    def input_name(self) -> str:
        return f"{self.name}_in"

    @property
    def output_name(self) -> str:
        return f"{self.name}_out"

    @property
    def certificate_text(self) -> bytes:
        """What the upload key signs: the file's name and its largest size."""
        return f"<name>{self.output_name}</name><max_nbytes>{MAX_OUTPUT_BYTES}</max_nbytes>".encode()

    def succeeded(self) -> bool:
        """Whether the client reported success and the uploaded count is the true number of primes."""
        if self.report is None or self.output is None:
            return False
        match = re.fullmatch(rb"(\d+) primes below (\d+)\n", self.output)
        right = match is not None and int(match[1]) == count_primes(int(match[2]))
        return right and (self.report.state, self.report.exit_status) == (5, 0)


def count_primes(limit: int) -> int:
    """Return how many primes are below `limit`, by the sieve of Eratosthenes."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve)


def _first(text: str, tag: str) -> str:
    """The text of the first element of that name, stripped; empty when there is none."""
    match = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return match[1].strip() if match else ""


@dataclass
class MiniProject(StubServer):
    """A running project server; use it as a context manager.

    `job_secs` gives one job for each number, which `program` carries out. A client that names another key than
    `account_key` gets no work. With a `share`, that is the volunteer's for this project. `stated_url`: the master URL
    that it says to have; it can be changed while the project runs.
    """

    name: str = "Prime count"
    job_secs: tuple[float, ...] = (25.0,)
    program: str = PROGRAM
    share: float = 0
    account_key: str = field(default_factory=lambda: secrets.token_hex(16))
    stated_url: str = ""
    scheduler_requests: list[str] = field(default_factory=list)
    # The login and the hash of the password of its one account; empty: it answers no web RPC
    login: tuple[str, str] = ("", "")
    weak_key: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._code_sign_key = signing.generate_key()
        self._upload_key = signing.generate_key()
        # The client's cache is by name and the interpreter's real path has no blank, unlike a checkout's may.
        self._program = self.program.format(python=Path(sys.executable).resolve()).encode()
        self.jobs = [Job(f"primes_{number}", secs) for number, secs in enumerate(self.job_secs)]
        server = _Server(self)
        self.url = f"http://127.0.0.1:{server.server_port}/"
        self.stated_url = self.stated_url or self.url
        self.serve(server)

    @property
    def program_name(self) -> str:
        return f"{APP_NAME}_{VERSION}"

    def downloads(self) -> dict[str, bytes]:
        """Every file that a client may fetch, by name."""
        return {self.program_name: self._program} | {job.input_name: job.input_bytes for job in self.jobs}

    def master_page(self) -> str:
        """The project's front page; clients look for its comment, at the beginning of a line of its own."""
        scheduler = f"<!-- <scheduler>{self.url}scheduler</scheduler> -->"
        return f"<!DOCTYPE html>\n<title>{self.name}</title>\n{scheduler}\n"

    def web_rpc_reply(self, page: str, query: Mapping[str, str]) -> str | None:
        """As html/user/ of BOINC's servers answers; None: there is no such page."""
        if not self.login[0]:
            return None
        refusal = "<error>\n<error_num>{}</error_num>\n<error_msg>{}</error_msg>\n</error>\n"
        if page == "/lookup_account.php":
            if query.get("email_addr") != self.login[0]:
                return refusal.format(-136, "No account found")
            if query.get("passwd_hash") != self.login[1]:
                return refusal.format(-206, "Invalid password")
            return f"<account_out>\n<authenticator>{self.account_key}</authenticator>\n</account_out>\n"
        if page == "/am_get_info.php":
            if query.get("account_key") not in (self.account_key, self.weak_key):
                return refusal.format(-136, "not found")
            return (
                "<am_get_info_reply>\n<success/>\n<id>1</id>\n<name>Volunteer</name>\n<country>None</country>\n"
                f"<weak_auth>{self.weak_key}</weak_auth>\n</am_get_info_reply>\n"
            )
        if page == "/show_user.php":
            return "<user>\n<id>1</id>\n<name>Volunteer</name>\n<total_credit>12.5</total_credit>\n</user>\n"
        return None

    def scheduler_reply(self, request: str) -> str:
        """Take reports in, acknowledge each of them, and send every job that has not been sent."""
        with self._lock:
            self.scheduler_requests.append(request)
            if _first(request, "authenticator") not in (self.account_key, self.weak_key or self.account_key):
                refusal = '<message priority="notice">Invalid or missing account key</message>\n'
                return self._reply(refusal)
            parts = ["<hostid>1</hostid>\n"] if _first(request, "hostid") == "0" else []
            if self.share:
                parts.append(_preferences(self.share))
            parts += [self._take_report(text) for text in re.findall(r"<result>.*?</result>", request, re.DOTALL)]
            if "<code_sign_key>" not in request:
                key_text = signing.public_key_text(self._code_sign_key)
                parts.append(f"<code_sign_key>\n{key_text}</code_sign_key>\n")
            waiting = [job for job in self.jobs if not job.sent]
            if float(_first(request, "cpu_req_secs") or 0) > 0 and waiting:
                platform = _first(request, "platform_name")
                parts += [self._app(platform), *(self._send(job, platform) for job in waiting)]
            return self._reply("".join(parts))

    def upload_reply(self, body: bytes) -> str:
        """Take one whole output file in; status 0 is "done", -1 "refused for good"."""
        head, _, data = body.partition(b"<data>\n")
        text = head.decode("latin-1")
        if "<get_file_size>" in text:
            return _upload_status(0, "<file_size>0</file_size>")
        with self._lock:
            job = next((job for job in self.jobs if job.output_name == _first(text, "name")), None)
            if job is None:
                return _upload_status(-1, "<message>no such file</message>")
            certificate = _first(text, "xml_signature")
            if not signing.verify(job.certificate_text, certificate, self._upload_key.public_key()):
                return _upload_status(-1, "<message>invalid certificate</message>")
            whole = len(data) == int(_first(text, "nbytes")) <= MAX_OUTPUT_BYTES
            if not whole or hashlib.md5(data).hexdigest() != _first(text, "md5_cksum"):
                return _upload_status(-1, "<message>wrong size or MD5</message>")
            job.output = data
        return _upload_status(0)

    def _reply(self, parts: str) -> str:
        return (
            "<scheduler_reply>\n<scheduler_version>720</scheduler_version>\n<dont_use_dcf/>\n"
            f"<master_url>{self.stated_url}</master_url>\n<request_delay>{REQUEST_DELAY_SECS}</request_delay>\n"
            f"<project_name>{self.name}</project_name>\n<userid>1</userid>\n<user_name>Volunteer</user_name>\n"
            f"{parts}</scheduler_reply>\n"
        )

    def _take_report(self, text: str) -> str:
        name = _first(text, "name")
        elapsed = float(_first(text, "final_elapsed_time"))
        for job in self.jobs:
            if job.name == name:
                job.report = Report(name, int(_first(text, "state")), int(_first(text, "exit_status")), elapsed)
        return f"<result_ack>\n<name>{name}</name>\n</result_ack>\n"

    def _app(self, platform: str) -> str:
        return (
            f"<app>\n<name>{APP_NAME}</name>\n<user_friendly_name>{self.name}</user_friendly_name>\n</app>\n"
            f"<file_info>\n<name>{self.program_name}</name>\n<url>{self.url}download/{self.program_name}</url>\n"
            "<executable/>\n"
            f"<file_signature>\n{signing.sign(self._program, self._code_sign_key)}</file_signature>\n"
            f"<md5_cksum>{hashlib.md5(self._program).hexdigest()}</md5_cksum>\n"
            f"<nbytes>{len(self._program)}</nbytes>\n</file_info>\n"
            f"<app_version>\n<app_name>{APP_NAME}</app_name>\n<version_num>{VERSION}</version_num>\n"
            f"<platform>{platform}</platform>\n<plan_class></plan_class>\n<avg_ncpus>1</avg_ncpus>\n"
            f"<flops>{FLOPS}</flops>\n<file_ref>\n<file_name>{self.program_name}</file_name>\n<main_program/>\n"
            "</file_ref>\n</app_version>\n"
        )

    def _send(self, job: Job, platform: str) -> str:
        job.sent = True
        data = job.input_bytes
        return (
            f"<file_info>\n<name>{job.input_name}</name>\n<url>{self.url}download/{job.input_name}</url>\n"
            f"<md5_cksum>{hashlib.md5(data).hexdigest()}</md5_cksum>\n<nbytes>{len(data)}</nbytes>\n</file_info>\n"
            f"<workunit>\n<name>{job.name}_wu</name>\n<app_name>{APP_NAME}</app_name>\n"
            f"<version_num>{VERSION}</version_num>\n<command_line>in out</command_line>\n"
            f"<rsc_fpops_est>{job.secs * FLOPS:g}</rsc_fpops_est>\n<rsc_fpops_bound>1e13</rsc_fpops_bound>\n"
            "<rsc_memory_bound>1e8</rsc_memory_bound>\n<rsc_disk_bound>1e7</rsc_disk_bound>\n"
            f"{_file_ref(job.input_name, 'in')}</workunit>\n"
            f"<file_info>\n<name>{job.output_name}</name>\n<generated_locally/>\n<upload_when_present/>\n"
            f"<max_nbytes>{MAX_OUTPUT_BYTES}</max_nbytes>\n<url>{self.url}file_upload_handler</url>\n"
            f"<xml_signature>\n{signing.sign(job.certificate_text, self._upload_key)}</xml_signature>\n"
            f"</file_info>\n<result>\n<name>{job.name}</name>\n<wu_name>{job.name}_wu</wu_name>\n"
            f"<report_deadline>{DEADLINE}</report_deadline>\n<platform>{platform}</platform>\n"
            f"<version_num>{VERSION}</version_num>\n<plan_class></plan_class>\n"
            f"{_file_ref(job.output_name, 'out')}</result>\n"
        )


DEADLINE = 4_000_000_000  # the year 2096


def _file_ref(file_name: str, open_name: str) -> str:
    return (
        f"<file_ref>\n<file_name>{file_name}</file_name>\n<open_name>{open_name}</open_name>\n<copy_file/>\n"
        "</file_ref>\n"
    )


def _preferences(share: float) -> str:
    return (
        f"<project_preferences>\n<resource_share>{share:g}</resource_share>\n<project_specific>\n</project_specific>\n"
        "</project_preferences>\n"
    )


def _upload_status(status: int, more: str = "") -> str:
    return f"<data_server_reply>\n<status>{status}</status>\n{more}\n</data_server_reply>\n"


class _Server(ThreadingHTTPServer):
    """The project's web server on a free loopback port, one thread per connection."""

    daemon_threads = True

    def __init__(self, project: MiniProject) -> None:
        self.project = project
        super().__init__(("127.0.0.1", 0), _Handler)


def _parts(path: str) -> tuple[str, dict[str, str]]:
    address = urlsplit(path)
    return address.path, dict(parse_qsl(address.query))


class _Handler(BaseHTTPRequestHandler):
    """HTTP in, a method of the project called, a reply out."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        project = self.server.project
        if self.path == "/":
            self._answer(project.master_page().encode())
        elif (name := self.path.removeprefix("/download/")) in project.downloads():
            self._answer(project.downloads()[name])
        elif (answer := project.web_rpc_reply(*_parts(self.path))) is not None:
            self._answer(answer.encode())
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        project = self.server.project
        length = int(self.headers["Content-Length"])
        if length > MAX_BODY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        if self.path == "/scheduler":
            self._answer(project.scheduler_reply(body.decode("utf-8", "replace")).encode())
        elif self.path == "/file_upload_handler":
            self._answer(project.upload_reply(body).encode())
        else:
            self.send_error(404)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean; `scheduler_requests` and `jobs` tell what happened."""
