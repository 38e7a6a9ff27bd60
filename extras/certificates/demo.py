"""A certificate of the demo volunteer."""

from __future__ import annotations

import datetime as dt

from extras.certificates import registry
from extras.certificates.facts import CertificateRequest, read_scopes
from portal.models import User


def issue_one(volunteer: User, now: dt.datetime) -> None:
    """Issue a certificate of the last thirty days."""
    today = now.astimezone(dt.UTC).date()
    shows = ("credit", "run_time", "tasks", "computers", "since", "badges")
    request = CertificateRequest(
        today - dt.timedelta(days=30), today - dt.timedelta(days=1), "all", shows, volunteer.name
    )
    registry.issue(volunteer, request, read_scopes(volunteer), now)
