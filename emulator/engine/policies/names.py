"""The names of the policies, in tables, in files, and for `manage.py emulate`; and what people read."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class PolicyName(StrEnum):
    """A policy by its name."""

    REC = "rec"
    LTD = "ltd"
    LTD_SINGLE = "ltd-single"
    DEBT = "debt"


LABELS: Final = {
    PolicyName.REC: "Recent estimated credit (today’s clients)",
    PolicyName.LTD: "Long-term debt per processor type (client 6.6)",
    PolicyName.LTD_SINGLE: "One long-term debt, CPU time only (before 6.6)",
    PolicyName.DEBT: "Debt with preemption (2005)",
}
