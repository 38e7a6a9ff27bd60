"""Settings that cannot work together are found before a client or a volunteer finds them."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from pytest_django import Settings

from portal import environment
from portal.ops import checks
from portal.wire import signing


def ids(found: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in found]


@pytest.mark.parametrize(
    "url",
    [
        "https://portal.example.org/",
        "http://127.0.0.1:8000/",
        "https://example.org/boinc/am/",
        "http://a-b.example.org/",
    ],
)
def test_a_canonical_address_is_accepted(settings: Settings, url: str) -> None:
    settings.SITE_URL = url
    settings.ALLOWED_HOSTS = ["*"]
    assert checks.check_site_url(None) == []


@pytest.mark.parametrize(
    "url",
    [
        "portal.example.org/",  # no scheme
        "ftp://portal.example.org/",
        "https://portal.example.org",  # no slash at the end
        "https://Portal.example.org/",  # clients turn the host into lower case
        "http://localhost:8000/",  # clients refuse a host without a dot
        "https://portal.example.org//am/",
        "https://portal.example.org/?x=1/",
        "https://user@portal.example.org/",
        f"https://{'a.' * 91}example.org/",  # 202 characters
        "",
    ],
)
def test_an_address_that_clients_change_or_refuse_is_an_error(settings: Settings, url: str) -> None:
    settings.SITE_URL = url
    settings.ALLOWED_HOSTS = ["*"]
    assert ids(checks.check_site_url(None)) == ["cobblestone.E001"]


@pytest.mark.parametrize(
    ("allowed", "found"),
    [
        (["portal.example.org"], []),
        ([".example.org"], []),
        (["*"], []),
        (["example.org"], ["cobblestone.E002"]),
        ([], ["cobblestone.E002"]),
    ],
)
def test_the_sites_own_host_must_be_allowed(settings: Settings, allowed: list[str], found: list[str]) -> None:
    settings.SITE_URL = "https://portal.example.org/"
    settings.ALLOWED_HOSTS = allowed
    assert ids(checks.check_site_url(None)) == found


def test_the_contact_after_an_attachment_comes_no_later_than_others(settings: Settings) -> None:
    settings.AM_REPEAT_SECS, settings.AM_REPEAT_SECS_AFTER_ATTACH = 600, 600
    assert checks.check_repeat_intervals(None) == []
    settings.AM_REPEAT_SECS_AFTER_ATTACH = 601
    assert ids(checks.check_repeat_intervals(None)) == ["cobblestone.E003"]


@pytest.mark.parametrize(
    ("least", "greatest", "found"),
    [
        ("7.16.0", "", []),
        ("", "7.16", []),
        ("7.16", "7.16.0", []),
        ("7.9.5", "7.16.0", []),
        ("8.2", "7.16.20", ["cobblestone.E007"]),
    ],
)
def test_some_client_must_get_work(settings: Settings, least: str, greatest: str, found: list[str]) -> None:
    settings.MIN_CLIENT_VERSION, settings.MAX_CLIENT_VERSION = least, greatest
    assert ids(checks.check_client_versions(None)) == found


@pytest.fixture
def key_files(settings: Settings, tmp_path: Path) -> tuple[Path, Path]:
    """A pair of signing keys, in the files that the settings name."""
    key = signing.generate_key()
    private, public = tmp_path / "private", tmp_path / "public"
    private.write_text(signing.private_key_text(key))
    public.write_text(signing.public_key_text(key))
    settings.AM_SIGNING_KEY, settings.AM_SIGNING_KEY_PUBLIC = private, public
    return private, public


def test_a_pair_of_signing_keys_is_accepted(key_files: tuple[Path, Path]) -> None:
    assert checks.check_signing_keys(None) == []


def test_the_private_key_may_be_kept_elsewhere(key_files: tuple[Path, Path]) -> None:
    key_files[0].unlink()
    assert checks.check_signing_keys(None) == []


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("content", [b"", b"1024\nxyz\n.\n", b"\xff\xfe", b"2048\n" + b"0" * 64 + b"\n.\n"])
def test_a_file_that_holds_no_key_is_an_error(key_files: tuple[Path, Path], which: int, content: bytes) -> None:
    key_files[which].write_bytes(content)
    assert ids(checks.check_signing_keys(None)) == ["cobblestone.E004"]


def test_keys_of_two_pairs_are_an_error(key_files: tuple[Path, Path]) -> None:
    key_files[1].write_text(signing.public_key_text(signing.generate_key()))
    assert ids(checks.check_signing_keys(None)) == ["cobblestone.E005"]


def test_one_key_for_two_purposes_is_an_error(settings: Settings, key_files: tuple[Path, Path]) -> None:
    settings.CODE_SIGNING_KEY_PUBLIC = key_files[1]
    assert ids(checks.check_signing_keys(None)) == ["cobblestone.E006"]


def test_too_many_threads_for_the_pool_are_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DB_POOL_MAX = 8
    monkeypatch.setenv("GRANIAN_BLOCKING_THREADS", "64")
    assert checks.check_pool(None) == []
    settings.DB_POOL_MAX = 7
    assert ids(checks.check_pool(None)) == ["cobblestone.W006"]


def test_a_production_site_has_nothing_to_complain_about(settings: Settings, key_files: tuple[Path, Path]) -> None:
    settings.SITE_URL, settings.ALLOWED_HOSTS = "https://portal.example.org/", ["portal.example.org"]
    settings.SECRET_KEY, settings.ACCOUNT_KEY_SECRET = "s" * 32, "a" * 32
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.SECURE_SSL_REDIRECT = settings.BEHIND_PROXY = settings.STAFF_SECOND_FACTOR = True
    settings.DEMO = False
    assert [*checks.check_production(None), *checks.check_services(None)] == []


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("SITE_URL", "http://portal.example.org/", "cobblestone.W007"),
        ("ACCOUNT_KEY_SECRET", "a" * 31, "cobblestone.W008"),
        ("SECRET_KEY", "a" * 32, "cobblestone.W009"),
        ("EMAIL_BACKEND", "django.core.mail.backends.console.EmailBackend", "cobblestone.W010"),
        ("AM_SIGNING_KEY_PUBLIC", Path("/nowhere/key"), "cobblestone.W011"),
        ("BEHIND_PROXY", False, "cobblestone.W012"),
        ("STAFF_SECOND_FACTOR", False, "cobblestone.W014"),
        ("CLIENT_PASSWORD_ALONE", True, "cobblestone.W031"),
        ("DEMO", True, "cobblestone.W032"),
        ("ALLOWED_HOSTS", ["portal.example.org", "localhost"], "cobblestone.W027"),
        ("STAFF_IDLE_SECS", 0, "cobblestone.W026"),
        ("BROKER_URL", "redis://127.0.0.1:6379/0", "cobblestone.W015"),
        ("CACHE_URL", "redis://127.0.0.1:6379/1", "cobblestone.W015"),
    ],
)
def test_what_suits_ones_own_machine_only_is_told(
    settings: Settings, key_files: tuple[Path, Path], name: str, value: object, found: str
) -> None:
    test_a_production_site_has_nothing_to_complain_about(settings, key_files)
    setattr(settings, name, value)
    assert ids([*checks.check_production(None), *checks.check_services(None)]) == [found]


@pytest.mark.parametrize(
    ("url", "is_told"),
    [
        ("postgresql://u@10.0.0.11:5432/x", True),
        ("postgresql://u@db.example.org/x?sslmode=require", True),
        ("postgresql://u@database:5432/x?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=/ca.crt", False),
        ("postgresql://u@127.0.0.1:5432/x", False),
        ("postgresql://u@/x?host=/run/postgresql", False),
    ],
)
def test_a_database_elsewhere_without_verified_tls_is_told(
    settings: Settings, key_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, url: str, is_told: bool
) -> None:
    test_a_production_site_has_nothing_to_complain_about(settings, key_files)
    monkeypatch.setitem(settings.DATABASES, "default", environment.database(url))
    assert ids(checks.check_services(None)) == ["cobblestone.W028"] * is_told


@pytest.mark.django_db
@pytest.mark.parametrize(("secs", "words"), [(0.0, ""), (3.0, "3.0 s ahead of"), (-3.0, "3.0 s behind")])
def test_a_wrong_clock_is_told(monkeypatch: pytest.MonkeyPatch, secs: float, words: str) -> None:
    monkeypatch.setattr(checks, "ahead_secs", lambda _session: secs)
    assert [words in message.msg for message in checks.check_clock(None)] == [True] * bool(words)


def test_a_private_key_on_a_public_server_is_told(settings: Settings, tmp_path: Path) -> None:
    settings.AM_SIGNING_KEY, settings.CODE_SIGNING_KEY = tmp_path / "am", tmp_path / "code"
    assert checks.check_private_keys(None) == []
    settings.AM_SIGNING_KEY.touch()
    [found] = checks.check_private_keys(None)
    assert (found.id, found.msg) == (
        "cobblestone.W013",
        f"The private key of AM_SIGNING_KEY lies on this server: {tmp_path / 'am'}",
    )
    settings.CODE_SIGNING_KEY.touch()
    assert ids(checks.check_private_keys(None)) == ["cobblestone.W013"] * 2


def test_what_machines_must_share_is_told(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"
    settings.SECRETS_MADE_HERE = ["UPLOAD_SECRET"]
    settings.AM_SIGNING_KEY_PUBLIC = tmp_path / "var" / "keys" / "am"
    settings.CODE_SIGNING_KEY_PUBLIC = tmp_path / "etc" / "code"
    settings.SEVERAL_MACHINES = False
    assert checks.check_shared(None) == []
    settings.SEVERAL_MACHINES = True
    secret, key = checks.check_shared(None)
    assert (secret.id, key.id) == ("cobblestone.W021", "cobblestone.W021")
    assert "the secret UPLOAD_SECRET" in secret.msg
    assert "the key AM_SIGNING_KEY_PUBLIC" in key.msg


@pytest.mark.parametrize(
    "url", ["redis://:secret@127.0.0.1:6379/0", "redis+socket:///run/valkey.sock?virtual_host=0", "unix:///v.sock?db=1"]
)
def test_valkey_with_a_password_or_on_a_socket_is_accepted(
    settings: Settings, key_files: tuple[Path, Path], url: str
) -> None:
    settings.BROKER_URL = settings.CACHE_URL = url
    test_a_production_site_has_nothing_to_complain_about(settings, key_files)


def test_a_public_site_that_may_ask_its_own_machine_is_told(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("10.1.0.0/16"), ip_network("fd00::/16")]
    assert checks.check_fetching(None) == []
    settings.FETCH_ALLOWED_NETWORKS += [
        ip_network(text) for text in ("127.0.0.1", "0.0.0.0/0", "::1", "169.254.0.0/16")
    ]
    assert ids(checks.check_fetching(None)) == ["cobblestone.W020"] * 4


def test_every_message_says_what_to_do(settings: Settings, tmp_path: Path) -> None:
    settings.SITE_URL = "http://localhost/"
    settings.SECRET_KEY = settings.ACCOUNT_KEY_SECRET = "short"
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    settings.AM_SIGNING_KEY_PUBLIC = tmp_path / "none"
    settings.SECURE_SSL_REDIRECT = settings.DEMO = True
    found = [*checks.check_site_url(None), *checks.check_production(None), *checks.check_services(None)]
    # An address without a dot, no TLS, no proxy, no second factor, a short secret that is used twice, no mail, no key,
    # the demo, and names of one's own machine.
    assert len(found) == 10
    assert all(message.hint for message in found)


def test_each_warning_has_a_number_of_its_own() -> None:
    """Else who silences one silences another."""
    source = Path(checks.__file__).read_text()
    numbers = re.findall(r'id="(cobblestone\.[EW]\d+)"', source)
    assert len(numbers) > 20 and len(numbers) == len({*numbers})
