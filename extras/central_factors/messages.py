"""Messages about problems with another server's factors (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        "factors_not_in_answer": _("It answers, but not with what was asked for (%(fault)s)."),
        # The fault, after the field and a colon (wire.py)
        "factors_no_element": _("no element %(name)s"),
        "factors_cut_off": _("cut off"),
        "factors_missing": _("missing"),
        "factors_not_printable": _("not printable"),
        "factors_unknown": _("unknown"),
    }
)
