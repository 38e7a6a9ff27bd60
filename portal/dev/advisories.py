"""CI's verdict on the lock by `pip-audit`: faults fail it, and advisories that cannot be reached are reported.

It reads the report of `pip-audit --format json` on standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any


def verdict(report: str) -> tuple[list[str], bool]:
    """Lines to print, and whether all is well. An empty report means that the service was not reached."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, LookupError, TypeError):
        return ["Advisories were NOT checked: their service cannot be reached from here."], True
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    if packages and len(skipped) == len(packages):
        return ["Advisories were NOT checked: the registry that is reached from here has none."], True
    lines = [line for package in packages for line in _faults(package)]
    if skipped:
        lines.append(f"Advisories were NOT checked for: {', '.join(sorted(skipped))}.")
    nvulnerable = sum(bool(package.get("vulns")) for package in packages)
    return [
        *lines,
        f"{len(packages) - len(skipped)} packages checked, {nvulnerable} with known faults.",
    ], not nvulnerable


def _faults(package: Mapping[str, Any]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: {fault['id']}, fixed in {', '.join(fault['fix_versions']) or 'none'}"
        for fault in package.get("vulns", [])
    ]


if __name__ == "__main__":
    lines, is_well = verdict(sys.stdin.read())
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.exit(not is_well)
