"""What a failure to hand over a mail means: nobody gets mails now, or this person does not, now or ever."""

from __future__ import annotations

import re
from enum import Enum
from smtplib import SMTPDataError, SMTPNotSupportedError, SMTPRecipientsRefused
from typing import Final

# Replies of mail servers (RFC 5321): from here on the mail is refused for good; below, it may be sent again later.
_LEAST_FOR_GOOD: Final = 500
# Except replies that the server does not relay our mails, or about something else for the operator to fix
# (RFC 3463: 5.3 the mail system, 5.4 routing, 5.5 the protocol, 5.7 policy).
_OURS_TO_MEND: Final = re.compile(rb"\b5\.[3457]\.\d|\brelay", re.IGNORECASE)


class Refusal(Enum):
    """NONE: not about this mail; the mail server is down, or refuses us."""

    NONE = "none"
    FOR_NOW = "for now"
    FOR_GOOD = "for good"


def refusal_of(error: BaseException) -> Refusal:
    """What an error in sending one mail means for its recipient."""
    if isinstance(error, SMTPNotSupportedError):
        return Refusal.FOR_GOOD  # the address needs a feature that the mail server lacks
    if isinstance(error, SMTPRecipientsRefused):
        replies = list(error.recipients.values())
    elif isinstance(error, SMTPDataError):
        replies = [(error.smtp_code, _bytes(error.smtp_error))]
    else:
        return Refusal.NONE
    for_good = all(code >= _LEAST_FOR_GOOD and not _OURS_TO_MEND.search(text) for code, text in replies)
    return Refusal.FOR_GOOD if for_good else Refusal.FOR_NOW


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
