"""Which containers BOINC can use on a computer: Docker, and Linux on Windows (WSL). Pure.

Source: BOINC's sched/plan_class_spec.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from portal.wire.hardware import Containers

DOCKER: Final = "docker"
WSL: Final = "wsl"
DOCKER_ON_MAC_SINCE: Final = (8, 2, 6)


def usable(containers: Containers, os_name: str, client_version: str, refused: Collection[str]) -> frozenset[str]:
    """Return those of `DOCKER` and `WSL` that can be used. ``refused``: those that BOINC may not use there.

    On Windows, Docker runs in WSL, so without WSL there is none.
    """
    distros = [distro for distro in containers.distros if distro.is_allowed] if WSL not in refused else []
    if "Windows" in os_name:
        has_docker = any(distro.docker_version for distro in distros)
    else:
        has_docker = bool(containers.docker_version)
        if "Darwin" in os_name and _numbers(client_version) < DOCKER_ON_MAC_SINCE:
            has_docker = False
    kinds = {WSL} if distros else set()
    return frozenset(kinds | ({DOCKER} if has_docker and DOCKER not in refused else set()))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,5}", version)[:3])
