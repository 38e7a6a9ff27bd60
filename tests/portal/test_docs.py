"""The documents say what the code does: settings, commands, metrics, files and links."""

from __future__ import annotations

import ast
import base64
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse

from emulator.pages.forms import UPLOAD_BYTES_MAX
from portal.maintenance.jobs import jobs
from portal.wire import signing
from scheduler.submission.rest import MAX_BODY_NBYTES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
READERS = {
    "addresses",
    "client_version",
    "day",
    "contact",
    "text",
    "words",
    "networks",
    "former_paths",
    "words_among",
    "switch",
    "choice",
    "integer",
    "number",
    "secret",
    "_stored_secret",
    "_address",
}
SOURCES = [
    ROOT / "portal" / "settings.py",
    ROOT / "portal" / "ops" / "checks.py",
    ROOT / "portal" / "object_storage" / "options.py",
]
COMMANDS = ("*/management/commands/*.py", "extras/*/management/commands/*.py")
NGINX_CONF = (ROOT / "deploy" / "nginx.conf").read_text()
COMMAND = re.compile(r"`([a-z_]+)`")
ROW = re.compile(r"^\| `([A-Z0-9_]+)` \|(.*)\|$", re.M)


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every reading of an environment variable: variable, reader, call."""
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0] if node.args else None
            if name in READERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, name, node


READ = {variable: (reader, call) for variable, reader, call in calls()}
DOCUMENTED = dict(ROW.findall((ROOT / "docs" / "reference" / "settings.md").read_text()))


def test_every_variable_is_documented_and_nothing_else_is() -> None:
    assert len(READ) > 30
    assert set(DOCUMENTED) == set(READ)


@pytest.mark.parametrize("variable", sorted(name for name, (reader, _) in READ.items() if reader == "integer"))
def test_the_limits_of_a_number_are_documented_as_they_are(variable: str) -> None:
    _, call = READ[variable]
    bounds = {keyword.arg: eval(compile(ast.Expression(keyword.value), "", "eval"), {}) for keyword in call.keywords}
    assert f"{bounds['low']} to {bounds['high']}" in DOCUMENTED[variable]


@pytest.mark.parametrize("variable", sorted(name for name, (reader, _) in READ.items() if "secret" in reader))
def test_a_variable_that_may_be_a_file_is_marked(variable: str) -> None:
    assert "*Secret.*" in DOCUMENTED[variable]


def test_only_those_are_marked() -> None:
    marked = {name for name, text in DOCUMENTED.items() if "*Secret.*" in text}
    assert marked == {name for name, (reader, _) in READ.items() if "secret" in reader}


def test_every_command_of_ours_is_mentioned() -> None:
    words = "\n".join(document.read_text() for document in DOCUMENTS)
    commands = {path.stem for pattern in COMMANDS for path in ROOT.glob(pattern) if not path.stem.startswith("_")}
    assert {"prepare", "check_ledger"} <= commands
    missing = {name for name in commands if f"`{name}`" not in words and f"manage.py {name}" not in words}
    assert not missing


def test_every_command_of_ours_is_in_the_table_of_commands_and_pages() -> None:
    table = (ROOT / "docs" / "reference" / "commands.md").read_text()
    commands = {path.stem for pattern in COMMANDS for path in ROOT.glob(pattern) if not path.stem.startswith("_")}
    rows = {
        name for line in table.splitlines() if line.startswith("| `") for name in COMMAND.findall(line.split("|")[1])
    }
    assert rows == commands


def test_what_the_page_of_maintenance_starts_is_there_as_a_command_too() -> None:
    table = (ROOT / "docs" / "reference" / "commands.md").read_text()
    on_page = {name for line in table.splitlines() if "| Maintenance |" in line for name in COMMAND.findall(line)}
    assert on_page | {"check"} == set(jobs())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text())
    missing = [target for target in targets if "://" not in target and not (document.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    """Paths in code marks that begin with a folder of ours, and the folder tour's."""
    folders = "portal|accounting|credit|scheduler|emulator|extras|tests|deploy|docs|templates|static"
    named = set(re.findall(rf"`((?:{folders})/[\w/.*-]+)`", document.read_text()))
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("/")))]
    assert not missing


def test_the_folder_tour_names_what_is_there() -> None:
    tour = (ROOT / "docs" / "explanation" / "architecture.md").read_text().split("## The folders")[1].split("## ")[0]
    folder = ""
    for line in tour.splitlines():
        if match := re.match(r"(\w+)/", line):
            folder = match[1]
        if line.startswith("  "):
            for name in line.strip().split("  ")[0].split(", "):
                assert (ROOT / folder / name).exists(), f"{folder}/{name}"


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for document in DOCUMENTS:
        named = set(re.findall(r"(?:`|^|\s)make ([a-z]+)`", document.read_text()))
        assert named <= targets, document.name


@pytest.fixture
def production(tmp_path: Path) -> dict[str, str]:
    """The environment of deploy/cobblestone.env, its files below a folder of the test's own."""
    key = signing.generate_key()
    keys = tmp_path / "lib" / "keys"
    keys.mkdir(parents=True)
    (keys / "am_signing_public").write_text(signing.public_key_text(key))
    (tmp_path / "secret_key").write_text(secrets.token_urlsafe(48))
    (tmp_path / "account_key_secret").write_text(secrets.token_urlsafe(48))
    (tmp_path / "upload_secret").write_text(secrets.token_urlsafe(48))
    (tmp_path / "vapid_private_key").write_text(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    (tmp_path / "certificate_secret").write_text(secrets.token_urlsafe(48))
    (tmp_path / "metrics_token").write_text("token")
    (tmp_path / "email_url").write_text("smtp+tls://user:password@mail.example.org:587\n")
    (tmp_path / "broker_url").write_text("redis://:password@127.0.0.1:6379/0\n")
    (tmp_path / "cache_url").write_text("redis://:password@127.0.0.1:6379/1\n")
    found = {}
    for line in (ROOT / "deploy" / "cobblestone.env").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            value = value.strip('"').replace("/etc/cobblestone", str(tmp_path))
            found[name] = value.replace("/var/lib/cobblestone", str(tmp_path / "lib"))
    return found


def test_the_example_environment_names_variables_that_there_are(production: dict[str, str]) -> None:
    known = {*READ, *(f"{name}_FILE" for name, (reader, _) in READ.items() if "secret" in reader)}
    known |= {"GRANIAN_WORKERS", "GRANIAN_BACKPRESSURE"}
    assert set(production) <= known


@pytest.mark.system
def test_a_site_deployed_as_documented_passes_all_checks(production: dict[str, str]) -> None:
    # The tests' own variable is one that a public site must not have.
    left_out = {*READ, "DJANGO_ALLOW_ASYNC_UNSAFE"}
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    run = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**inherited, **production},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert "no issues" in run.stdout


@pytest.mark.parametrize("unit", sorted(ROOT.glob("deploy/*.service")), ids=lambda path: path.name)
def test_units_start_programs_and_commands_that_there_are(unit: Path) -> None:
    for line in re.findall(r"^ExecStart\w*=(.*)$", unit.read_text(), re.M):
        program, *arguments = line.split()
        ours = ROOT / Path(program).relative_to("/srv/cobblestone")
        assert ours.exists() or (Path(sys.executable).parent / ours.name).exists(), program
        if arguments[0] == "manage.py" and arguments[1] != "check":
            assert list(ROOT.glob(f"*/management/commands/{arguments[1]}.py"))


def test_each_line_of_the_threat_model_names_tests_that_there_are() -> None:
    lines = (ROOT / "docs" / "threat-model.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(("| wants", "| what", "| ---"))]
    assert len(rows) >= 30
    for row in rows:
        named = re.findall(r"`((?:tests|extras)/[\w/]+\.py)::(?:\w+::)?(\w+)`", row.split(" | ")[-1])
        assert named, row
        for file, name in named:
            assert re.search(rf"^ *(async )?def {name}\(", (ROOT / file).read_text(), re.M), f"{file}::{name}"


def test_the_nightly_timer_checks_ledger_and_files() -> None:
    started = (ROOT / "deploy" / "cobblestone-check.service").read_text()
    files = re.findall(r"^Wants=(\S+)$", started, re.M)
    units = "".join([started, *[(ROOT / "deploy" / name).read_text() for name in files]])
    assert re.findall(r"^ExecStart=.* manage.py (\w+)$", units, re.M) == [
        "check_ledger",
        "check_signed_log",
        "check_files",
    ]


@pytest.mark.parametrize(
    ("address", "nbytes"),
    [
        ("/account/profile/", settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
        ("/rpc.php", settings.CLIENT_PATHS["/rpc.php"].longest_bytes),
        ("/project/scheduler", settings.CLIENT_PATHS["/project/scheduler"].longest_bytes),
        (reverse("api_batches"), MAX_BODY_NBYTES),
        (reverse("emulate_files"), UPLOAD_BYTES_MAX),
    ],
)
def test_the_proxy_lets_through_what_the_site_limits_itself(address: str, nbytes: int) -> None:
    own = re.search(rf"location = {address} {{[^}}]*?client_max_body_size (\d+)([mg]);", NGINX_CONF)
    limit = own or re.search(r"client_max_body_size (\d+)([mg]);", NGINX_CONF)
    assert limit is not None
    assert int(limit[1]) * {"m": 1024**2, "g": 1024**3}[limit[2]] >= nbytes


def test_the_proxy_sends_to_the_event_loop_what_clients_ask_and_nothing_else() -> None:
    sent: list[str] = []
    for pattern, content in re.findall(r"^ {4}location [=~]? ?(\S+) {\n(.*?)^ {4}}", NGINX_CONF, re.M | re.S):
        if re.search("proxy_pass http://cobblestone_(clients|uploads);", content):
            assert "error_page 500 502 503 504 =200 @try_later;" in content
            names = re.fullmatch(r"\^/\(([\w/|]+)\)\\\.php\$", pattern)
            sent += [f"/{name}.php" for name in names[1].split("|")] if names else [pattern]
    assert sorted(sent) == sorted(settings.CLIENT_PATHS)
    upstreams = dict(re.findall(r"^upstream (\w+) {\n(.*?)^}", NGINX_CONF, re.M | re.S))
    servers = {name: re.findall("server .*;", upstreams[f"cobblestone_{name}"]) for name in ("clients", "uploads")}
    assert servers["clients"] == servers["uploads"]


@pytest.mark.parametrize("service", ["web", "clients"])
def test_the_proxy_finds_the_services_where_they_listen(service: str) -> None:
    upstream = re.search(rf"upstream cobblestone_{service} {{\n +server ([\d.]+):(\d+);", NGINX_CONF)
    assert upstream is not None
    unit = (ROOT / "deploy" / f"cobblestone-{service}.service").read_text()
    assert f"--host {upstream[1]} --port {upstream[2]} " in unit
