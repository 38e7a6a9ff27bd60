"""Secrets and signing keys in files: made once, whole, whoever else makes them and whatever crashes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from portal.wire import key_files, signing
from tests.support.site_process import CHECKOUT


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys" / "secret"

    def crash(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(os, "fsync", crash)
        key_files.make_file(path, "s3cret")
    assert list(path.parent.iterdir()) == []
    key_files.make_file(path, "s3cret")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("s3cret", 0o600)
    assert list(path.parent.iterdir()) == [path]


def test_of_several_that_make_it_at_once_one_does_and_all_read_the_same(tmp_path: Path) -> None:
    def made(number: int) -> str:
        key_files.make_file(tmp_path / "secret", f"secret of {number}")
        return (tmp_path / "secret").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(made, range(8)))) == 1


def test_a_pair_of_which_a_crash_left_the_private_key_is_completed(tmp_path: Path) -> None:
    private, public = tmp_path / "private", tmp_path / "public"
    assert key_files.make_pair_if_missing(private, public)
    first = public.read_text()
    public.unlink()
    assert key_files.make_pair_if_missing(private, public)
    assert public.read_text() == first
    assert signing.public_key_text(signing.parse_private_key(private.read_text())) == first
    assert not key_files.make_pair_if_missing(private, public)


def test_a_private_key_that_is_kept_elsewhere_is_not_made(tmp_path: Path) -> None:
    private, public = tmp_path / "private", tmp_path / "public"
    key_files.make_pair_if_missing(private, public)
    private.unlink()
    assert not key_files.make_pair_if_missing(private, public)
    assert not private.exists()


@pytest.mark.system
def test_an_empty_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "account_key_secret").touch()
    # The names of servers alone: none is asked.
    variables = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "CACHE_URL": "redis://127.0.0.1:1/1",
        "VAR_DIR": str(tmp_path),
    }
    without = {name: value for name, value in os.environ.items() if not name.endswith("SECRET")}
    done = subprocess.run(
        [sys.executable, "-c", "import portal.settings"],
        cwd=CHECKOUT,
        env=without | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("if the site was never used, remove it.")
