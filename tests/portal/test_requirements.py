"""The lock has all packages with hashes, and is that of the versions that were chosen."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[\w+\])?==([^ ;\\\n]+)", re.M)


def pins(name: str) -> dict[str, str]:
    """The versions of a file, by package."""
    return {found.lower().replace("_", "-"): version for found, version in PIN.findall((ROOT / name).read_text())}


@pytest.mark.parametrize("name", ["requirements", "requirements-emulator", "requirements-dev"])
def test_every_package_is_locked_with_hashes(name: str) -> None:
    text = re.sub(r"^ *#.*\n", "", (ROOT / f"{name}.txt").read_text(), flags=re.M)
    entries = [entry for entry in re.split(r"\n(?=\S)", text.strip())]
    assert len(entries) >= 65
    # With one that has none pip would refuse them all.
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []
    assert [entry for entry in entries if not PIN.match(entry)] == []


def test_the_lock_has_the_chosen_versions() -> None:
    chosen, chosen_dev = pins("requirements.in"), pins("requirements-dev.in")
    locked, locked_dev = pins("requirements.txt"), pins("requirements-dev.txt")
    assert chosen and chosen.items() <= locked.items(), "run make lock"
    assert chosen_dev and chosen_dev.items() <= locked_dev.items(), "run make lock"
    # Tests run with what production runs with, and so does what emulates.
    assert locked.items() <= locked_dev.items()
    assert (locked | pins("requirements-emulator.in")).items() <= pins("requirements-emulator.txt").items()


@pytest.mark.system
@pytest.mark.parametrize("name", ["requirements", "requirements-emulator", "requirements-dev"])
def test_make_lock_writes_the_hashes_of_all_packages(name: str) -> None:
    """What it would do; doing it needs the network."""
    done = subprocess.run(["make", "-n", "lock"], cwd=ROOT, capture_output=True, text=True, check=True)
    (command,) = re.findall(r"^for name in .*?^done$", done.stdout, re.M | re.S)
    assert name in command.partition(";")[0].split()
    assert "uv pip compile" in command and " --generate-hashes" in command
    assert "$name.in --output-file $name.txt" in command


def test_nothing_is_installed_without_hashes() -> None:
    commands = [
        line
        for path in ("Makefile", "docs/how-to/deploy.md", ".ci/run")
        for line in (ROOT / path).read_text().splitlines()
        if re.search(r"(PIP\)|pip install).* -r ", line)
    ]
    assert len(commands) == 5
    assert [line for line in commands if "--require-hashes" not in line] == []
