"""Scripts of a scientist decide and collect what two volunteers computed, called by a real Celery worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pytest_django import Settings

from credit.models import AssimilateState, Comparison, CreditSystem, Result, ValidateState, Workunit
from extras.scripts import storing
from extras.scripts.models import Script
from portal.models import Host, User
from tests.support.credit_factories import make_app, make_success, make_version, make_workunit
from tests.support.needs import need
from tests.support.site_process import Site
from tests.support.wait import wait_until

COMPARE = """#!/usr/bin/env python3
import json, sys

def text(result):
    return open(result["files"][0]["path"]).read()

for line in sys.stdin:
    asked = json.loads(line)
    if asked["ask"] == "check":
        answer = {"answer": bool(text(asked["result"]).strip()), "credit": 12.5}
    else:
        answer = {"answer": text(asked["first"]) == text(asked["second"])}
    print(json.dumps(answer), flush=True)
"""
COLLECT = """#!/bin/sh
name=$1
shift
cat "$@" > "/data/$name"
"""


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder that scripts find, whoever runs the worker."""
    need("bwrap")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def site_settings(site_settings: dict[str, str], data: Path) -> dict[str, str]:
    return {**site_settings, "SCRIPT_DATA_DIR": str(data)}


def test_a_python_and_a_shell_script_decide_and_collect_without_a_restart(
    site: Site, background: None, alice: User, bob: User, data: Path, settings: Settings
) -> None:
    settings.MEDIA_ROOT = Path(site.environment["VAR_DIR"]) / "files"
    app = make_app(credit_system=CreditSystem.ASSIGNED, comparison=Comparison.CUSTOM, comparison_function="none")
    version = make_version(app)
    storing.use(Script.objects.create(name="same-text", kind="compare", source=COMPARE), app)
    collect = {"protocol": "words", "words": "wu_name files"}
    storing.use(Script.objects.create(name="collect", kind="assimilate", source=COLLECT, **collect), app)
    workunit = make_workunit(app, need_validate=True, output_files=[{"open_name": "out", "max_nbytes": 9}])
    for person in (alice, bob):
        result = make_success(workunit, Host.objects.create(owner=person), app_version=version)
        path = default_storage.save(f"outputs/{result.name}_0", ContentFile(b"42\n"))
        outputs = [{"name": f"{result.name}_0", "path": path, "nbytes": 3, "md5": "0" * 32}]
        Result.objects.filter(pk=result.pk).update(outputs=outputs)
    valid = workunit.results.filter(validate_state=ValidateState.VALID)
    wait_until(lambda: valid.count() == 2, "both results to be valid", 120)
    assert set(valid.values_list("granted_credit", flat=True)) == {12.5}
    done = Workunit.objects.filter(assimilate_state=AssimilateState.DONE)
    wait_until(done.exists, "the workunit to be assimilated", 120)
    assert (data / "collect" / workunit.name).read_text() == "42\n"
