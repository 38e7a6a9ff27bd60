"""The fetcher, against servers of real sockets that behave badly."""

from __future__ import annotations

import gzip
import io
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from portal.fetch.errors import AddressRefused, FetchError, NotStored, StatusError, TimeIsUp, TooLarge
from portal.fetch.fetcher import Download, FetchLimits, Version, fetch
from tests.support.certificates import make_certificate, server_context
from tests.support.raw_server import RawServer, by_path, path_of, reply

HEAD = b"HTTP/1.1 200 OK\r\n"
# Short, so that the tests are: nothing here depends on how long it takes.
SOON = FetchLimits(total_secs=0.5)
NO_VERSION = Version()


@pytest.fixture(autouse=True)
def _this_machine_may_be_asked(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[str]]]:
    """A name server of one's own: the addresses of each name."""
    known: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def look_up(host: str, port: int, **options: Any) -> Any:
        if host not in known:
            return real(host, port, **options)
        return [row for address in known[host] for row in real(address, port, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield known


def sending(*parts: bytes) -> Callable[[socket.socket, bytes], None]:
    def answer(connection: socket.socket, _request: bytes) -> None:
        for part in parts:
            connection.sendall(part)

    return answer


def test_a_full_disk_is_not_blamed_on_the_server() -> None:
    no_room = pytest.raises(NotStored, match="could not be stored here: No space left on device")
    with RawServer(sending(reply(b"hello"))) as server, Path("/dev/full").open("wb", buffering=0) as full, no_room:
        fetch(server.url, into=full)


def test_a_document_is_fetched_by_whoever_says_who_it_is() -> None:
    with RawServer(sending(reply(b"hello", 'ETag: "5"'))) as server:
        found = fetch(f"{server.url}a/b.xml?x=1")
    assert (found.body, found.nbytes, found.version, found.is_unchanged) == (b"hello", 5, Version('"5"'), False)
    head = server.requests[0].decode()
    assert head.startswith("GET /a/b.xml?x=1 HTTP/1.1\r\n") and "User-Agent: Cobblestone (+http" in head
    assert f"Host: 127.0.0.1:{server.port}\r\n" in head
    assert "cookie" not in head.lower() and "authorization" not in head.lower()


def test_a_document_that_is_compressed_or_in_chunks_is_unpacked() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (packed[:9], packed[9:])) + b"0\r\n\r\n"
    with RawServer(sending(HEAD, b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n", chunked)) as server:
        assert fetch(server.url).body == b"one two"


@pytest.mark.parametrize("nbytes", [0, 1, 65_535, 65_536, 65_537, 131_072, 196_608, 1_000_000])
def test_no_byte_is_lost_at_the_ends_of_pieces(nbytes: int) -> None:
    with RawServer(sending(reply(gzip.compress(bytes(nbytes)), "Content-Encoding: gzip"))) as server:
        assert fetch(server.url).body == bytes(nbytes)


def test_a_version_that_cannot_be_sent_back_is_not_kept() -> None:
    for header in ("ETag: a\0b", "ETag: \x85", f"ETag: {'x' * 300}"):
        with RawServer(sending(reply(b"x", header))) as server:
            assert fetch(server.url).version == Version()


def test_a_large_document_goes_to_a_file(tmp_path: Path) -> None:
    body = bytes(range(256)) * 4096
    with RawServer(sending(reply(body))) as server, (tmp_path / "f").open("wb") as file:
        found = fetch(server.url, into=file)
    assert (found.body, found.nbytes) == (b"", len(body))
    assert (tmp_path / "f").read_bytes() == body


def test_what_did_not_change_is_not_sent_again() -> None:
    known = Version('"5"', "Mon, 01 Jan 2024 00:00:00 GMT")
    with RawServer(sending(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")) as server:
        found = fetch(server.url, known=known)
    assert found.is_unchanged and found.version == known and found.body == b""
    head = server.requests[0].decode()
    assert 'If-None-Match: "5"' in head and f"If-Modified-Since: {known.last_modified}" in head


def test_data_is_posted() -> None:
    with RawServer(sending(reply(b"ok"))) as server:
        assert fetch(server.url, data=b"<a/>").body == b"ok"
    assert server.requests[0].startswith(b"POST / ") and server.requests[0].endswith(b"\r\n\r\n<a/>")


def test_an_address_of_ipv6_is_asked(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("::1")]
    with RawServer(sending(reply(b"six")), host="::1") as server:
        assert fetch(server.url).body == b"six"


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oh", "204 No Content", "302 Found", "304 Not Modified"])
def test_any_other_status_is_an_error(status: str) -> None:
    with RawServer(sending(reply(b"x", status=status))) as server, pytest.raises(StatusError) as caught:
        fetch(server.url)
    assert str(caught.value.status) == status[:3]


# --- addresses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//127.0.0.1/",
        "127.0.0.1",
        "http://",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:99999/",
        "http://[::1/",
        "http://a b/",
        f"http://127.0.0.1/{'x' * 5000}",
    ],
)
def test_addresses_of_another_kind_are_refused(url: str) -> None:
    with pytest.raises((AddressRefused, FetchError)) as caught:
        fetch(url, limits=SOON)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1"]
)
def test_no_private_address_is_asked_in_any_spelling(host: str, settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = []
    with RawServer(sending(reply(b"inside"))) as server:
        with pytest.raises(AddressRefused, match="not public and not in FETCH_ALLOWED_NETWORKS"):
            fetch(f"http://{host}:{server.port}/")
        assert server.requests == []


def test_a_name_with_a_public_and_a_private_address_is_refused(names: dict[str, list[str]]) -> None:
    names["both.test"] = ["8.8.8.8", "10.0.0.1"]
    with pytest.raises(AddressRefused, match=r"both.test: has the address 10\.0\.0\.1"):
        fetch("http://both.test/")


def test_a_name_that_changes_its_address_after_the_check_is_asked_where_it_was(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """The check is of the address that is connected to: the name is looked up once."""
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.2")]
    answers = iter(["127.0.0.2", "127.0.0.1"])
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **options: real(next(answers), port, **options))
    with RawServer(sending(reply(b"as checked")), host="127.0.0.2") as server:
        assert fetch(f"http://rebind.test:{server.port}/").body == b"as checked"
        assert f"Host: rebind.test:{server.port}".encode() in server.requests[0]
    assert next(answers) == "127.0.0.1", "nobody asked for the second answer"


def test_a_redirect_to_a_private_address_is_refused(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.2")]
    with RawServer(sending(reply(b"inside"))) as inside:
        to = f"Location: {inside.url}"
        with RawServer(sending(reply(b"", to, status="302 Found")), host="127.0.0.2") as outside:
            with pytest.raises(AddressRefused, match=r"127\.0\.0\.1: has"):
                fetch(outside.url)
            assert len(outside.requests) == 1 and inside.requests == []


def test_a_redirect_to_another_scheme_or_a_login_is_refused() -> None:
    for to in ("file:///etc/passwd", "http://user:x@127.0.0.1/", "http://[", "//[::1", "http://a b/"):
        with (
            RawServer(sending(reply(b"", f"Location: {to}", status="301 Moved"))) as server,
            pytest.raises(AddressRefused),
        ):
            fetch(server.url)


def test_a_few_redirects_are_followed_and_no_more() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        step = int(path_of(request)[1:])
        connection.sendall(reply(b"there") if step == 3 else reply(b"", f"Location: /{step + 1}", status="302 Found"))

    with RawServer(answer) as server:
        found = fetch(f"{server.url}0")
        assert (found.body, found.url) == (b"there", f"{server.url}3")
        with pytest.raises(FetchError, match="redirects more than 2 times"):
            fetch(f"{server.url}0", limits=FetchLimits(redirects=2))
        assert len(server.requests) == 7


def test_data_is_never_redirected() -> None:
    with RawServer(sending(reply(b"", "Location: /else", status="307 Else"))) as server:
        with pytest.raises(FetchError, match="redirects a POST request"):
            fetch(server.url, data=b"secret")
        assert len(server.requests) == 1


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    with RawServer(sending(reply(b"direct"))) as server:
        assert fetch(server.url).body == b"direct"


def test_a_name_without_an_address_is_an_error(names: dict[str, list[str]]) -> None:
    names["none.test"] = []
    with pytest.raises(FetchError, match="no connection could be made"):
        fetch("http://none.test/")
    with pytest.raises(FetchError, match="the host name has no address"):
        fetch(f"http://{'x' * 70}.test/")


def test_an_address_of_a_kind_that_this_machine_does_not_have_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """As where the kernel has no IPv6: name servers name such addresses all the same."""
    with RawServer(sending(reply(b"by the other"))) as server:
        there = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))
        # A number of no kind of address: the kernel refuses it as it does IPv6 where it has none.
        answers = [(9999, *there[1:]), there]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **options: answers)
        assert fetch(f"http://both.test:{server.port}/").body == b"by the other"
        answers.pop()
        with pytest.raises(FetchError, match="no connection could be made"):
            fetch(f"http://both.test:{server.port}/")


def test_a_port_where_nobody_answers_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(FetchError, match="no connection could be made"):
        fetch(f"http://127.0.0.1:{port}/")


# --- time ---------------------------------------------------------------------------------------------


def test_a_server_that_never_answers_ends_at_the_limit() -> None:
    with RawServer(lambda connection, request: server.is_over.wait(60)) as server:
        with pytest.raises(TimeIsUp, match=r"127.0.0.1: sent nothing for longer than the limit of 0.2 s"):
            fetch(server.url, limits=FetchLimits(read_secs=0.2))
        with pytest.raises(TimeIsUp, match=r"took longer than the limit of 0.5 s"):
            fetch(server.url, limits=SOON)


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\nX-A: ", HEAD + b"\r\n"])
def test_a_server_that_sends_a_byte_now_and_then_ends_at_the_limit(before: bytes) -> None:
    """No read of it takes long, whether of the status, of the headers or of the body."""

    def drip(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(before)
        # Often enough that each read has its byte within its own limit.
        while not server.is_over.wait(0.02):
            connection.sendall(b"H")

    with RawServer(drip) as server, pytest.raises(TimeIsUp, match=r"took longer than the limit of 0.5 s"):
        fetch(server.url, limits=SOON)


def test_an_encrypted_connection_that_never_begins_ends_at_the_limit() -> None:
    with (
        RawServer(lambda connection, request: server.is_over.wait(60)) as server,
        pytest.raises(TimeIsUp, match=r"took longer than the limit of 0.5 s"),
    ):
        # The server waits for the end of a request's head, which never comes.
        fetch(server.url.replace("http:", "https:"), limits=SOON)


# --- size ---------------------------------------------------------------------------------------------


def test_a_body_without_end_is_refused() -> None:
    def pour(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(HEAD + b"\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    file = io.BytesIO()
    with (
        RawServer(pour) as server,
        pytest.raises(TooLarge, match=r"127.0.0.1: transferred more than the limit of 1,048,576 bytes"),
    ):
        fetch(server.url, into=file)
    assert file.tell() <= 1 << 20


@pytest.mark.parametrize("level", [1, 9])
def test_a_small_answer_that_stands_for_gigabytes_is_refused_before_it_is_unpacked(level: int) -> None:
    packer = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    # 64 MiB of zeros in about 64 or 280 kB
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    file = io.BytesIO()
    assert len(bomb) < 400_000
    with (
        RawServer(sending(reply(bomb, "Content-Encoding: gzip"))) as server,
        pytest.raises(TooLarge, match="sent more than the limit of 2,097,152 bytes"),
    ):
        fetch(server.url, into=file)
    assert file.tell() <= 2 << 20


def test_an_answer_compressed_twice_is_refused() -> None:
    body = gzip.compress(gzip.compress(b"x"))
    with (
        RawServer(sending(reply(body, "Content-Encoding: gzip, gzip"))) as server,
        pytest.raises(FetchError, match="compressed with a method that was not requested"),
    ):
        fetch(server.url)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (HEAD + b"Content-Length: 10\r\n\r\nshort", "broke"),
        (reply(gzip.compress(b"x" * 1000)[:-9], "Content-Encoding: gzip"), "cut off"),
        (reply(b"no gzip", "Content-Encoding: gzip"), "compressed answer is damaged"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "broke"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        (HEAD + b"X: y\r\n" * 200 + b"\r\n", "not HTTP"),
        (HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n", "not HTTP"),
        (b"", "broke"),
    ],
)
def test_an_answer_that_is_cut_off_or_no_http_is_an_error(raw: bytes, words: str) -> None:
    with RawServer(sending(raw)) as server, pytest.raises(FetchError, match=words):
        fetch(server.url)


# --- encryption ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    return server_context(certificate)


def test_a_server_with_the_certificate_of_its_name_is_asked(
    tls: ssl.SSLContext, certificate: Path, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    names["good.test"] = ["127.0.0.1"]
    with RawServer(by_path(x=reply(b"encrypted")), tls=tls) as server:
        assert fetch(f"https://good.test:{server.port}/x").body == b"encrypted"


@pytest.mark.parametrize(("host", "is_trusted"), [("good.test", False), ("other.test", True), ("127.0.0.1", True)])
def test_a_certificate_that_is_unknown_or_of_another_name_is_refused(
    host: str,
    is_trusted: bool,
    tls: ssl.SSLContext,
    certificate: Path,
    names: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    names[host] = ["127.0.0.1"]
    with RawServer(by_path(x=reply(b"encrypted")), tls=tls) as server:
        with pytest.raises(FetchError, match="its certificate is not valid"):
            fetch(f"https://{host}:{server.port}/x")
        assert server.requests == []


def test_a_redirect_from_https_to_http_is_refused(
    tls: ssl.SSLContext, certificate: Path, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    names["good.test"] = ["127.0.0.1"]
    with (
        RawServer(sending(reply(b"", "Location: http://good.test/", status="302 Found")), tls=tls) as server,
        pytest.raises(AddressRefused, match="redirects from https to http"),
    ):
        fetch(f"https://good.test:{server.port}/x")


# --- what is said -------------------------------------------------------------------------------------


def test_no_error_repeats_the_path_or_the_query(settings: Settings) -> None:
    with (
        RawServer(sending(reply(b"", status="500 Oh"))) as server,
        pytest.raises(FetchError) as caught,
    ):
        fetch(f"{server.url}lookup_account.php?passwd_hash=c5b3b620")
    assert str(caught.value) == "127.0.0.1: answered with status 500"


def test_an_answer_with_a_broken_header_brings_no_address_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """urllib3 would log the whole address, with the account key in it."""
    with RawServer(sending(HEAD + b"No header\r\n\r\nx")) as server:
        assert fetch(f"{server.url}am_get_info.php?account_key=7_secret").body == b"x"
    assert caplog.text == ""


# --- downloads that go on -------------------------------------------------------------------------------


def download(url: str, path: Path, version: Version = NO_VERSION, limits: FetchLimits = SOON) -> list[Version]:
    """Fetch into a file, going on behind what it has; the versions that were begun."""
    begun: list[Version] = []
    with path.open("r+b") as file:
        into = Download(file, file.seek(0, io.SEEK_END), version, begun.append)
        fetch(url, into=into, limits=limits)
    return begun


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of which three bytes are there."""
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    return path


def test_a_download_goes_on_behind_what_is_there(file: Path) -> None:
    answer = reply(b"def", 'ETag: "5"', "Content-Range: bytes 3-5/6", status="206 Partial Content")
    with RawServer(sending(answer)) as server:
        assert download(server.url, file, Version('"5"')) == []
    head = server.requests[0].decode()
    assert 'Range: bytes=3-\r\nIf-Range: "5"\r\n' in head and "Accept-Encoding: identity" in head
    assert file.read_bytes() == b"abcdef"


@pytest.mark.parametrize("etag", ["", 'W/"5"'])
def test_a_download_without_a_strong_version_begins_anew(file: Path, etag: str) -> None:
    with RawServer(sending(reply(b"whole", 'ETag: "6"'))) as server:
        assert download(server.url, file, Version(etag)) == [Version('"6"')]
    assert b"Range" not in server.requests[0] and file.read_bytes() == b"whole"


def test_another_version_takes_the_place_of_what_is_there(file: Path) -> None:
    with RawServer(sending(reply(b"xy", 'ETag: "6"'))) as server:
        assert download(server.url, file, Version('"5"')) == [Version('"6"')]
    assert file.read_bytes() == b"xy"


def test_a_packed_file_stays_packed(file: Path) -> None:
    packed = gzip.compress(b"content")
    with RawServer(sending(reply(packed, "Content-Encoding: x-gzip"))) as server:
        download(server.url, file)
    assert file.read_bytes() == packed


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"def", 'ETag: "5"', "Content-Range: bytes 2-4/6", status="206 Partial Content"),
        reply(b"def", 'ETag: "6"', "Content-Range: bytes 3-5/6", status="206 Partial Content"),
        reply(b"def", 'ETag: "5"', "Content-Range: nonsense", status="206 Partial Content"),
        reply(b"def", 'ETag: "5"', status="206 Partial Content"),
    ],
)
def test_another_part_than_was_asked_for_is_refused(file: Path, answer: bytes) -> None:
    with RawServer(sending(answer)) as server, pytest.raises(FetchError, match="a different part of the file"):
        download(server.url, file, Version('"5"'))
    assert file.read_bytes() == b"abc"


def test_a_part_that_nobody_asked_for_is_refused(file: Path) -> None:
    answer = reply(b"def", 'ETag: "5"', "Content-Range: bytes 3-5/6", status="206 Partial Content")
    with RawServer(sending(answer)) as server, pytest.raises(StatusError):
        download(server.url, file)


def test_what_is_there_counts_for_the_limit(file: Path) -> None:
    answer = reply(b"def", 'ETag: "5"', "Content-Range: bytes 3-5/6", status="206 Partial Content")
    with RawServer(sending(answer)) as server, pytest.raises(TooLarge):
        download(server.url, file, Version('"5"'), FetchLimits(wire_bytes=5, total_secs=5))


def test_a_download_that_breaks_off_leaves_what_came(file: Path) -> None:
    answer = reply(b"defghi", 'ETag: "5"', "Content-Range: bytes 3-8/9", status="206 Partial Content")[:-4]
    with RawServer(sending(answer)) as server, pytest.raises(FetchError, match="the connection broke"):
        download(server.url, file, Version('"5"'))
    assert file.read_bytes() == b"abcde"
