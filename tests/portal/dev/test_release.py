"""What `make release` writes, twice the same, and what CI says of advisories."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from portal.dev import advisories, release

ROOT = Path(__file__).parents[3]
LOCK = """\
a2wsgi==1.10.10 \\
    --hash=sha256:00
    # via -r requirements.in
psycopg[binary]==3.2.1 ; python_version >= "3.11" \\
    --hash=sha256:00
Ruamel.Yaml_Clib==0.2+local \\
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "run").write_text("#!/bin/sh\n")
    (root / "requirements.txt").write_text(LOCK)
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "First"],
    ):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return root


@pytest.mark.system
def test_the_same_commit_gives_the_same_bytes_whatever_lies_beside_it(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = release.build(repository, tmp_path / "first")
    # Another time, another time zone, other rights, and a file that was not committed.
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    (repository / "folder" / "run").chmod(0o600)
    (repository / "secret.txt").write_text("of this machine")
    subprocess.run(["git", "-C", str(repository), "config", "tar.umask", "0077"], check=True)
    second = release.build(repository, tmp_path / "second")
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    monkeypatch.undo()
    time.tzset()


@pytest.mark.system
def test_the_archive_has_what_the_commit_has_and_its_digest_is_beside_it(repository: Path, tmp_path: Path) -> None:
    archive, bill, sums = release.build(repository, tmp_path / "dist")
    with tarfile.open(archive) as opened:
        names = [Path(name).relative_to(archive.name.removesuffix(".tar.gz")) for name in opened.getnames()]
    assert sorted(map(str, names)) == [".", "folder", "folder/run", "requirements.txt"]
    for path in (archive, bill):
        assert f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" in sums.read_text()


@pytest.mark.system
def test_the_bill_of_materials_has_each_package_of_the_lock(repository: Path, tmp_path: Path) -> None:
    _, bill, _ = release.build(repository, tmp_path / "dist")
    document = json.loads(bill.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert [component["purl"] for component in document["components"]] == [
        "pkg:pypi/a2wsgi@1.10.10",
        "pkg:pypi/psycopg@3.2.1",
        "pkg:pypi/ruamel-yaml-clib@0.2%2Blocal",
    ]


def test_no_package_of_the_sites_own_lock_is_left_out() -> None:
    lock = (ROOT / "requirements.txt").read_text()
    # Each package has one line that begins at the margin.
    assert len(list(release.pins(lock))) == sum(line[:1].isalnum() for line in lock.splitlines()) > 50


SOUND = {"name": "a", "version": "1", "vulns": []}
FAULTY = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "is_well", "said"),
    [
        ([SOUND], True, "1 packages checked, 0 with known faults."),
        ([SOUND, FAULTY], False, "b 2: PYSEC-1, fixed in 3"),
        ([SOUND, SKIPPED], True, "Advisories were NOT checked for: c."),
        ([SKIPPED], True, "the registry that is reached from here has none"),
    ],
)
def test_faults_fail_ci_and_what_was_not_checked_is_said(
    packages: list[dict[str, object]], is_well: bool, said: str
) -> None:
    lines, verdict = advisories.verdict(json.dumps({"dependencies": packages, "fixes": []}))
    assert verdict == is_well and said in " ".join(lines)


@pytest.mark.parametrize("report", ["", "Traceback", "[]", "{}"])
def test_a_service_that_is_not_reached_is_said(report: str) -> None:
    assert advisories.verdict(report) == (
        ["Advisories were NOT checked: their service cannot be reached from here."], True,
    )  # fmt: skip
