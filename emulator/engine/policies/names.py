"""The names of the policies, in tables, in files, and for `manage.py emulate`."""

from __future__ import annotations

from enum import StrEnum


class PolicyName(StrEnum):
    """A policy by its name."""

    REC = "rec"
    REC_LETTER = "rec-letter"
    LTD = "ltd"
    LTD_SINGLE = "ltd-single"
    DEBT = "debt"
