"""An installation with some of the rooms: which addresses and tasks it has. Each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.environment import SettingError
from tests.support.settings_of import settings_of

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import json, django
django.setup()
from django.conf import settings
from django.test import Client
from django.test.utils import setup_test_environment
from portal.people.consents import kinds
setup_test_environment()
settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
ask = Client(raise_request_exception=False)
print("@" + json.dumps({
    "pages": {path: ask.get(path).status_code for path in ("/rpc.php", "/project/scheduler", "/account/login/")},
    "tasks": sorted(settings.CELERY_BEAT_SCHEDULE),
    "consents": sorted(kinds()),
    "protocols": sorted(settings.CLIENT_PATHS),
}))
"""


@pytest.mark.system
@pytest.mark.parametrize(
    ("rooms", "has_manager", "has_project"),
    [("account_manager", True, False), ("project", False, True), ("emulator,project,account_manager", True, True)],
)
def test_a_site_has_the_addresses_and_tasks_of_its_rooms(rooms: str, has_manager: bool, has_project: bool) -> None:
    environment = {**os.environ, "ROOMS": rooms, "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "ERROR"}
    run = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.split("@")[1])
    assert (found["pages"]["/rpc.php"] == 200) == has_manager
    assert (found["pages"]["/project/scheduler"] == 200) == has_project
    assert found["pages"]["/account/login/"] == 200
    assert ("roll-up" in found["tasks"]) == has_manager
    assert ("transition" in found["tasks"]) == has_project
    assert ("/rpc.php" in found["protocols"]) == has_manager
    # All that volunteers are asked for belongs to the project.
    assert bool(found["consents"]) == ("count-top-lists" in found["tasks"]) == has_project


def test_a_room_that_there_is_not_ends_the_start() -> None:
    wanted = r"Setting ROOMS='project ballroom' cannot be used: give one or more of account_manager"
    with pytest.raises(SettingError, match=wanted):
        settings_of({**os.environ, "ROOMS": "project,ballroom"})
