"""Settings come from the environment, with limits; a bad one is refused in one line that names it."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest

from portal import environment
from tests.support.settings_of import settings_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("read", "given", "wanted"),
    [
        (lambda: environment.integer("TRIED", 5, low=1, high=10), "7", 7),
        (lambda: environment.integer("TRIED", 5, low=1, high=10), "", 5),
        (lambda: environment.integer("TRIED", 5, low=1, high=10), " 10 ", 10),
        (lambda: environment.number("TRIED", 5, low=1, high=1e12), "200e9", 200e9),
        (lambda: environment.switch("TRIED", False), "Yes", True),
        (lambda: environment.switch("TRIED", True), "0", False),
        (lambda: environment.switch("TRIED", True), "", True),
        (lambda: environment.words("TRIED", ["x"]), "a, b,,c ", ["a", "b", "c"]),
        (lambda: environment.words("TRIED", ["x"]), "", ["x"]),
        (lambda: environment.choice("TRIED", "json", ["json", "console"]), "console", "console"),
        (lambda: environment.text("TRIED", "x"), "  ", "x"),
        (lambda: environment.client_version("TRIED"), "7.16.20", "7.16.20"),
        (lambda: environment.client_version("TRIED"), "", ""),
        (lambda: environment.day("TRIED"), "2027-03-01", dt.datetime(2027, 3, 1, tzinfo=dt.UTC)),
        (lambda: environment.day("TRIED"), "", None),
        (lambda: environment.networks("TRIED"), "", []),
        (lambda: environment.addresses("TRIED", most=2), "", []),
        (
            lambda: environment.addresses("TRIED", most=2),
            "http://a.b/, https://c/d/,http://a.b/",
            ["http://a.b/", "https://c/d/"],
        ),
        (lambda: environment.networks("TRIED"), "10.1.0.0/16, ::1", [ip_network("10.1.0.0/16"), ip_network("::1")]),
    ],
)
def test_a_variable_is_read(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], given: str, wanted: object
) -> None:
    monkeypatch.setenv("TRIED", given)
    assert read() == wanted


@pytest.mark.parametrize(
    ("read", "refusal", "texts"),
    [
        (
            lambda: environment.integer("TRIED", 5, low=1, high=10),
            r"whole number from 1 to 10\.$",
            ["abc", "0", "11", "1.5", "nan", "9" * 5000],
        ),
        (
            lambda: environment.number("TRIED", 5, low=0, high=1e9),
            r"a number from 0 to 1e\+09\.$",
            ["abc", "-1", "inf", "nan", "1e400", "2e9"],
        ),
        (lambda: environment.client_version("TRIED"), "such as", ["7", "7.16.20.1"]),
        (lambda: environment.day("TRIED"), "such as", ["1 March"]),
        (
            lambda: environment.networks("TRIED"),
            r"networks such as 10\.1\.0\.0/16",
            ["10.0.0.1/8", "example.org", "10.0.0.0/33"],
        ),
        (
            lambda: environment.addresses("TRIED", most=2),
            "(addresses such as|at most 2)",
            ["example.org/", "https://example.org", "ftp://a/", "https:///", "http://[/", "http://u:p@a/",
             "http://a/?b/", f"http://a/{'x' * 200}/", "http://a/,http://b/,http://c/", "http://a:99999/",
             "http://a:x/", "http://a:0/"],
        ),
        (lambda: environment.switch("TRIED", False), r"1 \(on\) or 0 \(off\)", ["maybe"]),
    ],
)  # fmt: skip
def test_what_a_variable_cannot_be_is_refused_with_its_name_and_what_it_can_be(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], refusal: str, texts: list[str]
) -> None:
    for text in texts:
        monkeypatch.setenv("TRIED", text)
        with pytest.raises(environment.SettingError, match=f"TRIED=.*{refusal}"):
            read()


def test_a_secret_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    monkeypatch.setenv("TRIED", "other")
    monkeypatch.setenv("TRIED_FILE", str(file))
    assert environment.secret("TRIED") == "s3cret"
    monkeypatch.setenv("TRIED_FILE", str(tmp_path / "absent"))
    with pytest.raises(environment.SettingError, match=r"TRIED_FILE=.*cannot be read"):
        environment.secret("TRIED")
    file.write_text("\n")
    monkeypatch.setenv("TRIED_FILE", str(file))
    with pytest.raises(environment.SettingError, match=r"TRIED_FILE=.*is empty"):
        environment.secret("TRIED")


@pytest.mark.parametrize(
    "url",
    ["mysql://u:hunter2@h/db", "sqlite:////hunter2", "hunter2", "", "postgresql://hunter2@a:99999/db",
     "postgresql://u:hunter2@a:1,b:2/db", "postgresql://hunter2@[a/db"],
)  # fmt: skip
def test_another_database_several_hosts_and_wrong_ports_are_refused_without_showing_the_url(url: str) -> None:
    with pytest.raises(environment.SettingError, match="DATABASE_URL") as caught:
        environment.database(url)
    assert "hunter2" not in str(caught.value)


def test_options_of_the_database_url_go_to_libpq() -> None:
    read = environment.database("postgresql://cobblestone@/portal?host=/run/postgresql&sslmode=require")
    assert (read["NAME"], read["USER"]) == ("portal", "cobblestone")
    assert read["OPTIONS"] == {"sslmode": "require"}
    assert read["HOST"] == "/run/postgresql"


def test_host_and_password_are_read_as_libpq_reads_them() -> None:
    read = environment.database("postgresql://cobblestone:p%40ss@[fd00::2]:5433/portal?hostaddr=fd00::3")
    assert (read["HOST"], read["PORT"], read["PASSWORD"]) == ("fd00::2", "5433", "p@ss")
    assert read["OPTIONS"] == {"hostaddr": "fd00::3"}


def test_a_bad_mail_address_is_refused_without_showing_it() -> None:
    with pytest.raises(environment.SettingError, match="EMAIL_URL") as caught:
        environment.mail("pigeon://hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "limits"),
    [
        ("AM_REPEAT_SECS", "abc", "a whole number from 30 to 1209600"),
        ("AM_MAX_CPU_FLOPS", "inf", "a number from"),
        ("DEBUG", "perhaps", "1 (on) or 0 (off)"),
        ("LOG_FORMAT", "xml", "json or console"),
    ],
)
def test_a_bad_setting_is_named_with_its_limits(name: str, value: str, limits: str) -> None:
    with pytest.raises(environment.SettingError) as caught:
        settings_of({**os.environ, name: value})
    assert f"{name}={value!r}" in str(caught.value) and limits in str(caught.value)


@pytest.mark.system
def test_a_bad_setting_ends_a_command_with_one_line() -> None:
    run = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "DEBUG": "perhaps"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "DEBUG='perhaps'" in run.stderr and "1 (on) or 0 (off)" in run.stderr
