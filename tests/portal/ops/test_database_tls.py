"""The certificates and the configuration by which docs/how-to/high-availability.md has machines prove themselves."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "how-to" / "high-availability.md").read_text()
EXAMPLE = ROOT / "deploy" / "patroni.yml"


def block(kind: str) -> str:
    """The page's block of this language."""
    match = re.search(rf"   ```{kind}\n(.*?)   ```", TEXT, re.DOTALL)
    assert match
    return re.sub("(?m)^   ", "", match[1])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page's commands make; the first machine is this one."""
    folder = tmp_path_factory.mktemp("tls")
    commands = block("bash").replace("10.0.0.11 ", "127.0.0.1 ")
    subprocess.run(["bash", "-euc", commands], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.system
@pytest.mark.parametrize("purpose", ["sslserver", "sslclient"])
def test_each_machine_has_one_for_its_own_address_alone(certificates: Path, purpose: str) -> None:
    def is_valid(number: int, address: str) -> bool:
        command = ["openssl", "verify", "-CAfile", "ca.crt", "-purpose", purpose, "-verify_ip", address]
        return subprocess.run([*command, f"db{number}.crt"], cwd=certificates, capture_output=True).returncode == 0

    assert [is_valid(number, "10.0.0.12") for number in (1, 2, 3)] == [False, True, False]


def asked(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """What a server on loopback answers with; b"" or an error of TLS if one of the two does not accept the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError), server.wrap_socket(listener.accept()[0], server_side=True) as connection:
                connection.sendall(b"hello")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname(), timeout=10) as plain,
                client.wrap_socket(plain, server_hostname=name) as connection,
            ):
                return connection.recv(5)
        finally:
            thread.join()


@pytest.mark.system
def test_both_sides_prove_themselves(certificates: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates / "db1.crt", certificates / "db1.key")
    server.load_verify_locations(certificates / "ca.crt")
    server.verify_mode = ssl.CERT_REQUIRED
    machine, stranger = (ssl.create_default_context(cafile=certificates / "ca.crt") for _ in range(2))
    machine.load_cert_chain(certificates / "db2.crt", certificates / "db2.key")
    assert asked(server, machine, "127.0.0.1") == b"hello"
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate required"):
        asked(server, stranger, "127.0.0.1")
    # Another machine in its place
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        asked(server, machine, "127.0.0.2")


def test_its_configuration_goes_with_the_example() -> None:
    example, added = yaml.safe_load(EXAMPLE.read_text()), yaml.safe_load(block("yaml"))
    assert added.keys() <= example.keys()
    assert added["postgresql"]["authentication"].keys() == example["postgresql"]["authentication"].keys()
    rules = added["postgresql"]["pg_hba"]
    assert [rule.replace("hostssl ", "host ") for rule in rules] == example["postgresql"]["pg_hba"]
    assert not [rule for rule in rules if rule.startswith("host ")]
