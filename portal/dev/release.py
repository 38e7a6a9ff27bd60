"""Builds a commit's published files: an archive of its sources, its bill of materials (CycloneDX), and their digests.

The same commit gives the same bytes, on any machine and at any time: they contain only what is in the commit.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

NAME: Final = "cobblestone"
_PIN: Final = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
_SPACE: Final = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of URLs, RFC 9562


def build(root: Path, target: Path, commit: str = "HEAD") -> list[Path]:
    """Write the files into the folder and return them. Raises CalledProcessError outside of a repository."""
    number = _git(root, "rev-parse", "--short=12", commit).decode().strip()
    written_at = _git(root, "show", "--no-patch", "--format=%cI", commit).decode().strip()
    folder = f"{NAME}-{number}"
    packed = _git(root, "-c", "tar.umask=0022", "archive", "--format=tar", f"--prefix={folder}/", commit)
    lock = _git(root, "show", f"{commit}:requirements.txt").decode()
    sources = gzip.compress(packed, mtime=0)
    texts = {f"{folder}.tar.gz": sources, f"{folder}.cdx.json": _text(components(lock, number, written_at))}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(texts.items()))
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for name, content in {**texts, "SHA256SUMS": sums.encode()}.items():
        (target / name).write_bytes(content)
        made.append(target / name)
    return made


def components(lock: str, number: str, written_at: str) -> dict[str, Any]:
    """The bill of materials (CycloneDX 1.6) of a lock: each package that is installed in production."""
    packages = [_component(name, version) for name, version in pins(lock)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, f'{NAME}@{number}')}",
        "version": 1,
        "metadata": {
            "timestamp": written_at,
            "component": {"type": "application", "bom-ref": NAME, "name": NAME, "version": number},
        },
        "components": packages,
    }


def pins(lock: str) -> Iterator[tuple[str, str]]:
    """Yield the names and versions in a lock, in its order."""
    for line in lock.splitlines():
        if pin := _PIN.match(line):
            yield re.sub(r"[-_.]+", "-", pin[1]).lower(), pin[2]


def _component(name: str, version: str) -> dict[str, str]:
    purl = f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _text(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True).stdout


if __name__ == "__main__":
    for path in build(Path(__file__).parents[2], Path(sys.argv[1])):
        sys.stdout.write(f"{path}\n")
