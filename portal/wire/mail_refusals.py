"""What it means that a mail could not be handed over: nobody gets mails now, or this person does not, now or ever."""

from __future__ import annotations

import re
from enum import Enum
from smtplib import SMTPDataError, SMTPNotSupportedError, SMTPRecipientsRefused
from typing import Final

# Replies of mail servers (RFC 5321): from here on the mail is refused for good, below it may be sent again later.
_LEAST_FOR_GOOD: Final = 500
# Unless they say that the server does not relay our mails, or name something else that the operator has to mend
# (RFC 3463: 5.3 the mail system, 5.4 routing, 5.5 the protocol, 5.7 policy).
_OURS_TO_MEND: Final = re.compile(rb"\b5\.[3457]\.\d|\brelay", re.IGNORECASE)


class Refusal(Enum):
    """NONE: it is not about this mail; the mail server is down, or refuses us."""

    NONE = "none"
    FOR_NOW = "for now"
    FOR_GOOD = "for good"


def refusal_of(error: BaseException) -> Refusal:
    """What an error in sending one mail says of its recipient."""
    if isinstance(error, SMTPNotSupportedError):
        return Refusal.FOR_GOOD  # the address needs what the mail server has not got
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
