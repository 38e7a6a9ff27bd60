"""Four projects with different keywords, and a computer that contacts the running site about them."""

from __future__ import annotations

import re
import time
import urllib.request
from typing import Final

from accounting.models import Project
from tests.support.accounting_factories import make_project
from tests.support.site_process import Site
from tools.simulation.client import SimulatedComputer

PULSARS, CLIMATE, CANCER, GERMANY = 3, 35, 14, 21
_KEYWORDS: Final = {"Sky": [PULSARS], "Coast": [CLIMATE], "Cells": [CANCER, GERMANY], "Sums": []}


def make_four_projects() -> dict[str, Project]:
    """Sky (pulsars), Coast (climate), Cells (cancer research, in Germany) and Sums (without keywords), by name."""
    found = {}
    for name, keywords in _KEYWORDS.items():
        found[name] = project = make_project(
            name=name,
            master_url=f"https://{name.lower()}.example.org/",
            account_key=f"1_{name}",
        )
        for keyword in keywords:
            project.keywords.create(keyword=keyword)
    return found


def report(site: Site, computer: SimulatedComputer) -> set[str]:
    """The computer contacts the site and does as it is told; the names of the projects that it has afterwards."""
    request = urllib.request.Request(
        f"{site.url}rpc.php",
        computer.request(time.time()),
        {"Content-Type": "application/x-www-form-urlencoded"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        computer.apply_reply(reply.read())
    return {re.sub(r"https://(\w+)\..*", r"\1", url).title() for url in computer.projects}
