"""Requests of the REST API for batches."""

from __future__ import annotations

from typing import Any

from tests.support.finished_jobs import DEFAULTS

API = "/api/v1/batches/"
SUBMISSION: dict[str, Any] = {"app": "alpine", "name": "Pairs", "defaults": DEFAULTS, "jobs": [{}, {}]}
