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


@pytest.mark.parametrize("given", ["abc", "0", "11", "1.5", "nan", "9" * 5000])
def test_an_integer_outside_its_limits_is_refused_with_name_and_limits(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("TRIED", given)
    with pytest.raises(environment.SettingError, match=r"TRIED=.*whole number from 1 to 10\.$"):
        environment.integer("TRIED", 5, low=1, high=10)


@pytest.mark.parametrize("given", ["abc", "-1", "inf", "nan", "1e400", "2e9"])
def test_a_number_outside_its_limits_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("TRIED", given)
    with pytest.raises(environment.SettingError, match=r"TRIED=.*a number from 0 to 1e\+09\.$"):
        environment.number("TRIED", 5, low=0, high=1e9)


@pytest.mark.parametrize(
    ("read", "given"),
    [(environment.client_version, "7"), (environment.client_version, "7.16.20.1"), (environment.day, "1 March")],
)
def test_what_is_no_version_of_boinc_or_no_day_is_refused(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object], given: str
) -> None:
    monkeypatch.setenv("TRIED", given)
    with pytest.raises(environment.SettingError, match=r"TRIED=.*such as"):
        read("TRIED")


@pytest.mark.parametrize("given", ["10.0.0.1/8", "example.org", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("TRIED", given)
    with pytest.raises(environment.SettingError, match=r"TRIED=.*networks such as 10\.1\.0\.0/16"):
        environment.networks("TRIED")


@pytest.mark.parametrize(
    "given",
    ["example.org/", "https://example.org", "ftp://a/", "https:///", "http://[/", "http://u:p@a/", "http://a/?b/",
     f"http://a/{'x' * 200}/", "http://a/,http://b/,http://c/", "http://a:99999/",
     "http://a:x/", "http://a:0/"],
)  # fmt: skip
def test_what_is_no_address_of_a_site_is_refused_and_so_are_too_many(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("TRIED", given)
    with pytest.raises(environment.SettingError, match=r"TRIED=.*(addresses such as|at most 2)"):
        environment.addresses("TRIED", most=2)


def test_a_switch_is_on_or_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIED", "maybe")
    with pytest.raises(environment.SettingError, match=r"TRIED='maybe'.*1 \(on\) or 0 \(off\)"):
        environment.switch("TRIED", False)


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


@pytest.mark.parametrize("url", ["mysql://u:hunter2@h/db", "sqlite:////hunter2", "hunter2", ""])
def test_only_postgresql_will_do_and_the_url_is_not_shown(url: str) -> None:
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


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://hunter2@a:99999/db",
        "postgresql://u:hunter2@a:1,b:2/db",
        "postgresql://hunter2@[a/db",
    ],
)
def test_several_hosts_and_wrong_ports_are_refused(url: str) -> None:
    with pytest.raises(environment.SettingError, match="DATABASE_URL") as caught:
        environment.database(url)
    assert "hunter2" not in str(caught.value)


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
