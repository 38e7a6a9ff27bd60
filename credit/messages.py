"""The sentences of the credit system that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # A cell of the dashboard's tables (credit/figures/table.py)
        "unnamed_computer": _("computer %(number)s"),
        # Why a preview has no result (credit/previews/worker.py)
        "preview_nothing_kept": _(
            "Nothing can be replayed yet: no pass of the validator has granted credit since this site began to keep "
            "the data for a replay. Request the preview again when jobs have been validated."
        ),
    }
)
