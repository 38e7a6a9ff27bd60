"""Background tasks of factors from other projects; each may run twice."""

from __future__ import annotations

from dataclasses import asdict

import structlog
from celery import shared_task
from django.conf import settings
from django.utils import timezone

from extras.central_factors import collect

log = structlog.get_logger("credit")


@shared_task
def collect_factors() -> None:
    """Every hour: query projects and central servers, each once a day."""
    if settings.CENTRAL_PROJECTS or settings.CENTRAL_SERVER:
        log.info("factors_collected", **asdict(collect.collect(timezone.now())))
