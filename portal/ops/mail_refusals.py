"""What it means that a mail could not be handed over: nobody gets mails now, or this person does not, now or ever."""

from __future__ import annotations

from enum import Enum
from smtplib import SMTPDataError, SMTPNotSupportedError, SMTPRecipientsRefused
from typing import Final

# Replies of mail servers (RFC 5321): from here on the mail is refused for good, below it may be sent again later.
_LEAST_FOR_GOOD: Final = 500


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
        codes = [code for code, _ in error.recipients.values()]
    elif isinstance(error, SMTPDataError):
        codes = [error.smtp_code]
    else:
        return Refusal.NONE
    return Refusal.FOR_GOOD if all(code >= _LEAST_FOR_GOOD for code in codes) else Refusal.FOR_NOW
