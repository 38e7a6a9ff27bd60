"""Carries out a preview that was asked for."""

from __future__ import annotations

import structlog

from credit.models import Preview

log = structlog.get_logger(__name__)


def carry_out(preview_id: int) -> None:
    """Replay the app's last workunits for this preview, and keep the figures. Safe to call twice."""
    preview = Preview.objects.filter(pk=preview_id, finished_at=None).first()
    if preview is None:
        return
