"""Static files of former versions go after some days; those of the present one stay, with their compressed copies."""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from portal.upgrades.old_static_files import prune

NOW = dt.datetime(2026, 11, 27, 12, tzinfo=dt.UTC)
KEPT = dt.timedelta(days=14)
SCRIPT = "console.log('This is long enough to be worth compressing.');\n" * 40


@pytest.fixture(autouse=True)
def site(tmp_path: Path, settings: Settings) -> Path:
    """A site that collects one folder as production does; the folder."""
    source = tmp_path / "source"
    source.mkdir()
    settings.VAR_DIR = tmp_path
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    backend = "whitenoise.storage.CompressedManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": backend}}
    return source


def release(source: Path, number: int) -> None:
    """Collect a version: one file differs from version to version, one does not, and one is new in each."""
    for file in source.iterdir():
        file.unlink()
    (source / "same.css").write_text("a { color: red }\n" * 40)
    (source / "site.js").write_text(f"{SCRIPT}// {number}\n")
    (source / f"only{number}.txt").write_text(f"{number}")
    call_command("collectstatic", interactive=False, verbosity=0)


def there(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def run(tmp_path: Path, now: dt.datetime) -> list[str]:
    return prune(tmp_path / "static", tmp_path / "missed.json", now, KEPT)


def test_files_of_a_former_version_go_after_some_days(site: Path, tmp_path: Path) -> None:
    root = tmp_path / "static"
    release(site, 1)
    first = there(root)
    release(site, 2)
    both = there(root)
    of_old = first - {name for name in first if name.startswith(("same", "staticfiles"))}
    assert {Path(name).suffix for name in of_old} == {".js", ".gz", ".br", ".txt"}
    assert run(tmp_path, NOW) == []
    assert run(tmp_path, NOW + KEPT - dt.timedelta(seconds=1)) == []
    assert there(root) == both
    assert set(run(tmp_path, NOW + KEPT)) == of_old
    assert there(root) == both - of_old
    assert run(tmp_path, NOW + 2 * KEPT) == []
    # What the manifest names is there, compressed too.
    manifest = json.loads((root / "staticfiles.json").read_text())["paths"]
    assert set(manifest.values()) <= there(root)
    assert f"{manifest['site.js']}.gz" in there(root)


def test_the_time_begins_anew_when_a_version_comes_back(site: Path, tmp_path: Path) -> None:
    root = tmp_path / "static"
    release(site, 1)
    first = there(root)
    release(site, 2)
    run(tmp_path, NOW)
    release(site, 1)
    assert not set(run(tmp_path, NOW + KEPT)) & first
    release(site, 2)
    assert run(tmp_path, NOW + KEPT + dt.timedelta(days=1)) == []
    assert first <= there(root)


def test_notes_whose_times_have_lost_their_zone_are_of_the_machines_own(site: Path, tmp_path: Path) -> None:
    release(site, 1)
    release(site, 2)
    run(tmp_path, NOW)
    notes = tmp_path / "missed.json"
    notes.write_text(notes.read_text().replace("+00:00", ""))
    assert run(tmp_path, NOW + KEPT + dt.timedelta(days=1))


def test_damaged_notes_let_files_stay_the_longer(site: Path, tmp_path: Path) -> None:
    release(site, 1)
    release(site, 2)
    run(tmp_path, NOW)
    (tmp_path / "missed.json").write_text('{"site')
    assert run(tmp_path, NOW + KEPT) == []
    assert run(tmp_path, NOW + 2 * KEPT)


@pytest.mark.parametrize("text", [None, "", '{"paths": {}}', '{"paths": []}', "[]"])
def test_nothing_is_removed_without_a_manifest(site: Path, tmp_path: Path, text: str | None) -> None:
    release(site, 1)
    manifest = tmp_path / "static" / "staticfiles.json"
    manifest.unlink()
    if text is not None:
        manifest.write_text(text)
    before = there(tmp_path / "static")
    with pytest.raises(CommandError, match="run collectstatic first"):
        call_command("prune_static", "--days", "0")
    assert there(tmp_path / "static") == before


def test_the_command_counts_what_it_removed(site: Path, tmp_path: Path) -> None:
    release(site, 1)
    release(site, 2)
    for nfiles in (0, 4):
        out = io.StringIO()
        call_command("prune_static", "--days", "0", stdout=out)
        assert out.getvalue() == f"{nfiles} files removed.\n"


def test_links_go_and_what_they_lead_to_stays(site: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("somebody else's")
    release(site, 1)
    root = tmp_path / "static"
    (root / "old.txt").symlink_to(outside / "kept.txt")
    (root / "old").symlink_to(outside)
    (root / "nowhere.txt").symlink_to(outside / "gone.txt")
    run(tmp_path, NOW)
    assert run(tmp_path, NOW + KEPT) == ["nowhere.txt", "old.txt"]
    assert (outside / "kept.txt").exists()
    assert not (root / "old.txt").is_symlink()


@pytest.mark.parametrize("blocked", ["static/staticfiles.json", "static-missed.json"])
def test_what_cannot_be_read_is_told_and_nothing_is_removed(site: Path, tmp_path: Path, blocked: str) -> None:
    release(site, 1)
    release(site, 2)
    before = there(tmp_path / "static") - {"staticfiles.json"}
    (tmp_path / blocked).unlink(missing_ok=True)
    (tmp_path / blocked).mkdir()
    with pytest.raises(CommandError, match=blocked.rpartition("/")[2]):
        call_command("prune_static", "--days", "0")
    assert there(tmp_path / "static") - {"staticfiles.json"} == before


def test_a_file_that_cannot_be_removed_is_told_and_goes_with_the_next_run(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(site, 1)
    release(site, 2)
    out = io.StringIO()
    call_command("prune_static", "--days", "0", stdout=out)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        # As in a folder that may only be read, which would not stop root.
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(CommandError, match=r"Permission denied.*next run"):
            call_command("prune_static", "--days", "0")
    call_command("prune_static", "--days", "0", stdout=out)
    assert out.getvalue() == "0 files removed.\n4 files removed.\n"


def test_what_was_missed_is_noted_though_a_folder_cannot_be_removed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(site, 1)
    release(site, 2)
    (tmp_path / "static" / "empty").mkdir()

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", refuse)
        with pytest.raises(CommandError, match="Permission denied"):
            call_command("prune_static", "--days", "0")
    out = io.StringIO()
    call_command("prune_static", "--days", "0", stdout=out)
    assert out.getvalue() == "4 files removed.\n"
