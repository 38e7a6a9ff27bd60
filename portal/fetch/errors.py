"""Reasons why something could not be fetched."""

from __future__ import annotations

from typing import Any

from portal.languages.messages import Message, MessageError, at_place


class FetchError(MessageError):
    """A failed fetch. Its message is for operators, with the host and the limit or fault (portal/messages.py).

    It never has the path or the query of the address, as these may hold a key or a password's hash.
    """

    def __init__(self, host: str, code: str, /, **args: Any) -> None:
        super().__init__(at_place(host, Message(code, **args)))
        self.host = host


class AddressRefused(FetchError):
    """The site does not ask such an address: another scheme, a private network, a login in it."""


class TimeIsUp(FetchError):
    """It took too long."""


class TooLarge(FetchError):
    """More bytes than the limit."""


class NotStored(FetchError):
    """The answer could not be written, for instance because the disk is full."""


class StatusError(FetchError):
    """The server answered with a status other than success."""

    def __init__(self, host: str, status: int) -> None:
        super().__init__(host, "fetch_status", status=status)
        self.status = status
