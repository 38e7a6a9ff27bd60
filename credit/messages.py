"""The sentences of the credit system that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # A cell of the dashboard's tables (credit/figures/table.py)
        "unnamed_computer": _("computer %(number)s"),
    }
)
