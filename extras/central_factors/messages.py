"""What was wrong with another server's factors (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {"factors_not_in_answer": _("It answers, but not with what was asked for (%(fault)s).")},
)
